"""The demo, as somebody sees it who has just unpacked the project."""

import re
import socket
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

COMMAND = [sys.executable, "-m", "pageslots.cli", "demo"]


def demo(*arguments, folder, timeout=240):
    return subprocess.run(
        [*COMMAND, *arguments], cwd=folder, capture_output=True, text=True, timeout=timeout, check=False
    )


def test_every_request_of_the_demo_succeeds(tmp_path):
    ended = demo(folder=tmp_path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stderr == ""
    assert "12 requests: 12 succeeded; 84 pages in " in ended.stdout
    assert "de-second-try  again after Blocked: " in ended.stdout
    assert (tmp_path / "pageslots-demo" / "manifests" / "pool.yaml").exists()


def test_every_failure_of_the_demo_fails_for_the_reason_that_it_shows(tmp_path):
    ended = demo("--failures", folder=tmp_path)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    reasons = dict(re.findall(r"^  fails-(\S+) +(\w+)", ended.stdout, re.MULTILINE))
    assert reasons == {
        "not-found": "NotFound",
        "forbidden": "Blocked",
        "challenge": "Blocked",
        "broken": "SiteError",
        "crash": "BrowserCrash",
        "endless-script": "SiteError",
        "wait": "SiteError",
        "selector": "BadRequest",
        "deadline": "DeadlineExceeded",
        "too-many-pages": "TooManyFailedPages",
    }


def test_a_port_that_is_taken_is_one_sentence(tmp_path):
    """Case U2."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = demo("--port-base", str(min(port, 65_533)), folder=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr == f"127.0.0.1:{port} (site SG) is taken: choose other ports with --port-base\n"
