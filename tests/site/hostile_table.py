"""What each page of the hostile site does, and what a crawl must make of it: W1 to W7, W11, W12, W16."""

import re
from dataclasses import dataclass
from typing import Any

from pageslots.wire import Outcome

PAGE_TIMEOUT_SECONDS = 5
"""`within_seconds` holds for this page timeout, no page retries, and a page that is the only start page."""

OK = (Outcome.OK,)
BLOCKED = (Outcome.BLOCKED,)
NOT_FOUND = (Outcome.NOT_FOUND,)
SITE_ERROR = (Outcome.SITE_ERROR,)
CRASH = (Outcome.BROWSER_CRASH, Outcome.OUT_OF_MEMORY)
REFUSED = (Outcome.BAD_REQUEST, Outcome.SITE_ERROR)
"""A forbidden address behind a start page."""
OK_OR_LATE = (Outcome.OK, Outcome.SITE_ERROR)
"""The document is there, the load event never comes: read what is there, or call it a timeout."""


@dataclass(frozen=True, slots=True)
class HostilePage:
    """One page of the site.

    `outcomes` are the page's acceptable outcomes, the best one first; it must be over after `within_seconds`.
    `status` is what a plain HTTP client gets without following redirects; None: it never gets a whole answer.
    `text` is in the page's text when it is read.
    """

    name: str
    path: str
    case: str
    outcomes: tuple[Outcome, ...]
    what: str
    within_seconds: int = 10
    status: int | None = 200
    text: str = ""

    @property
    def expected_outcome(self) -> Outcome:
        """The best outcome."""
        return self.outcomes[0]


def _page(case: str, path: str, outcomes: tuple[Outcome, ...], what: str, **more: Any) -> HostilePage:
    """The name is the path, with the value of its query: `links-many-100000`."""
    name = re.sub(r"[/?]([a-z]+=)?", "-", path).strip("-")
    return HostilePage(name=name, path=path, case=case, outcomes=outcomes, what=what, **more)


HOSTILE_PAGES: tuple[HostilePage, ...] = (
    _page("W1", "/endless/after-load", OK_OR_LATE, "while(true) 50 ms after the load event",
          text="before the loop"),
    _page("W1", "/endless/inline", SITE_ERROR, "while(true) while the document is parsed"),
    _page("W1", "/endless/microtasks", OK_OR_LATE, "promises that queue promises for ever, after load"),
    _page("W1", "/endless/timers", OK, "a timer that fires for ever: harmless", text="ticking"),
    _page("W2", "/crash/after-load", (Outcome.OK, *CRASH), "kills its renderer 50 ms after the load event"),
    _page("W2", "/crash/inline", CRASH, "kills its renderer while the document is parsed"),
    _page("W3", "/status/403", BLOCKED, "403", status=403),
    _page("W3", "/status/404", NOT_FOUND, "404", status=404),
    _page("W3", "/status/410", NOT_FOUND, "410", status=410),
    _page("W3", "/status/418", SITE_ERROR, "a 4xx that means nothing here", status=418),
    _page("W3", "/status/500", SITE_ERROR, "500", status=500),
    _page("W3", "/status/503", BLOCKED, "503", status=503),
    _page("W3", "/challenge", BLOCKED, "a challenge in the place of the page, status 200"),
    _page("W3", "/empty", BLOCKED, "status 200 and nothing in it"),
    _page("W4", "/redirect/loop", SITE_ERROR, "redirects to itself", status=302),
    _page("W4", "/redirect/chain?left=40", SITE_ERROR, "40 hops, more than a browser follows", status=302),
    _page("W4", "/redirect/chain?left=3", OK, "three hops to a page", status=302, text="end of the chain"),
    _page("W4", "/redirect/metadata", REFUSED, "to 169.254.169.254", status=302),
    _page("W4", "/redirect/neighbour", REFUSED, "to a server on 127.0.0.1 that logs its visitors",
          status=302),
    _page("W4", "/redirect/private", REFUSED, "to 10.0.0.1", status=302),
    _page("W4", "/redirect/file", REFUSED, "to file:///etc/passwd", status=302),
    _page("W4", "/redirect/chrome", REFUSED, "to chrome://version", status=302),
    _page("W4", "/redirect/javascript", REFUSED, "to javascript:", status=302),
    _page("W4", "/redirect/data", REFUSED, "to data:", status=302),
    _page("W4", "/inside/script", (*OK, *REFUSED), "a script that navigates to the neighbour"),
    _page("W4", "/inside/refresh", (*OK, *REFUSED), "a meta refresh to the neighbour"),
    _page("W4", "/inside/parts", OK, "image, frame, fetch and socket of the neighbour",
          text="nothing inside"),
    _page("W5", "/dialog/alert", OK, "alert() before load", text="after the dialog"),
    _page("W5", "/dialog/confirm", OK, "confirm() and prompt() before load", text="after the dialog"),
    _page("W5", "/dialog/storm", OK, "500 alerts in a row", text="after the dialog"),
    _page("W5", "/dialog/beforeunload", OK, "asks to stay when the next page is loaded", text="stay with us"),
    _page("W5", "/dialog/print", OK, "print() on load", text="on paper"),
    _page("W5", "/dialog/permissions", OK, "asks for place, notifications and camera", text="where are you"),
    _page("W5", "/auth", SITE_ERROR, "a 401 that makes browsers ask for a password", status=401),
    _page("W5", "/download/attachment", OK, "a file: Content-Disposition: attachment"),
    _page("W5", "/download/binary", OK, "a file: application/octet-stream"),
    _page("W5", "/download/after-load", OK, "a page whose script starts a download",
          text="see your downloads"),
    _page("W5", "/pdf", OK, "a PDF"),
    _page("W5", "/popups", OK, "20 windows opened on load", text="windows everywhere"),
    _page("W6", "/links/many?count=100000", OK, "100,000 links", within_seconds=60),
    _page("W6", "/calendar/2026/1", OK, "a calendar without end or beginning"),
    _page("W6", "/session/page-0", OK, "20 pages whose links carry a new session id each time"),
    _page("W6", "/spelled", OK, "50 spellings of one URL"),
    _page("W7", "/links/odd", OK, "base href and links of every sort"),
    _page("W7", "/charset/windows-1251", OK, "Cyrillic, declared in the header", text="Чайник"),
    _page("W7", "/charset/shift_jis", OK, "Japanese, declared in a meta element", text="急須"),
    _page("W7", "/charset/utf-16", OK, "a byte order mark against a wrong header", text="Чайник"),
    _page("W11", "/limited/seconds", BLOCKED, "429, Retry-After: 7", status=429),
    _page("W11", "/limited/date", BLOCKED, "429, Retry-After: a date 7 s ahead", status=429),
    _page("W11", "/limited/absurd", BLOCKED, "429, Retry-After: a year", status=429),
    _page("W11", "/limited/nonsense", BLOCKED, "429, Retry-After: soon", status=429),
    _page("W12", "/late/never-loads", OK_OR_LATE, "an image that is never answered", text="almost there"),
    _page("W12", "/late/no-answer", SITE_ERROR, "accepts the connection and says nothing", status=None),
    _page("W12", "/late/drip", SITE_ERROR, "a byte of HTML every 100 ms, for ever", status=None),
    _page("W12", "/late/truncated", OK_OR_LATE, "closes the connection in the middle of the body",
          status=None),
    _page("W12", "/huge/stream", SITE_ERROR, "an endless body, as fast as it is read", status=None),
    _page("W12", "/huge/bomb", OK_OR_LATE, "512 MiB of spaces in a gzip of 0.5 MiB",
          within_seconds=20, text="a bomb"),
    _page("W16", "/heavy", OK, "12 pictures, a font, a film: 1.6 MiB besides the page", text="a heavy page"),
    _page("W16", "/worker", OK, "registers a service worker that answers for the site", text="worker"),
    _page("W12", "/refresh/once", OK, "a meta refresh to another page after 0 s"),
    _page("W12", "/refresh/self", OK_OR_LATE, "a meta refresh to itself after 0 s, for ever"),
    _page("W12", "/socket", OK, "opens websockets and keeps them open", text="socket"),
    _page("W12", "/frames", OK, "a frame in a frame in a frame, ten deep", text="depth"),
)  # fmt: skip


def hostile_page(name: str) -> HostilePage:
    """The page of that name; raises `KeyError`."""
    return {page.name: page for page in HOSTILE_PAGES}[name]
