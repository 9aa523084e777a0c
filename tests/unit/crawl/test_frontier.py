"""Single rules of the frontier."""

from pageslots_agent.frontier import Candidate, Frontier, Page, Wait
from pageslots_agent.urls import parse


def start(url: str) -> Candidate:
    return Candidate(parse(url))


def a_frontier(*urls: str, max_pages: int | None = None, max_links: int = 100, delay_ms: int = 0) -> Frontier:
    frontier = Frontier(max_pages=max_pages, max_links=max_links, page_delay_ms=delay_ms)
    frontier.admit([start(url) for url in urls])
    return frontier


def lease(frontier: Frontier, now_ms: int = 0) -> Page:
    page = frontier.lease(now_ms)
    assert isinstance(page, Page)
    return page


def test_a_tried_page_goes_to_the_end_and_an_untouched_one_keeps_its_place():
    frontier = a_frontier("http://a.example/1", "http://a.example/2", "http://a.example/3")

    frontier.put_back(lease(frontier), tried=False)
    first = lease(frontier)
    frontier.put_back(first, tried=True)

    assert [lease(frontier).url[-1] for _ in range(3)] == ["2", "3", "1"]


def test_a_page_that_comes_back_knows_how_often_it_was_tried():
    frontier = a_frontier("http://a.example/1")
    for tries in range(3):
        page = lease(frontier)
        assert page.tries == tries
        frontier.put_back(page, tried=True)


def test_nothing_is_leased_before_a_host_is_eligible_again():
    frontier = a_frontier("http://a.example/1", "http://a.example/2", delay_ms=1_000)
    lease(frontier, 500)

    assert frontier.lease(600) == Wait(1_500)
    assert lease(frontier, 1_500).url.endswith("/2")


def test_a_robots_request_counts_for_the_delay():
    frontier = a_frontier("http://a.example/1", "http://a.example/2", delay_ms=1_000)
    lease(frontier, 0)
    frontier.served("a.example", 700)

    assert frontier.lease(1_000) == Wait(1_700)


def test_a_page_that_waits_for_its_second_try_holds_back_its_host_only():
    frontier = a_frontier("http://a.example/1", "http://b.example/1")
    frontier.put_back(lease(frontier), tried=True, not_before_ms=5_000)

    assert lease(frontier).host == "b.example"
    assert frontier.lease(0) == Wait(5_000)


def test_links_beyond_the_bound_are_not_admitted_and_start_pages_are():
    """A calendar that never ends costs a bounded number of pages (case W6)."""
    frontier = a_frontier("http://a.example/", max_links=10)
    links = [Candidate(parse(f"http://a.example/{day}"), depth=1, root=1) for day in range(100)]

    assert frontier.admit(links) == 10
    assert frontier.is_full
    assert frontier.admit([start("http://b.example/")]) == 1


def test_a_file_name_is_not_left_behind(tmp_path, monkeypatch):
    """However the agent ends, its scratch folder stays clean (case W14)."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    frontier = a_frontier("http://a.example/")

    assert list(tmp_path.iterdir()) == []
    frontier.close()


def test_an_ended_page_keeps_no_address():
    """A million ended pages cost their identities."""
    frontier = a_frontier("http://a.example/" + "x" * 1_000)
    frontier.end(lease(frontier))

    [row] = frontier.rows()
    assert "x" * 100 not in str(row)


def test_a_page_under_way_waits_again_after_a_restore():
    """An attempt that dies in the middle of a page repeats that page (case W15)."""
    frontier = a_frontier("http://a.example/1", "http://a.example/2")
    under_way = lease(frontier)

    restored = a_frontier()
    restored.restore(frontier.changes())
    restored.settle()

    assert lease(restored).url == under_way.url
