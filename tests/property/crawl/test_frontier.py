"""Laws of the frontier, over any order of what can happen to it."""

from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from pageslots_agent.frontier import Candidate, Frontier, Page, Wait
from pageslots_agent.scope import Anchor
from pageslots_agent.urls import parse

HOSTS = ("a.example", "b.example", "c.example:8080")


@dataclass
class Walk:
    """What happened to a frontier: the leases in order, and what became of them."""

    leases: list[tuple[int, Page]] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)


def urls() -> st.SearchStrategy[str]:
    """Few pages in several spellings, so that most admissions are of known ones."""
    spellings = (
        "http://{h}/{p}",
        "HTTP://{H}/{p}",
        "http://{h}/x/../{p}",
        "http://{h}/{p}#top",
        "http://{h}/%{c:x}",
    )
    return st.builds(
        lambda spelling, host, page: spelling.format(h=host, H=host.upper(), p=page, c=ord(page)),
        st.sampled_from(spellings),
        st.sampled_from(HOSTS),
        st.sampled_from("abcdefgh"),
    )


def steps() -> st.SearchStrategy[list[tuple[str, object]]]:
    """Admissions, leases with what becomes of them, and passing time."""
    return st.lists(
        st.one_of(
            st.tuples(st.just("admit"), st.lists(urls(), min_size=1, max_size=5)),
            st.tuples(st.just("lease"), st.sampled_from(["end", "skip", "tried", "untried", "later"])),
            st.tuples(st.just("pass"), st.integers(0, 3_000)),
        ),
        max_size=60,
    )


def candidate(url: str, *, root: int | None = None) -> Candidate:
    return Candidate(parse(url), depth=0 if root is None else 1, root=root)


def walk(frontier: Frontier, moves: list[tuple[str, object]], *, until_done: bool = True) -> Walk:
    """Apply moves, then lease and end whatever is left."""
    seen = Walk()
    now = 0
    for verb, what in moves:
        if verb == "admit":
            assert isinstance(what, list)
            frontier.admit([candidate(url) for url in what])
        elif verb == "pass":
            assert isinstance(what, int)
            now += what
        else:
            page = frontier.lease(now)
            if isinstance(page, Page):
                seen.leases.append((now, page))
                settle(frontier, page, str(what), now, seen)
    while until_done and (page := frontier.lease(now)) is not None:
        if isinstance(page, Wait):
            assert page.until_ms > now
            now = page.until_ms
            continue
        seen.leases.append((now, page))
        settle(frontier, page, "end", now, seen)
    return seen


def settle(frontier: Frontier, page: Page, how: str, now: int, seen: Walk) -> None:
    match how:
        case "end":
            frontier.end(page)
            seen.ended.append(page.url)
        case "skip":
            frontier.skip(page)
            seen.ended.append(page.url)
        case "tried":
            frontier.put_back(page, tried=True)
        case "later":
            frontier.put_back(page, tried=True, not_before_ms=now + 1_500)
        case _:
            frontier.put_back(page, tried=False)


def a_frontier(*, max_pages: int | None = None, delay_ms: int = 0) -> Frontier:
    return Frontier(max_pages=max_pages, max_links=1_000, page_delay_ms=delay_ms)


@settings(deadline=None)
@given(steps())
def test_every_admitted_page_ends_exactly_once(moves):
    """Whatever is tried in between, a page ends once, and one that was never admitted never comes."""
    frontier = a_frontier()
    seen = walk(frontier, moves)

    identities = [parse(url).identity for url in seen.ended]
    admitted = {parse(url).identity for verb, what in moves if verb == "admit" for url in what}  # type: ignore[union-attr]
    assert len(identities) == len(set(identities))
    assert set(identities) == admitted
    assert frontier.discovered == len(admitted)
    frontier.close()


@settings(deadline=None)
@given(steps(), st.integers(1, 2_000), st.integers(0, 3_000))
def test_a_host_is_never_served_faster_than_its_delay(moves, delay_ms, crawl_delay_ms):
    """Two leases of a host are at least the page delay apart, and its Crawl-delay if that is longer."""
    frontier = a_frontier(delay_ms=delay_ms)
    frontier.admit([candidate(f"http://{HOSTS[0]}/first")])
    first = frontier.lease(0)
    assert isinstance(first, Page)
    frontier.delay_host(HOSTS[0], crawl_delay_ms)  # told by robots.txt while a page of the host is under way
    frontier.put_back(first, tried=False)
    seen = walk(frontier, moves)
    seen.leases.insert(0, (0, first))

    for host in HOSTS:
        times = [now for now, page in seen.leases if page.host == host]
        least = max(delay_ms, crawl_delay_ms if host == HOSTS[0] else 0)
        assert all(after - before >= least for before, after in pairwise(times))
    frontier.close()


@settings(deadline=None)
@given(st.lists(urls(), min_size=1, max_size=60))
def test_hosts_take_turns(found):
    """While a host waits, no other host is served twice."""
    frontier = a_frontier()
    frontier.admit([candidate(url) for url in found])
    leases = [page.host for _, page in walk(frontier, []).leases]

    for at, host in enumerate(leases):
        again = next((i for i in range(at + 1, len(leases)) if leases[i] == host), None)
        if again is not None:
            waiting = set(leases[again:]) - {host}
            assert waiting <= set(leases[at + 1 : again])
    frontier.close()


@settings(deadline=None)
@given(steps(), st.integers(1, 6))
def test_a_crawl_ends_after_max_pages(moves, max_pages):
    """Never more than `max_pages` pages end; skipped ones don't count."""
    frontier = a_frontier(max_pages=max_pages)
    walk(frontier, [move for move in moves if move[1] != "skip"])

    assert frontier.ended <= max_pages
    assert frontier.is_spent or frontier.queued == 0
    frontier.close()


@settings(deadline=None)
@given(steps(), st.lists(st.integers(0, 60), max_size=3))
def test_a_restored_frontier_is_the_same(moves, cuts):
    """A whole checkpoint and the changes since give back what was saved: the same rows, counts and order."""
    frontier = a_frontier()
    saved = list(frontier.rows())
    frontier.mark()
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), 60], strict=True):
        walk(frontier, moves[start:end], until_done=False)
        if frontier.discovered and start:
            frontier.anchor(1, [Anchor("a.example", "/", "a.example")])
        saved += list(frontier.changes())
        frontier.mark()

    restored = a_frontier()
    restored.restore(saved)
    restored.settle()

    assert list(restored.rows()) == list(frontier.rows())
    counts = ("discovered", "ended", "queued", "queued_starts")
    assert [getattr(restored, name) for name in counts] == [getattr(frontier, name) for name in counts]
    left, right = walk(restored, []).leases, walk(frontier, []).leases
    for host in HOSTS:
        assert [page for _, page in left if page.host == host] == [
            page for _, page in right if page.host == host
        ]
    restored.close()
    frontier.close()
