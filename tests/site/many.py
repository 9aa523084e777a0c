"""Many sites on one machine, each built differently: every address with its port is a site of its own.

    async with ManySites(100) as sites:
        sites[7].start_url, sites[7].expected    # the records that a crawl of site 7 must bring home

A site has a list of items over some pages, and a page for each item. What differs: the language and charset,
the words in the paths, how the list goes on (numbers, a rel=next link, offsets, or everything on one page),
the markup that holds name and price, whether a script fills in the price, redirects, a missing item, delay.
All of it follows from the site's number.
"""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from types import TracebackType
from typing import Literal, Self

from aiohttp import web

from pageslots.demo.serving import HitLog, Listener, LoopbackServer

Paging = Literal["number", "next", "offset", "whole"]
Markup = Literal["classes", "microdata", "table", "definition"]

PAGINGS: tuple[Paging, ...] = ("number", "next", "offset", "whole")
MARKUPS: tuple[Markup, ...] = ("classes", "microdata", "table", "definition")
WORDS = (
    ("en", "utf-8", "Kettle", "items"),
    ("de", "iso-8859-1", "Schüssel", "artikel"),
    ("ru", "windows-1251", "Чайник", "tovary"),
    ("ja", "shift_jis", "急須", "shohin"),
    ("fr", "utf-8", "Théière", "produits"),
)
SELECTORS: Mapping[Markup, tuple[str, str]] = {
    "classes": (".name", ".price"),
    "microdata": ("[itemprop=name]", "[itemprop=price]"),
    "table": ("tr.name td", "tr.price td"),
    "definition": ("dl dd:nth-of-type(1)", "dl dd:nth-of-type(2)"),
}
SLOW_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class OneSite:
    """One of the sites: how it is built, where it starts, and what a crawl must find.

    `expected` maps the URL of each item's page to (name, price) as its text; `missing` are item URLs that
    answer 404; `include` are patterns for `follow`, `selectors` the CSS selectors of name and price.
    """

    number: int
    origin: str
    language: str
    charset: str
    noun: str
    folder: str
    paging: Paging
    markup: Markup
    items: int
    per_page: int
    scripted: bool
    redirects: bool
    slow: bool
    missing_item: int | None

    @property
    def start_url(self) -> str:
        """The first page of the list."""
        return f"{self.origin}/{self.folder}/"

    @property
    def site(self) -> str:
        """The politeness key: host:port."""
        return self.origin.removeprefix("http://")

    @property
    def include(self) -> list[str]:
        """Patterns that match the list's pages and the items' pages."""
        return [f"{self.origin}/{self.folder}/*"]

    @property
    def selectors(self) -> tuple[str, str]:
        """CSS selectors of name and price on an item's page."""
        return SELECTORS[self.markup]

    @property
    def expected(self) -> dict[str, tuple[str, str]]:
        """URL of each item's page (where a redirect ends) → name and price."""
        return {
            self.item_url(item): (self.name(item), self.price(item))
            for item in range(self.items)
            if item != self.missing_item
        }

    @property
    def missing(self) -> list[str]:
        """Item pages that the list names and that answer 404."""
        return [] if self.missing_item is None else [self.item_url(self.missing_item)]

    @property
    def list_pages(self) -> int:
        """How many pages the list has."""
        return 1 if self.paging == "whole" else -(-self.items // self.per_page)

    def item_url(self, item: int) -> str:
        """Where an item's page is."""
        return f"{self.origin}/{self.folder}/item-{item}"

    def name(self, item: int) -> str:
        """An item's name."""
        return f"{self.noun} {self.number}-{item}"

    def price(self, item: int) -> str:
        """An item's price, as text."""
        return f"{(self.number * 37 + item * 101) % 9000 + 1000}.00"


def describe(number: int, origin: str) -> OneSite:
    """How site `number` is built: the combinations repeat after 60 sites at the earliest."""
    language, charset, noun, folder = WORDS[number % len(WORDS)]
    items = 4 + number % 7
    return OneSite(
        number=number,
        origin=origin,
        language=language,
        charset=charset,
        noun=noun,
        folder=f"{folder}-{number}",
        paging=PAGINGS[number % len(PAGINGS)],
        markup=MARKUPS[number // 3 % len(MARKUPS)],
        items=items,
        per_page=2 + number % 3,
        scripted=number % 4 == 1,
        redirects=number % 6 == 2,
        slow=number % 10 == 9,
        missing_item=items - 1 if number % 8 == 5 else None,
    )


class ManySites:
    """`count` sites (at most 60,000) at 127.68.0.1, 127.68.0.2, …: `sites[n]`, iterable, with a length."""

    def __init__(self, count: int = 100) -> None:
        self._count = count
        self._sites: list[OneSite] = []
        self._server = LoopbackServer(
            {str(n): Listener(address=f"127.68.{n // 250}.{n % 250 + 1}") for n in range(count)}, self._answer
        )

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        self._sites = [describe(n, self._server.url(str(n), "")) for n in range(self._count)]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._server.__aexit__(kind, error, trace)

    def __getitem__(self, number: int) -> OneSite:
        return self._sites[number]

    def __iter__(self) -> Iterator[OneSite]:
        return iter(self._sites)

    def __len__(self) -> int:
        return self._count

    @property
    def log(self) -> HitLog:
        """Every request; `site` is the site's number as text."""
        return self._server.log

    async def _answer(self, name: str, request: web.Request) -> web.StreamResponse:
        site = self._sites[int(name)]
        if site.slow:
            await asyncio.sleep(SLOW_SECONDS)
        match request.path.strip("/").split("/"):
            case [folder] if folder == site.folder:
                return _page(site, _list(site, request.query))
            case [folder, page] if folder == site.folder and page.startswith(("item-", "go-")):
                return _item(site, page)
            case ["price", number]:
                return web.json_response(site.price(int(number)))
            case _:
                return _page(site, "<h1>404</h1>", status=404)


def _item(site: OneSite, page: str) -> web.StreamResponse:
    kind, _, digits = page.partition("-")
    if not digits.isdigit() or int(digits) >= site.items or int(digits) == site.missing_item:
        return _page(site, "<h1>404</h1>", status=404)
    item = int(digits)
    if kind == "go":
        return web.Response(status=301, headers={"Location": site.item_url(item)})
    price = "" if site.scripted else site.price(item)
    body = _marked_up(site.markup, escape(site.name(item)), price)
    if site.scripted:
        target = site.selectors[1]
        body += (
            f"<script>fetch('/price/{item}').then((answer) => answer.json()).then((price) =>"
            f" {{ document.querySelector('{target}').textContent = price; }});</script>"
        )
    return _page(site, body)


def _marked_up(markup: Markup, name: str, price: str) -> str:
    match markup:
        case "classes":
            return f"<h1 class=name>{name}</h1><p class=price>{price}</p>"
        case "microdata":
            return f"<div itemscope><b itemprop=name>{name}</b> <i itemprop=price>{price}</i></div>"
        case "table":
            return f"<table><tr class=name><td>{name}</td></tr><tr class=price><td>{price}</td></tr></table>"
        case "definition":
            return f"<dl><dt>name</dt><dd>{name}</dd><dt>price</dt><dd>{price}</dd></dl>"


def _list(site: OneSite, query: Mapping[str, str]) -> str:
    """One page of the list: its items, and the way on."""
    if site.paging == "whole":
        return _item_links(site, range(site.items))
    offset = query.get("offset") if site.paging == "offset" else None
    index = int(offset) // site.per_page if offset is not None else int(query.get("page", "1")) - 1
    first = index * site.per_page
    body = _item_links(site, range(first, min(site.items, first + site.per_page)))
    pages = range(site.list_pages)
    match site.paging:
        case "number":
            body += "".join(f"<a href='?page={page + 1}'>{page + 1}</a> " for page in pages)
        case "next" if index + 1 in pages:
            body += f"<a rel=next href='?page={index + 2}'>more</a>"
        case "offset" if index + 1 in pages:
            body += f"<a href='?offset={first + site.per_page}'>more</a>"
    return body


def _item_links(site: OneSite, items: range) -> str:
    prefix = "go" if site.redirects else "item"
    return "".join(f"<li><a href='{prefix}-{item}'>{escape(site.name(item))}</a></li>\n" for item in items)


def _page(site: OneSite, body: str, *, status: int = 200) -> web.Response:
    head = f"<html lang={site.language}><title>{escape(site.noun)}</title>"
    text = f"<!doctype html>{head}<body>{body}</body></html>"
    return web.Response(
        body=text.encode(site.charset),
        status=status,
        headers={"Content-Type": f"text/html; charset={site.charset}"},
    )
