"""Which requests of a page are never made, and by which means.

Three means, the cheapest that works for each type, all of which keep the HTTP cache and add no header
(`page.route` turns the cache off, sends `cache-control: no-cache` and costs some 20 ms a page):

* images and fonts: flags of Blink, no message at all;
* other types and URL patterns: CDP `Fetch` asks about *those requests only*, and we refuse them. CDP's
  `Network.setBlockedURLs` would need `Network.enable`, which reports every request of every page.

The page itself, the main frame's document, is never blocked: an image URL may be a start URL.
"""

from dataclasses import dataclass
from typing import Any

BY_FLAG = frozenset({"image", "font"})

_CDP_TYPES = {
    "stylesheet": "Stylesheet",
    "image": "Image",
    "media": "Media",
    "font": "Font",
    "script": "Script",
    "xhr": "XHR",
    "fetch": "Fetch",
    "eventsource": "EventSource",
    "ping": "Ping",
    "other": "Other",
}
"""Those that CDP can ask about."""
BLOCKABLE = frozenset(_CDP_TYPES)
_SUBFRAME = "Document"


@dataclass(frozen=True, slots=True)
class Blocking:
    """`types` are Playwright's names of resource types; `patterns` are URLs with `*` and `?`."""

    types: frozenset[str] = frozenset()
    patterns: tuple[str, ...] = ()

    @property
    def blink_settings(self) -> tuple[str, ...]:
        """For `--blink-settings`."""
        return ("imagesEnabled=false",) if "image" in self.types else ()

    @property
    def flags(self) -> tuple[str, ...]:
        """For Chromium's command line."""
        return ("--disable-remote-fonts",) if "font" in self.types else ()

    @property
    def fetch_patterns(self) -> list[dict[str, Any]]:
        """For CDP `Fetch.enable`; empty: nothing has to be asked about."""
        by_type = [{"resourceType": _CDP_TYPES[t]} for t in sorted((self.types - BY_FLAG) & BLOCKABLE)]
        by_url = [
            {"urlPattern": pattern, "resourceType": kind}
            for pattern in self.patterns
            for kind in (*_CDP_TYPES.values(), _SUBFRAME)
        ]
        return by_type + by_url
