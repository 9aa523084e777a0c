"""The documents of the hostile site that are fixed text or depend on nothing but their URL."""

import gzip
import zlib
from collections.abc import Iterator
from html import escape

from tests.site.odd_links import BASE, odd_links, spellings

from pageslots.demo.trouble import CHALLENGE, CRASH, ENDLESS, after_load

MICROTASKS = "const again = () => Promise.resolve().then(again); again();"
TIMERS = "let ticks = 0; setInterval(() => document.title = ++ticks, 1);"

BOMB_MIB = 512
SESSION_PAGES = 20


def document(body: str, *, head: str = "", title: str = "hostile") -> str:
    """A small HTML document."""
    return (
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{title}</title>{head}</head>"
        f"<body>{body}</body></html>"
    )


def fixed_documents(neighbour: str) -> dict[str, str]:
    """Path → document, for pages that never change. `neighbour` is the origin that is off limits."""
    socket = neighbour.replace("http", "ws", 1)
    return {
        "/": document("<h1>a quiet page</h1>"),
        "/endless/after-load": document("<p>before the loop", head=after_load(ENDLESS, 50)),
        "/endless/inline": document(f"<script>{ENDLESS}</script>"),
        "/endless/microtasks": document("<p>before", head=after_load(MICROTASKS, 50)),
        "/endless/timers": document("<p>ticking", head=after_load(TIMERS, 0)),
        "/crash/after-load": document("<p>mind the step", head=after_load(CRASH, 50)),
        "/crash/inline": document(f"<script>{CRASH}</script>"),
        "/challenge": document(CHALLENGE, title="Just a moment..."),
        "/empty": "<!doctype html><html><head></head><body></body></html>",
        "/inside/script": document(f"<p>on the way<script>location = '{neighbour}/script'</script>"),
        "/inside/refresh": document(
            "<p>on the way", head=f'<meta http-equiv="refresh" content="0; url={neighbour}/refresh">'
        ),
        "/inside/parts": document(
            f"<p>nothing inside<img src='{neighbour}/image'><iframe src='{neighbour}/frame'></iframe>"
            f"<script src='{neighbour}/script'></script>"
            f"<script>fetch('{neighbour}/fetch', {{mode: 'no-cors'}}).catch(() => {{}});"
            f"navigator.sendBeacon('{neighbour}/beacon', 'x');"
            f"new WebSocket('{socket}/socket').onerror = () => {{}}</script>"
        ),
        "/dialog/alert": document("<script>alert('first')</script><p>after the dialog"),
        "/dialog/confirm": document("<script>confirm('sure?'); prompt('name?')</script><p>after the dialog"),
        "/dialog/storm": document(
            "<script>for (let i = 0; i < 500; i++) alert(i)</script><p>after the dialog"
        ),
        "/dialog/beforeunload": document(
            "<p>stay with us<script>"
            "onbeforeunload = (event) => { event.preventDefault(); return 'stay'; }</script>"
        ),
        "/dialog/print": document("<p>on paper", head=after_load("print();", 0)),
        "/dialog/permissions": document(
            "<p>where are you<script>navigator.geolocation?.getCurrentPosition(() => {});"
            "globalThis.Notification?.requestPermission();"
            "navigator.mediaDevices?.getUserMedia({video: true}).catch(() => {})</script>"
        ),
        "/download/after-load": document(
            "<p>see your downloads", head=after_load("location = '/download/attachment';", 0)
        ),
        "/popups": document(
            "<p>windows everywhere<script>for (let i = 0; i < 20; i++) open('/popups/' + i)</script>"
        ),
        "/late/never-loads": document("<p>almost there<img src='/late/no-answer'>"),
        "/heavy": heavy_document(),
        "/worker": document(
            "<p>worker<script>navigator.serviceWorker?.register('/worker.js').catch(() => {})</script>"
        ),
        "/refresh/once": document(
            "<p>first", head='<meta http-equiv="refresh" content="0; url=/refresh/target">'
        ),
        "/refresh/target": document("<p>the target of the refresh"),
        "/refresh/self": document("<p>again", head='<meta http-equiv="refresh" content="0">'),
        "/socket": document(
            "<p>socket<script>for (let i = 0; i < 5; i++)"
            " new WebSocket(location.origin.replace('http', 'ws') + '/socket/open')</script>"
        ),
        "/redirect/end": document("<p>end of the chain"),
    }


HEAVY_PARTS = (
    *(f"/heavy/picture-{number}.png" for number in range(12)),
    "/heavy/font.ttf",
    "/heavy/film.mp4",
)
"""What a pool with the default blocking never fetches of `/heavy`."""
LIGHT_PARTS = ("/heavy/style.css", "/heavy/script.js")
"""What it does fetch."""


def heavy_document() -> str:
    """A page of ordinary weight: pictures, a font, a film, a style sheet and a script."""
    pictures = "".join(
        f"<img src='/heavy/picture-{number}.png' width=280 height=210>" for number in range(12)
    )
    return document(
        f"<h1>a heavy page</h1>{pictures}<video src='/heavy/film.mp4' preload=auto></video>",
        head="<link rel=stylesheet href=/heavy/style.css><script src=/heavy/script.js defer></script>",
    )


def many_links(count: int) -> Iterator[bytes]:
    """A page of `count` links to distinct pages, in pieces."""
    yield b"<!doctype html><title>links</title><body>"
    for batch in _batches(count):
        yield "".join(f'<a href="/linked/{number}">{number}</a>\n' for number in batch).encode()


def _batches(count: int) -> Iterator[range]:
    for start in range(0, count, 1000):
        yield range(start, min(count, start + 1000))


def calendar(year: int, month: int) -> str:
    """A month that links to the one before and the one after, for ever."""
    index = year * 12 + month - 1
    links = (
        f"<a href='/calendar/{i // 12}/{i % 12 + 1}'>{i // 12}-{i % 12 + 1}</a>"
        for i in (index - 1, index + 1)
    )
    return document(f"<h1>{year}-{month:02}</h1>{' '.join(links)}")


def session_page(name: str, session: int) -> str:
    """One of `SESSION_PAGES` pages; its links carry `session`, which no two answers share."""
    links = "".join(f"<a href='/session/page-{n}?sid={session:08x}'>{n}</a>" for n in range(SESSION_PAGES))
    return document(f"<h1>{escape(name)}</h1>{links}")


def spelled_page(host: str, port: int) -> str:
    """One page linked under 50 spellings of its URL."""
    return document("".join(f'<a href="{escape(url)}">same</a>\n' for url in spellings(host, port)))


def odd_links_page(origin: str) -> str:
    """Links of every sort below a `base href`."""
    links = "".join(f'<a href="{escape(href)}">x</a>\n' for href in odd_links(origin))
    return document(links + "<a>no href</a><a name=top></a>", head=f'<base href="{BASE}">')


def frame(depth: int) -> str:
    """A frame that holds the next one, down to 0."""
    inner = f"<iframe src='/frames?depth={depth - 1}'></iframe>" if depth else ""
    return document(f"<p>depth {depth}{inner}")


def encoded_page(charset: str) -> tuple[bytes, str]:
    """A page that is not UTF-8, and its Content-Type."""
    match charset:
        case "windows-1251":
            page = "<!doctype html><title>Чайник</title><p>Чайник <a href='/поиск?q=чай'>поиск</a>"
            return page.encode("windows-1251"), "text/html; charset=windows-1251"
        case "shift_jis":
            page = "<!doctype html><meta charset=shift_jis><title>急須</title><p>急須と湯呑み"
            return page.encode("shift_jis"), "text/html"
        case "utf-16":
            page = "<!doctype html><title>Чайник</title><p>Чайник"
            return b"\xff\xfe" + page.encode("utf-16-le"), "text/html; charset=iso-8859-1"
    raise KeyError(charset)


def gzip_bomb() -> bytes:
    """`BOMB_MIB` MiB of spaces between two marks, as a gzip of half a MiB, made piece by piece."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = [packer.compress(b"<!doctype html><p>a bomb<!--")]
    piece = b" " * 2**20
    packed += [packer.compress(piece) for _ in range(BOMB_MIB)]
    return b"".join([*packed, packer.compress(b"-->"), packer.flush()])


def pdf() -> bytes:
    """The smallest PDF with a page."""
    parts = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]>>",
    ]
    out, places = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, start=1):
        places.append(len(out))
        out += b"%d 0 obj" % number + part + b"endobj\n"
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    trailer = b"trailer<</Size 4/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % len(out)
    return out + b"xref\n0 4\n0000000000 65535 f \n" + table + trailer


def small_file() -> bytes:
    """Something to download: 64 KiB that are no text."""
    return gzip.compress(b"a file, not a page", mtime=0).ljust(65_536, b"\0")
