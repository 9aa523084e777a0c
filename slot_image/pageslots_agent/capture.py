"""What is kept of a page beside the extracts: its text, HTML, links and a picture.

| capture    | with an output                             | without                      |
|------------|--------------------------------------------|------------------------------|
| text       | in the record up to MAX_INLINE_BYTES, else a file | in the record, cut there |
| html       | a file                                     | in the record, cut there     |
| links      | in the record up to MAX_INLINE_LINKS, else a file, one URL a line | in the record, cut there |
| screenshot | a file                                     | left out, which is said      |

An entry of the record's `captures` is `{"file": path below the output, "bytes": n}`, or `{"inline": text,
"bytes": n}` with `"cut": true` when it is not all, or `{"error": why}`. Links in the record are its `links`.
"""

from collections.abc import Sequence
from typing import Any

from pageslots_agent.output import Folder
from pageslots_agent.ports import PageUnreadableError, Tab
from pageslots_agent.record import Visited

KINDS = ("text", "html", "links", "screenshot")
FAILURE_KINDS = ("html", "screenshot")
MAX_INLINE_BYTES = 64 * 1024
MAX_INLINE_LINKS = 1_000
MAX_HTML_BYTES = 16 * 1024 * 1024
FAILURES_CAPTURED = 5


class Capturer:
    """Takes captures through the tab, and keeps the large ones in the output's folder."""

    def __init__(self, tab: Tab, folder: Folder | None) -> None:
        self._tab = tab
        self._folder = folder

    async def take(self, visited: Visited, kinds: Sequence[str]) -> tuple[dict[str, Any], list[str] | None]:
        """The record's `captures` and `links` for the page in the tab; raises OutputError."""
        captures: dict[str, Any] = {}
        links: list[str] | None = None
        for kind in kinds:
            if kind == "links":
                found = [link.url for link in visited.reading.links] if visited.reading else []
                links = found[:MAX_INLINE_LINKS]
                if len(found) > MAX_INLINE_LINKS:
                    captures["links"] = await self._links(visited, found)
                continue
            try:
                captures[kind] = await self._one(visited, kind)
            except PageUnreadableError as error:
                captures[kind] = {"error": str(error)}
        return captures, links

    async def _one(self, visited: Visited, kind: str) -> dict[str, Any]:
        if kind == "screenshot":
            if self._folder is None:
                return {"error": "a screenshot needs an output"}
            return await self._file(visited, "screenshot.png", await self._tab.screenshot())
        if kind == "html":
            html = visited.html
            if html is None:
                html = await self._tab.html(max_bytes=MAX_HTML_BYTES)
            content = html.encode("utf-8", "replace")
            return await self._file(visited, "page.html", content)
        content = (await self._tab.text()).encode("utf-8", "replace")
        if len(content) <= MAX_INLINE_BYTES:
            return _inline(content)
        return await self._file(visited, "text.txt", content)

    async def _links(self, visited: Visited, found: list[str]) -> dict[str, Any]:
        content = "".join(f"{url}\n" for url in found).encode()
        if self._folder is None:
            return {"cut": True, "bytes": len(content)}
        return await self._file(visited, "links.txt", content)

    async def _file(self, visited: Visited, suffix: str, content: bytes) -> dict[str, Any]:
        if self._folder is None:
            return _inline(content)
        name = self._folder.capture_name(visited.page.id, suffix)
        await self._folder.keep(name, content)
        return {"file": name, "bytes": len(content)}


def _inline(content: bytes) -> dict[str, Any]:
    if len(content) <= MAX_INLINE_BYTES:
        return {"inline": content.decode(), "bytes": len(content)}
    return {
        "inline": content[:MAX_INLINE_BYTES].decode("utf-8", "ignore"),
        "bytes": len(content),
        "cut": True,
    }
