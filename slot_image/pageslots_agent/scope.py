"""Which links are followed: scope, depth, include and exclude.

A link is judged by the start page that its page descends from: by that page's own address and, as most sites
redirect their front page (`example.com` → `www.example.com`), by the address it ended at. The scheme never
matters: a site that serves http and https is one site.

| scope  | the link's …                                                                      |
|--------|-----------------------------------------------------------------------------------|
| page   | nothing is followed                                                               |
| prefix | host is the same, and its path begins with the start path up to its last slash    |
| host   | host and port are the same                                                        |
| domain | registrable domain is the same; IP addresses and single-label hosts: host and port |

`include` and `exclude` are globs on the whole address: `*` stands for any run of characters, everything else
for itself (a `?` too, as it is part of URLs). They are matched in linear time;
docs/decisions/link-patterns.md says why they are not regular expressions.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from publicsuffixlist import PublicSuffixList

from pageslots.wire import Follow
from pageslots_agent.urls import Address, parse

SCOPES = ("page", "prefix", "host", "domain")
DOMAINS_REMEMBERED = 4_096


class Glob:
    """A pattern in which `*` stands for any run of characters; matches in linear time."""

    def __init__(self, pattern: str) -> None:
        first, *rest = pattern.split("*")
        self._prefix = first
        self._middle = tuple(part for part in rest[:-1] if part)
        self._suffix = rest[-1] if rest else None

    def matches(self, text: str) -> bool:
        """Whether the whole of `text` fits the pattern."""
        if self._suffix is None:
            return text == self._prefix
        if not text.startswith(self._prefix):
            return False
        at = len(self._prefix)
        for part in self._middle:  # leftmost fits are enough: a later one leaves no more room
            found = text.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        return len(text) - at >= len(self._suffix) and text.endswith(self._suffix)


class Registrable(Protocol):
    """Gives the registrable domain of a host name, or None when it has none."""

    def __call__(self, hostname: str, /) -> str | None: ...  # noqa: D102 -- said above


def registrable_domains() -> Registrable:
    """Registrable domains by the bundled public suffix list (2 MB and 50 ms, so made when needed)."""
    suffixes = PublicSuffixList()

    @lru_cache(maxsize=DOMAINS_REMEMBERED)
    def registrable(hostname: str) -> str | None:
        last_label = hostname.rstrip(".").rpartition(".")[2]
        if hostname.startswith("[") or last_label.isdigit():  # the standard writes every IPv4 form as digits
            return None
        return suffixes.privatesuffix(hostname)

    return registrable


@dataclass(frozen=True, slots=True)
class Anchor:
    """What links of a start page's descendants are compared with."""

    host: str
    prefix: str
    site: str

    def to_list(self) -> list[str]:
        """As kept in a checkpoint."""
        return [self.host, self.prefix, self.site]


class Scope:
    """The rule of one attempt."""

    def __init__(self, follow: Follow) -> None:
        if follow.scope not in SCOPES:
            raise ValueError(f"follow.scope: {follow.scope!r} is not one of {', '.join(SCOPES)}")
        self._scope = follow.scope
        self._max_depth = follow.max_depth
        self._include = tuple(Glob(pattern) for pattern in follow.include)
        self._exclude = tuple(Glob(pattern) for pattern in follow.exclude)
        self._registrable = registrable_domains() if follow.scope == "domain" else None

    def reads_links(self, depth: int) -> bool:
        """Whether links of a page at `depth` can be followed at all."""
        return self._scope != "page" and (self._max_depth is None or depth < self._max_depth)

    def anchors(self, urls: Iterable[str]) -> list[Anchor]:
        """The anchors of a start page, by its address and the one it ended at."""
        return list(dict.fromkeys(self._anchor(parse(url)) for url in urls))

    def admits(self, link: Address, anchors: Iterable[Anchor]) -> bool:
        """Whether a link found below a start page with these anchors is followed."""
        if self._scope == "page" or not self.covers(link, anchors):
            return False
        if self._include and not any(glob.matches(link.url) for glob in self._include):
            return False
        return not any(glob.matches(link.url) for glob in self._exclude)

    def covers(self, address: Address, anchors: Iterable[Anchor]) -> bool:
        """Whether an address is within the scope, whatever `include` and `exclude` say."""
        return any(self._within(address, anchor) for anchor in anchors)

    def _anchor(self, start: Address) -> Anchor:
        return Anchor(start.host, start.path.rpartition("/")[0] + "/", self._site(start))

    def _within(self, link: Address, anchor: Anchor) -> bool:
        match self._scope:
            case "host":
                return link.host == anchor.host
            case "prefix":
                return link.host == anchor.host and link.path.startswith(anchor.prefix)
            case _:
                return self._site(link) == anchor.site

    def _site(self, address: Address) -> str:
        if self._registrable is None:
            return address.host
        return self._registrable(address.hostname) or address.host
