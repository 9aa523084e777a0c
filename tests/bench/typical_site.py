"""Pages of typical weights, by kind of content, as bytes on the wire.

The weights are the medians of HTTP Archive's crawl of July 2025 for desktop pages, in KB (of 1,024 bytes), from
the chapter "Page Weight" of its Web Almanac 2025 (https://almanac.httparchive.org/en/2025/page-weight, section
"Median page by the bytes"):

    kind          home page   inner page
    HTML              22           21
    CSS               82           85
    JavaScript       697          719
    fonts            139          138
    images         1,058          442
    media            288             -      (home pages that have a video at all: section "Video bytes")

The median of the whole home page is 2,862 KB, of the inner page 1,963 KB: medians of parts do not add up to the
median of the whole, so these pages are lighter than that.

What one page of a site shares with the next is not in that source. Here a site has one set of style sheets,
scripts and fonts (an inner page adds what it has more), which may be cached, and each page has its own pictures,
as products have.
"""

import random
import struct
from types import TracebackType
from typing import Self

from aiohttp import web
from tests.bench.small_site import png

from pageslots.demo.serving import Listener, LoopbackServer

KIB = 1024
SCRIPTS, STYLES, FONTS = (697, 22), (82, 3), (46, 46, 47)
"""KB of each file; of the scripts and style sheets the second is loaded by inner pages only."""
HOME_IMAGES = (183, 183, 183, 183, 183, 48, 48, 8, 8, 8, 8, 8, 7)
INNER_IMAGES = (183, 123, 48, 48, 8, 8, 8, 8, 8)
"""Upper and middle percentiles of single pictures in the same chapter, adding up to the medians above."""
HOME_MEDIA = 288
HOME_HTML, INNER_HTML = 22, 21


class TypicalSite:
    """`/` is the home page, `/inner/<n>` are the others; `port` is where it listens."""

    def __init__(self) -> None:
        self._server = LoopbackServer({"site": Listener()}, self._answer)
        self._random = random.Random(1)
        self._files: dict[str, tuple[bytes, str]] = {}

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._server.__aexit__(kind, error, trace)

    @property
    def port(self) -> int:
        """On 127.0.0.1."""
        return self._server.port("site")

    async def _answer(self, _: str, request: web.Request) -> web.StreamResponse:
        match request.path.strip("/").split("/"):
            case [""]:
                return web.Response(text=_page("home"), content_type="text/html")
            case ["inner", number]:
                return web.Response(text=_page(number), content_type="text/html")
            case ["file", kind, _, size]:
                body, content_type = self._file(request.path, kind, int(size))
                headers = {"Cache-Control": "public, max-age=3600"}
                return web.Response(body=body, content_type=content_type, headers=headers)
            case _:
                return web.Response(status=404)

    def _file(self, path: str, kind: str, kib: int) -> tuple[bytes, str]:
        """Random bytes of the right kind and size: what is sent is what is counted."""
        if path not in self._files:
            noise = self._random.randbytes(kib * KIB)
            self._files[path] = {
                "js": (f"/*{noise.hex()[: kib * KIB - 4]}*/".encode(), "text/javascript"),
                "css": (f"/*{noise.hex()[: kib * KIB - 4]}*/".encode(), "text/css"),
                "font": (noise, "font/woff2"),
                "image": (_picture(noise), "image/png"),
                "media": (_sound(noise), "audio/wav"),
            }[kind]
        return self._files[path]


def _page(name: str) -> str:
    home = name == "home"
    styles = STYLES[:1] if home else STYLES
    scripts = SCRIPTS[:1] if home else SCRIPTS
    head = "".join(f"<link rel=stylesheet href=/file/css/{n}/{size}>" for n, size in enumerate(styles))
    faces = "".join(
        f"@font-face {{ font-family: f{n}; src: url(/file/font/{n}/{size}) format('woff2') }}"
        for n, size in enumerate(FONTS)
    )
    body = "".join(f"<p style='font-family: f{n}'>Ag</p>" for n in range(len(FONTS)))
    body += "".join(
        f"<img src=/file/image/{name}-{n}/{size} width=99 height=99 alt=''>"
        for n, size in enumerate(HOME_IMAGES if home else INNER_IMAGES)
    )
    body += f"<audio src=/file/media/0/{HOME_MEDIA} preload=auto></audio>" if home else ""
    body += "".join(f"<script src=/file/js/{n}/{size}></script>" for n, size in enumerate(scripts))
    page = f"<!doctype html><html><head><title>{name}</title>{head}<style>{faces}</style></head><body>{body}"
    text = "A kettle of stoneware, glazed in grey and fired twice. "
    room = (HOME_HTML if home else INNER_HTML) * KIB - len(page) - len("<p></p></body></html>")
    return f"{page}<p>{(text * (room // len(text) + 1))[:room]}</p></body></html>"


def _picture(noise: bytes) -> bytes:
    side = int(len(noise) ** 0.5)
    return png(side, noise=noise[: side * side], level=0)


def _sound(noise: bytes) -> bytes:
    """Eight-bit mono at 8 kHz: a media file that every Chromium can play."""
    head = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8_000, 8_000, 1, 8)
    data = struct.pack("<4sI", b"data", len(noise)) + noise
    return struct.pack("<4sI4s", b"RIFF", 4 + len(head) + len(data), b"WAVE") + head + data
