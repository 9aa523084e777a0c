"""What a site's robots.txt says about its pages (RFC 9309, through Protego).

Fetched through the slot's own tab, as everything that the crawl asks of a site: same proxy, same country,
same address rules. It is asked for when a link of that origin is about to be followed, and kept for the
attempt.

| answer                                             | RFC 9309 | rules                        |
|----------------------------------------------------|----------|------------------------------|
| 2xx, up to MAX_CHARACTERS                          | 2.3.1.1  | as parsed, the rest is cut   |
| redirects                                          | 2.3.1.2  | of where they end            |
| 4xx, redirect loop, forbidden address, a download  | 2.3.1.3  | none: everything is allowed  |
| 5xx, 429, timeout, DNS, refused, TLS               | 2.3.1.4  | nothing is allowed           |

429 is a 4xx, but it speaks of the moment and not of the file, so it counts as unreachable. `Crawl-delay` is
not part of the RFC; it is obeyed up to MAX_CRAWL_DELAY_MS. Sitemaps are not read.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Protocol

from protego import Protego

from pageslots_agent.ports import LoadFault, PageUnreadableError, Tab, Visit
from pageslots_agent.urls import Address

PRODUCT_TOKEN = "pageslots"  # noqa: S105 -- the name that robots.txt files call us by
MAX_CHARACTERS = 512 * 1024
"""RFC 9309 section 2.5 asks for 500 KiB at least."""
MAX_CRAWL_DELAY_MS = 60_000
MAX_ORIGINS = 500
"""Rules that are kept; the origin asked for longest ago is forgotten and fetched again when needed."""

_NO_FILE = (LoadFault.REDIRECT_LOOP, LoadFault.FORBIDDEN_ADDRESS)
_SLOT_SPENT = (LoadFault.PROXY, LoadFault.CRASH, LoadFault.BROWSER_GONE)


class Rules(Protocol):
    """What one robots.txt says."""

    def allows(self, url: str) -> bool:
        """Whether we may load `url`."""
        ...

    @property
    def crawl_delay_ms(self) -> int:
        """The pause it asks for, bounded."""
        ...


@dataclass(frozen=True, slots=True)
class Everything:
    """One answer for all pages: there are no rules, or nobody could tell them."""

    allowed: bool
    crawl_delay_ms: int = 0

    def allows(self, url: str) -> bool:  # noqa: ARG002 -- see Rules
        """See Rules."""
        return self.allowed


class ParsedRules:
    """The rules of a file."""

    def __init__(self, text: str) -> None:
        self._file = Protego.parse(text[:MAX_CHARACTERS])
        delay = self._file.crawl_delay(PRODUCT_TOKEN) or 0
        self.crawl_delay_ms = int(min(max(delay, 0), MAX_CRAWL_DELAY_MS / 1_000) * 1_000)

    def allows(self, url: str) -> bool:
        """See Rules."""
        return bool(self._file.can_fetch(url, PRODUCT_TOKEN))


class SlotSpentError(Exception):
    """The file could not be asked for: proxy or browser failed, which says nothing about the site."""

    def __init__(self, fault: LoadFault, message: str) -> None:
        super().__init__(message)
        self.fault = fault


class RobotsBook:
    """The rules of the origins met by one attempt."""

    def __init__(self) -> None:
        self._rules: OrderedDict[str, Rules] = OrderedDict()

    def known(self, origin: str) -> Rules | None:
        """The rules of an origin, if they were fetched."""
        rules = self._rules.get(origin)
        if rules is not None:
            self._rules.move_to_end(origin)
        return rules

    async def fetch(self, address: Address, tab: Tab, *, timeout_ms: int) -> tuple[Rules, Visit]:
        """Ask for the rules of the origin of `address` and keep them; raises SlotSpentError."""
        visit = await tab.visit(f"{address.origin}/robots.txt", timeout_ms=timeout_ms)
        text = ""
        if visit.fault is None and _is_file(visit):
            try:
                text = await tab.text(timeout_ms=timeout_ms)
            except PageUnreadableError as error:
                visit = Visit(
                    url=visit.url,
                    final_url=visit.final_url,
                    status=visit.status,
                    fault=error.fault,
                    message=str(error),
                    bytes=visit.bytes,
                )
        if visit.fault in _SLOT_SPENT or visit.status == 407:
            raise SlotSpentError(visit.fault or LoadFault.PROXY, visit.message)
        rules = rules_of(visit, text)
        self._rules[address.origin] = rules
        if len(self._rules) > MAX_ORIGINS:
            self._rules.popitem(last=False)
        return rules, visit


def rules_of(visit: Visit, text: str) -> Rules:
    """The rules by an answer to the request for robots.txt (the table of this module)."""
    if visit.fault in _NO_FILE or visit.is_download:
        return Everything(allowed=True)
    if visit.fault is not None or visit.status is None:
        return Everything(allowed=False)
    if _is_file(visit):
        return ParsedRules(text)
    return Everything(allowed=400 <= visit.status < 500 and visit.status != 429)


def _is_file(visit: Visit) -> bool:
    return visit.status is not None and 200 <= visit.status < 300 and not visit.is_download
