"""What is said when a run is over."""

from tests.fakes.runs import a_result, a_row

from pageslots.cli.ending import MOST_NAMED, Ending


def lines(result, output, again=()):
    return [line.plain for line in Ending(output, again).lines(result)]


def test_failures_are_named_with_reason_and_attempts(tmp_path):
    bad = a_row(
        "bad", "Failed", reason="Blocked", message="403", pages_failed=2, pages_discovered=5, attempts=2
    )
    text = "\n".join(lines(a_result(a_row(), bad), tmp_path))
    assert "2 requests: 1 succeeded, 1 failed; 7 pages in 42.0 s" in text
    assert "Failed:\n  bad  Blocked: 403 (2 of 5 pages failed, 2 attempts)" in text


def test_the_exact_command_that_shows_results_is_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = lines(a_result(a_row("my-shop")), tmp_path / "out put")
    assert text[-1] == "  pageslots results my-shop --output 'out put'"


def test_results_that_a_manifest_put_elsewhere_are_found_there(tmp_path):
    row = a_row("shop", result=(tmp_path / "elsewhere" / "x").as_uri())
    assert lines(a_result(row), tmp_path / "out")[-1] == f"  pageslots results {tmp_path / 'elsewhere' / 'x'}"


def test_a_succeeded_request_is_the_one_whose_results_are_offered(tmp_path):
    rows = a_result(a_row("bad", "Failed", records=1), a_row("good"))
    assert "results good" in lines(rows, tmp_path)[-1]


def test_a_run_without_records_offers_none(tmp_path):
    assert lines(a_result(a_row(state="Failed", records=0)), tmp_path)[-1] == "No records were written."


def test_skipped_requests_are_counted_and_the_way_out_is_named(tmp_path):
    text = "\n".join(lines(a_result(a_row("one", skipped=True), a_row("two")), tmp_path))
    assert "2 requests: 2 succeeded" in text
    assert "1 had finished in an earlier run (--fresh starts over)" in text


def test_an_interrupted_run_names_the_command_that_goes_on(tmp_path):
    again = ["pageslots", "run", "my crawl.yaml"]
    text = "\n".join(lines(a_result(a_row(state="Queued"), interrupted=True), tmp_path, again))
    assert "Interrupted: 1 request not finished.\n" in text
    assert "  pageslots run 'my crawl.yaml'\n" in text


def test_suspended_requests_are_said_to_be_what_is_left(tmp_path):
    text = lines(a_result(a_row("paused", "Queued", reason="Suspended"), a_row()), tmp_path)
    assert "Suspended: paused" in text


def test_a_thousand_failures_do_not_fill_the_screen(tmp_path):
    rows = [a_row(f"bad-{i}", "Failed", reason="Blocked") for i in range(1000)]
    text = lines(a_result(*rows), tmp_path)
    assert len(text) < MOST_NAMED + 10
    assert f"  and {1000 - MOST_NAMED} more" in text
