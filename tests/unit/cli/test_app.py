"""Mistakes become sentences, and the exit code says whose they are (cases U1 and U2)."""

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

import pageslots
from pageslots.cli import app
from pageslots.cli.app import COMMANDS, main

BROKEN = """\
apiVersion: pageslots.dev/v1alpha1
kind: CrawlRequest
metadata: {name: shop}
spec: {country: sgp, startUrls: ["https://shop.example/"], maxPage: 3}
---
apiVersion: pageslots.dev/v1alpha1
kind: CrawlRequest
metadata: {name: fine}
spec: {country: SG, startUrls: ["https://shop.example/"]}
"""
FINE = BROKEN.partition("---\n")[2]
POOL = """\
apiVersion: pageslots.dev/v1alpha1
kind: PageSlotPool
metadata: {name: default}
spec: {countries: [{code: DE, direct: true}]}
---
"""


@pytest.fixture
def manifest(tmp_path):
    def write(text, name="crawl.yaml"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def test_version_is_told(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"pageslots {pageslots.__version__}\n"


def test_a_typing_mistake_in_a_command_is_answered_with_the_nearest_one(capsys):
    assert main(["chekc"]) == 2
    assert 'no command "chekc"; did you mean "check"?' in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_helps_with_examples_in_80_columns(capsys, command):
    assert main([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert "Usage: pageslots" in out
    assert f"pageslots {command}" in out
    assert max(map(len, out.splitlines())) <= 80


def test_help_imports_no_command():
    """It is there at once: the commands import browsers' and crawls' machinery."""
    code = "import sys; from pageslots.cli import main; main(['--help']); print('asyncio' in sys.modules)"
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert said.stdout.endswith("False\n")


@pytest.mark.parametrize("command", ["check", "run"])
def test_every_error_is_told_with_file_line_and_field_and_nothing_is_started(
    capsys, manifest, tmp_path, monkeypatch, command
):
    """Case U1."""
    monkeypatch.chdir(tmp_path)
    file = manifest(BROKEN)
    assert main([command, file]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 2
    assert errors[0].startswith(f'{file}:4:17  CrawlRequest "shop": spec.country: "sgp" ')
    assert errors[1].startswith(f'{file}:4:60  CrawlRequest "shop": spec.maxPage: ')
    assert [path.name for path in tmp_path.iterdir()] == ["crawl.yaml"]


def test_a_file_that_is_not_there_is_one_sentence(capsys):
    assert main(["run", "nowhere.yaml"]) == 2
    assert capsys.readouterr().err == "nowhere.yaml  no such file\n"


def test_a_country_that_the_pool_does_not_have_is_unusable_input(capsys, manifest):
    assert main(["run", manifest(POOL + FINE)]) == 2
    assert 'pool "default" has no country "SG"' in capsys.readouterr().err


def test_check_says_what_is_in_the_files(capsys, manifest):
    assert main(["check", manifest(POOL.replace("DE", "SG") + FINE)]) == 0
    assert capsys.readouterr().out == "1 file in order, 1 pool (default: SG), 1 request (SG 1), 1 start URL\n"


def test_an_output_that_is_a_file_is_one_sentence(capsys, manifest, tmp_path):
    """Case U2."""
    (tmp_path / "taken").write_text("")
    assert main(["run", manifest(FINE), "--output", str(tmp_path / "taken")]) == 2
    assert (
        capsys.readouterr().err == f"{tmp_path / 'taken'}: File exists: choose another folder with --output\n"
    )


def test_a_log_that_can_not_be_written_is_one_sentence(capsys, manifest, tmp_path):
    """Case U2."""
    arguments = [
        "run",
        manifest(FINE),
        "--output",
        str(tmp_path / "out"),
        "--log",
        str(tmp_path / "no" / "log"),
    ]
    assert main(arguments) == 2
    assert capsys.readouterr().err.endswith("No such file or directory: choose another file with --log\n")


def test_a_browser_that_is_not_there_is_one_sentence(capsys, manifest, tmp_path):
    """Case U2."""
    arguments = ["run", manifest(FINE), "--output", str(tmp_path / "out"), "--chromium", "/no/browser"]
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("/no/browser: no such browser")
    assert len(error.splitlines()) == 1


def test_crds_are_printed_as_one_stream(capsys):
    assert main(["crds"]) == 0
    assert capsys.readouterr().out.count("kind: CustomResourceDefinition\n") == 3


def test_crds_are_written_one_to_a_file(capsys, tmp_path):
    assert main(["crds", "--output", str(tmp_path / "new" / "crds")]) == 0
    written = sorted(path.name for path in (tmp_path / "new" / "crds").iterdir())
    repository = Path(__file__).parents[3] / "crds"
    assert written == sorted(path.name for path in repository.glob("*.yaml"))
    capsys.readouterr()


def test_a_fault_of_the_program_is_one_sentence_and_a_traceback_in_a_file(capsys, monkeypatch, tmp_path):
    @click.command()
    def broken():
        raise ExceptionGroup("tasks", [ZeroDivisionError("by zero")])

    monkeypatch.setattr(app.Commands, "get_command", lambda *_: broken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main(["run"]) == 70
    error = capsys.readouterr().err
    log = re.search(r"The traceback is in (\S+)\n", error)[1]
    assert error.startswith("pageslots failed unexpectedly: ZeroDivisionError: by zero.")
    assert "Traceback" not in error
    assert "ZeroDivisionError: by zero" in Path(log).read_text()


def test_a_reader_that_goes_away_makes_no_noise(tmp_path):
    """Case U5: `pageslots crds | head -1`."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing) as pipe:
        ended = subprocess.run(
            [sys.executable, "-m", "pageslots.cli", "crds"],
            stdout=pipe,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
    assert ended.stderr == b""
    assert ended.returncode == 141


def test_windows_is_told_what_to_do(capsys, monkeypatch):
    monkeypatch.setattr(app.os, "name", "nt")
    assert main(["demo"]) == 2
    assert "WSL2" in capsys.readouterr().err
