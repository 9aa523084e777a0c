"""Results are read as the agent writes them: finished, unfinished, in parts, of children."""

import asyncio
import csv
import io
import json

import pytest
from tests.fakes.crawls import TITLE, a_spec, an_attempt, crawl
from tests.fakes.site_tab import FakePage, FakeTab, HandClock, linking

from pageslots.cli.app import main
from pageslots.cli.reading import open_results

SHOP = "https://shop.example/"


def write(folder, titles, *, uid="uid-1"):
    """What an attempt leaves that crawls a page for each title."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    pages = {
        f"{SHOP}{i}": FakePage(linking(title=title).html, milliseconds=1) for i, title in enumerate(titles)
    }
    tab = FakeTab(pages, HandClock())
    spec = a_spec(*pages, uid=uid, output_uri=str(folder), attempt_ms=900_000, extract=(TITLE,))
    crawl(spec, tab, tab._clock)


def test_a_finished_request_is_a_table_of_its_fields(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    write(tmp_path / "shop", ["Mug", "Bowl"])
    assert main(["results", "shop", "--output", str(tmp_path)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].split() == ["url", "heading"]
    assert out[1].split() == ["shop.example/0", "Mug"]


def test_forty_columns_show_records_one_below_the_other(tmp_path, capsys, monkeypatch):
    """Case U5."""
    monkeypatch.setenv("COLUMNS", "20")
    write(tmp_path / "shop", ["Mug"])
    main(["results", "shop", "--output", str(tmp_path)])
    assert capsys.readouterr().out.splitlines() == ["shop.example/0", "  heading: Mug"]


def test_json_lines_are_the_records_byte_by_byte(tmp_path, capfdbinary):
    write(tmp_path / "shop", ["Mug", "Bowl"])
    main(["results", "shop", "--output", str(tmp_path), "--format", "jsonl"])
    written = min((tmp_path / "shop").glob("part-*")).read_bytes()
    assert capfdbinary.readouterr().out == written


def test_csv_has_a_column_for_each_field(tmp_path, capsys):
    write(tmp_path / "shop", ['Mug, "big"', "Bowl"])
    main(["results", "shop", "--output", str(tmp_path), "--format", "csv"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out, newline="")))
    assert [row["heading"] for row in rows] == ['Mug, "big"', "Bowl"]
    assert rows[0]["url"] == f"{SHOP}0"
    assert rows[0]["outcome"] == "Ok"


def test_the_children_of_a_parallel_request_are_read_in_their_order(tmp_path):
    for number in (10, 2, 1):
        write(tmp_path / "shop" / f"shop-{number}", [f"from {number}"], uid=f"uid-{number}")
    found = open_results(tmp_path / "shop")
    assert [row["data"]["heading"] for row in found.rows()] == ["from 1", "from 2", "from 10"]
    assert found.is_finished


def test_one_child_can_be_named(tmp_path, capsys):
    write(tmp_path / "shop" / "shop-2", ["Bowl"])
    assert main(["results", "shop-2", "--output", str(tmp_path)]) == 0
    assert "Bowl" in capsys.readouterr().out


def test_a_folder_can_be_named(tmp_path, capsys):
    write(tmp_path / "elsewhere", ["Bowl"])
    assert main(["results", str(tmp_path / "elsewhere")]) == 0
    assert "Bowl" in capsys.readouterr().out


def test_parts_that_do_not_count_are_left_out(tmp_path):
    write(tmp_path / "shop", ["Mug"])
    (tmp_path / "shop" / "part-00000000.9-000001.jsonl").write_text('{"url": "leftover"}\n')
    assert [row["url"] for row in open_results(tmp_path / "shop").rows()] == [f"{SHOP}0"]


def test_an_unfinished_request_shows_what_its_newest_checkpoint_counts_and_says_so(tmp_path, capsys):
    folder = tmp_path / "shop"
    write_and_stop(folder, pages=150)
    counted = open_results(folder)
    assert not counted.is_finished
    assert 100 <= counted.records < 150
    assert len(list(counted.rows())) == counted.records
    main(["results", "shop", "--output", str(tmp_path), "--format", "jsonl"])
    assert f"shop is not finished: {counted.records} records so far" in capsys.readouterr().err


def test_a_checkpoint_that_is_cut_off_is_passed_over(tmp_path):
    folder = tmp_path / "shop"
    write_and_stop(folder, pages=250)
    before = open_results(folder).records
    newest = max(folder.glob("_frontier-*"))
    name, _, seq = newest.name.rpartition("-")
    (folder / f"{name}-{int(seq) + 1:06}").write_bytes(newest.read_bytes()[:40])
    assert open_results(folder).records == before > 0


def write_and_stop(folder, *, pages):
    """An attempt that is stopped before its last page leaves a checkpoint."""
    site = {f"{SHOP}{i}": FakePage(linking(title=str(i)).html, milliseconds=100) for i in range(pages)}
    tab = FakeTab(site, HandClock())
    spec = a_spec(*site, output_uri=str(folder), attempt_ms=pages * 100 - 2_000, extract=(TITLE,))
    asyncio.run(an_attempt(spec, tab, tab._clock).run())
    assert not (folder / "_done.json").exists()


def test_an_unknown_name_is_answered_with_the_nearest_ones(tmp_path, capsys):
    write(tmp_path / "sg-list", ["Mug"])
    assert main(["results", "sg-lsit", "--output", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f'no results of "sg-lsit" in {tmp_path}; did you mean sg-list?\n'


def test_an_output_without_results_is_said_to_have_none(tmp_path, capsys):
    assert main(["results", "shop", "--output", str(tmp_path / "nowhere")]) == 2
    assert "give the folder of the run with --output" in capsys.readouterr().err


def test_without_a_name_the_requests_are_listed(tmp_path, capsys):
    write(tmp_path / "shop", ["Mug"])
    write(tmp_path / "other", ["Mug", "Bowl"])
    assert main(["results", "--output", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "other  Succeeded     2 records\nshop   Succeeded     1 record\n"


@pytest.mark.parametrize(
    "damage", ["{", "[]", '{"parts": [{"name": "../../etc/passwd"}], "records": 1, "outcome": "Ok"}']
)
def test_a_damaged_end_is_one_sentence(tmp_path, capsys, damage):
    write(tmp_path / "shop", ["Mug"])
    (tmp_path / "shop" / "_done.json").write_text(damage)
    assert main(["results", "shop", "--output", str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_titles_that_would_command_a_terminal_are_harmless(tmp_path, capsys):
    write(tmp_path / "shop", ["Mug"])
    part = next((tmp_path / "shop").glob("part-*"))
    record = json.loads(part.read_text())
    record["data"]["heading"] = "\x1b]0;owned\x07 [bold]x"
    part.write_text(json.dumps(record) + "\n")
    main(["results", "shop", "--output", str(tmp_path)])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "[bold]x" in out
