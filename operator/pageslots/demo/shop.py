"""A small shop with three country sites, on this machine: what the demo crawls, and tests measure against.

One process, one port for each country. Money is the country's, words are the visitor's (`Accept-Language`);
today's price and the visitor's clock are filled in by a script. `catalogue` knows what every page must say.
Run it alone:

    python -m pageslots.demo.shop [--port-base 18081] [--address 127.0.0.1] [--slow-seconds 3]
"""

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from types import MappingProxyType, TracebackType
from typing import Self

from aiohttp import web

from pageslots.demo.catalogue import (
    KINDS,
    PAGES,
    PRODUCTS,
    STORES,
    Store,
    chosen_language,
    price_text,
    today_amount,
)
from pageslots.demo.pages import Pages
from pageslots.demo.pictures import hero_picture, product_picture
from pageslots.demo.serving import HitLog, Listener, LoopbackServer, html
from pageslots.demo.trouble import Troubles
from pageslots.demo.webfont import web_font

PORT_BASE = 18081
"""Where the demo's manifests expect the first country: SG 18081, DE 18082, JP 18083."""

SLOW_SECONDS = 3.0

LOGO = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64">
<rect width="64" height="64" rx="14" fill="#c24a22"/>
<path d="M18 26h28l-4 26H22z" fill="#fffaf1"/><path d="M34 26h12l-4 26h-6z" fill="#e2d6c2"/>
<path d="M32 24c-10-2-12-9-12-14 7 0 12 5 12 14zm0 0c0-9 5-14 12-14 0 5-2 12-12 14z" fill="#f7d696"/></svg>
"""


class ShopSite:
    """The running shop: `async with ShopSite() as shop: shop.url("SG", "/product/mug-ember")`.

    `port_base` None takes any free ports, otherwise the countries get `port_base`, + 1, + 2 in the order of
    `STORES`. `hosts` names hosts that resolve to `address` and stand in the URLs in its place. `log` has
    every request. Entering raises `OSError` (a sentence with address and port) when a port is taken.
    """

    def __init__(
        self,
        *,
        countries: Iterable[str] = tuple(STORES),
        address: str = "127.0.0.1",
        port_base: int | None = None,
        hosts: Mapping[str, str] = MappingProxyType({}),
        slow_seconds: float = SLOW_SECONDS,
    ) -> None:
        self._files: dict[str, tuple[bytes, str]] = {}
        self._troubles = Troubles(slow_seconds=slow_seconds)
        self._server = LoopbackServer(
            {
                country: Listener(
                    address=address,
                    port=0 if port_base is None else port_base + list(STORES).index(country),
                    host=hosts.get(country),
                )
                for country in countries
            },
            self._answer,
        )

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._server.__aexit__(kind, error, trace)

    @property
    def log(self) -> HitLog:
        """Every request that arrived; `site` is the country."""
        return self._server.log

    def url(self, country: str, path: str = "/") -> str:
        """The absolute URL of `path` on the site of a country."""
        return self._server.url(country, path)

    def port(self, country: str) -> int:
        """The port of a country's site."""
        return self._server.port(country)

    async def _answer(self, country: str, request: web.Request) -> web.StreamResponse:
        store = STORES[country]
        pages = Pages(store, chosen_language(request.headers.get("Accept-Language", ""), store.language))
        answer: web.StreamResponse | None = None
        match request.path.strip("/").split("/"):
            case [""]:
                answer = html(pages.home())
            case ["products"]:
                answer = _product_list(pages, request.query.get("page", "1"))
            case ["kind", key] if key in [kind.key for kind in KINDS]:
                answer = html(pages.kind(key))
            case ["product", sku] if sku in PRODUCTS:
                answer = html(pages.product(sku))
            case ["api", "price"]:
                answer = _price(store, request)
            case ["static" | "pictures", name]:
                answer = await self._file(name)
            case ["robots.txt"]:
                answer = _robots(request)
            case ["sitemap.xml"]:
                answer = _sitemap(request)
            case ["trouble", *rest]:
                answer = await self._troubles.answer(country, rest, request, pages)
        return html(pages.not_found(), status=404) if answer is None else answer

    async def _file(self, name: str) -> web.Response | None:
        if name not in self._files:
            made = await asyncio.to_thread(_make_file, name)  # a picture takes about 40 ms
            if made is None:
                return None
            self._files[name] = made
        body, content_type = self._files[name]
        headers = {"Cache-Control": "public, max-age=3600"}
        return web.Response(body=body, content_type=content_type, headers=headers)


def _product_list(pages: Pages, page: str) -> web.Response | None:
    if page.isascii() and page.isdigit() and len(page) < 5 and 1 <= int(page) <= PAGES:
        return html(pages.product_list(int(page)))
    return None


def _price(store: Store, request: web.Request) -> web.Response:
    product = PRODUCTS.get(request.query.get("sku", ""))
    if product is None:
        return web.json_response({"error": "no such product"}, status=404)
    amount = today_amount(store, product)
    language = chosen_language(request.headers.get("Accept-Language", ""), store.language)
    answer = {
        "sku": product.sku,
        "amount": amount,
        "currency": store.currency,
        "text": price_text(store, amount, language),
    }
    return web.json_response(answer, headers={"Cache-Control": "no-store"}, dumps=_dumps)


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _origin(request: web.Request) -> str:
    return f"http://{request.host}"


def _robots(request: web.Request) -> web.Response:
    text = f"User-agent: *\nDisallow: /trouble/\nDisallow: /api/\n\nSitemap: {_origin(request)}/sitemap.xml\n"
    return web.Response(text=text)


def _sitemap(request: web.Request) -> web.Response:
    paths = ["/", *(f"/products?page={number}" for number in range(1, PAGES + 1))]
    paths += [f"/kind/{kind.key}" for kind in KINDS] + [f"/product/{sku}" for sku in PRODUCTS]
    urls = "".join(f"<url><loc>{_origin(request)}{path}</loc></url>\n" for path in paths)
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{urls}</urlset>\n'
    )
    return web.Response(text=text, content_type="application/xml")


def _make_file(name: str) -> tuple[bytes, str] | None:
    """The bytes of a static file or picture and their type; None when there is none of that name."""
    makers: dict[str, tuple[Callable[[], bytes], str]] = {
        "style.css": (lambda: _packaged("style.css"), "text/css"),
        "shop.js": (lambda: _packaged("shop.js"), "text/javascript"),
        "kiln-dots.ttf": (web_font, "font/ttf"),
        "logo.svg": (LOGO.encode, "image/svg+xml"),
        "hero.png": (hero_picture, "image/png"),
    }
    sku = name.removesuffix(".png")
    if sku in PRODUCTS:
        return product_picture(sku), "image/png"
    if name not in makers:
        return None
    make, content_type = makers[name]
    return make(), content_type


def _packaged(name: str) -> bytes:
    return (resources.files("pageslots.demo") / "static" / name).read_bytes()


async def _serve(shop: ShopSite) -> None:
    """Serve until SIGINT or SIGTERM."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with shop:
        for country in STORES:
            print(f"{country}  {shop.url(country)}", flush=True)
        await stop.wait()


def main(arguments: list[str] | None = None) -> int:
    """Run the shop alone; returns the exit code: 0 after a signal, 2 when a port can't be used."""
    parser = argparse.ArgumentParser(prog="python -m pageslots.demo.shop", description="Serve the demo shop.")
    parser.add_argument(
        "--port-base", type=int, default=PORT_BASE, help="port of SG; DE and JP follow (%(default)s)"
    )
    parser.add_argument("--address", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument(
        "--slow-seconds", type=float, default=SLOW_SECONDS, help="how slow /trouble/slow is (%(default)s)"
    )
    chosen = parser.parse_args(arguments)
    shop = ShopSite(address=chosen.address, port_base=chosen.port_base, slow_seconds=chosen.slow_seconds)
    try:
        asyncio.run(_serve(shop))
    except OSError as error:
        print(f"{error.strerror}; choose others with --port-base", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
