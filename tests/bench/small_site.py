"""One local site of small pages that cost the server nothing: what is measured is who loads them.

Every URL `/page/<n>` is the same page of 60 list items with a style sheet, a script and four pictures that
the browser may keep in its cache, as most sites allow.
"""

import struct
import zlib
from types import TracebackType
from typing import Self

from aiohttp import web

from pageslots.demo.serving import Listener, LoopbackServer

_PICTURES = 4
_HEAD = (
    "<!doctype html><html lang=en><head><title>Kettles</title><link rel=stylesheet href=/style.css></head>"
)
_PAGE = (
    f"{_HEAD}<body><h1>Kettles</h1>"
    + "".join(f"<img src=/picture-{n}.png width=64 height=64 alt=''>" for n in range(_PICTURES))
    + "<ul>"
    + "".join(
        f"<li class=item><a href=/page/{n}>Kettle {n}</a> <span class=price>{n}.90</span></li>"
        for n in range(60)
    )
    + "</ul><script src=/script.js></script></body></html>"
)
_STYLE = "".join(f".c{n} {{ color: rgb({n % 256}, 40, 60); margin: {n % 9}px }}\n" for n in range(300))
_SCRIPT = "document.querySelectorAll('.price').forEach((price) => { price.textContent = '$' + price.textContent; });"


def png(side: int, *, noise: bytes = b"", level: int = 6) -> bytes:
    """A grey square of `side` pixels; with `noise`, its pixels are those bytes."""
    pixels = noise or bytes(side * side)
    rows = b"".join(b"\0" + pixels[row * side : (row + 1) * side] for row in range(side))
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows, level)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in parts
    )


class SmallSite:
    """`async with SmallSite() as site: site.url(7)`."""

    def __init__(self) -> None:
        self._server = LoopbackServer({"site": Listener()}, self._answer)
        self._picture = png(64)

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._server.__aexit__(kind, error, trace)

    def url(self, number: int) -> str:
        """The page of that number."""
        return self._server.url("site", f"/page/{number}")

    async def _answer(self, _: str, request: web.Request) -> web.StreamResponse:
        kept = {"Cache-Control": "public, max-age=3600"}
        match request.path.strip("/").split("/"):
            case ["page", _]:
                return web.Response(text=_PAGE, content_type="text/html")
            case ["style.css"]:
                return web.Response(text=_STYLE, content_type="text/css", headers=kept)
            case ["script.js"]:
                return web.Response(text=_SCRIPT, content_type="text/javascript", headers=kept)
            case [name] if name.endswith(".png"):
                return web.Response(body=self._picture, content_type="image/png", headers=kept)
            case _:
                return web.Response(status=404)
