"""Links: which of a page's links become pages, and whether robots.txt lets such a page be loaded."""

import asyncio
from collections.abc import Sequence
from enum import Enum

from pageslots.wire import AttemptSpec, Follow
from pageslots_agent.clock import Clock
from pageslots_agent.frontier import ADMIT_BATCH, Candidate, Frontier, Page
from pageslots_agent.ports import Tab
from pageslots_agent.record import Visited
from pageslots_agent.robots import RobotsBook, Rules
from pageslots_agent.scope import Anchor, Scope
from pageslots_agent.urls import Address, parse


class May(Enum):
    """Whether a leased page may be loaded."""

    LOAD = "load"
    LATER = "later"  # its host was just asked for robots.txt and wants a pause
    NEVER = "never"


class Follower:
    """Follows links for one attempt. Start pages are what the user asked for: robots.txt is for links."""

    def __init__(self, spec: AttemptSpec, follow: Follow, frontier: Frontier, tab: Tab, clock: Clock) -> None:
        """Raises ValueError for a scope that is none."""
        self._obey = spec.obey_robots
        self._page_delay_ms = spec.page_delay_ms
        self._follows = spec.max_pages > 0  # 0 stands for the number of start URLs
        self._scope = Scope(follow)
        self._frontier = frontier
        self._tab = tab
        self._clock = clock
        self._robots = RobotsBook()
        self._bytes = 0

    def reads_links(self, depth: int) -> bool:
        """Whether the links of a page at `depth` matter."""
        return self._follows and self._scope.reads_links(depth) and not self._frontier.is_full

    async def may_load(self, page: Page, *, timeout_ms: int) -> May:
        """Ask the origin's robots.txt, fetching it if need be; raises SlotSpentError."""
        if page.is_start or not self._obey:
            return May.LOAD
        address = parse(page.url)
        rules = self._robots.known(address.origin)
        if rules is None:
            rules, visit = await self._robots.fetch(address, self._tab, timeout_ms=timeout_ms)
            self._bytes += visit.bytes
            if rules.crawl_delay_ms:
                self._frontier.delay_host(page.host, rules.crawl_delay_ms)
            self._frontier.served(page.host, self._clock.elapsed_ms())
            if rules.allows(page.url) and max(rules.crawl_delay_ms, self._page_delay_ms):
                return May.LATER
        return May.LOAD if rules.allows(page.url) else May.NEVER

    def take_bytes(self) -> int:
        """Bytes spent on robots.txt since the last call."""
        spent, self._bytes = self._bytes, 0
        return spent

    async def admit_links(self, visited: Visited) -> None:
        """Admit the links of a page in batches: however many there are, nothing waits for them (I12)."""
        page, reading = visited.page, visited.reading
        if reading is None or not self.reads_links(page.depth):
            return
        ended_at = visited.visit.final_url or page.url
        if page.is_start:
            anchors = self._scope.anchors([page.url, ended_at])
            self._frontier.anchor(page.id, anchors)
        else:
            anchors = self._frontier.anchors(page.root)
            if not self._scope.covers(parse(ended_at), anchors):
                return  # it was redirected out of the scope, and its links lead on from there
        links = reading.links
        for at in range(0, len(links), ADMIT_BATCH):
            self._frontier.admit(self._candidates(links[at : at + ADMIT_BATCH], page, anchors))
            if self._frontier.is_full:
                return
            await asyncio.sleep(0)

    def _candidates(self, links: Sequence[Address], page: Page, anchors: list[Anchor]) -> list[Candidate]:
        return [
            Candidate(link, page.depth + 1, page.root)
            for link in links
            if self._scope.admits(link, anchors) and self._may_be_allowed(link)
        ]

    def _may_be_allowed(self, link: Address) -> bool:
        rules: Rules | None = self._robots.known(link.origin) if self._obey else None
        return rules is None or rules.allows(link.url)
