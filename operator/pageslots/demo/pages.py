"""The shop's pages as HTML. Pure: a store, a language and a product in, a document out."""

from collections.abc import Iterable
from html import escape

from pageslots.demo.catalogue import (
    KINDS,
    LOCALES,
    PAGES,
    PRODUCTS,
    Language,
    Product,
    Store,
    expected_page,
    expected_product,
    list_amount,
    of_kind,
    price_text,
)
from pageslots.demo.texts import TEXTS, Texts

NAME = "Kiln & Cedar"


class Pages:
    """The pages of one store in one language."""

    def __init__(self, store: Store, language: Language) -> None:
        self._store = store
        self._language: Language = language
        self._texts: Texts = TEXTS[language]

    def home(self) -> str:
        """The front page: four products, and links to the list and the kinds."""
        texts = self._texts
        see_all = texts.see_all.format(count=len(PRODUCTS))
        return self._document(
            texts.claim,
            f"""<section class="hero"><div class="width">
<img src="/pictures/hero.png" width="1200" height="460" alt="">
<div class="words"><div><h1>{escape(texts.claim)}</h1><p>{escape(texts.lead)}</p></div>
<a class="button" href="/products">{escape(see_all)}</a></div>
</div></section>
<main class="width"><h2>{escape(texts.new_in)}</h2>
{self._cards(PRODUCTS[sku] for sku in expected_page(PAGES)[-4:])}
</main>""",
        )

    def product_list(self, number: int) -> str:
        """Page `number` of the list, from 1, with a link `rel=next` except on the last."""
        return self._list(
            self._texts.all_products,
            [PRODUCTS[sku] for sku in expected_page(number)],
            total=len(PRODUCTS),
            below=self._page_links(number),
        )

    def kind(self, key: str) -> str:
        """The products of one kind on one page."""
        [kind] = [kind for kind in KINDS if kind.key == key]
        products = of_kind(key)
        return self._list(kind.plurals[self._language], products, total=len(products))

    def product(self, sku: str) -> str:
        """One product; today's price is filled in by the script."""
        texts, product = self._texts, PRODUCTS[sku]
        says = expected_product(self._store.country, sku, self._language)
        tax = texts.tax.format(percent=self._store.tax_percent)
        stock = (
            f'<dd class="stock in-stock">{escape(texts.in_stock.format(count=product.stock))}</dd>'
            if product.stock
            else f'<dd class="stock sold-out">{escape(texts.sold_out)}</dd>'
        )
        kind = product.kind
        return self._document(
            says.name,
            f"""<main class="width">
<p class="crumbs"><a href="/">{escape(texts.home)}</a> /
<a href="/kind/{kind.key}">{escape(kind.plurals[self._language])}</a></p>
<article class="product">
<img src="/pictures/{sku}.png" width="560" height="420" alt="{escape(says.name)}">
<div>
<p class="eyebrow">{escape(product.colourway.names[self._language])}</p>
<h1 class="product-name">{escape(says.name)}</h1>
<div class="prices">
<div><span>{escape(texts.list_price)}</span> <span class="list-price">{escape(says.list_price)}</span></div>
<div><span>{escape(texts.today_price)}</span> <strong class="today-price" data-sku="{sku}">…</strong></div>
<p class="tax">{escape(tax)}</p>
</div>
<dl class="facts">
<dt>SKU</dt><dd class="sku">{sku}</dd>
<dt>{escape(texts.stock)}</dt>{stock}
<dt>{escape(texts.ships_from)}</dt><dd class="ships-from">{escape(self._store_name())}</dd>
<dt>{escape(texts.your_time)}</dt><dd class="your-time">…</dd>
</dl>
</div>
</article>
</main>""",
        )

    def message(self, title: str, lead: str, *, head: str = "", more: str = "") -> str:
        """A page with a heading and a sentence; `head` and `more` are HTML."""
        body = f'<main class="width plain"><h1>{escape(title)}</h1><p>{escape(lead)}</p>{more}</main>'
        return self._document(title, body, head=head)

    def not_found(self) -> str:
        """What stands on a page that the shop doesn't have."""
        return self.message(self._texts.not_found, self._texts.not_found_lead)

    def refused(self) -> str:
        """What a visitor sees who is turned away."""
        return self.message(self._texts.refused, self._texts.refused_lead)

    def _list(self, title: str, products: list[Product], *, total: int, below: str = "") -> str:
        count = self._texts.count.format(count=total)
        return self._document(
            title,
            f"""<main class="width"><div class="list-head"><h1>{escape(title)}</h1>
<span class="count">{escape(count)}</span></div>
{self._cards(products)}
{below}</main>""",
        )

    def _cards(self, products: Iterable[Product]) -> str:
        cards = []
        for product in products:
            name = escape(product.name(self._language))
            price = escape(price_text(self._store, list_amount(self._store, product), self._language))
            cards.append(
                f'<li class="card" data-sku="{product.sku}"><a href="/product/{product.sku}">'
                f'<img src="/pictures/{product.sku}.png" width="560" height="420" alt="">'
                f'<span class="about"><span class="name">{name}</span> '
                f'<span class="price">{price}</span></span>'
                "</a></li>"
            )
        return '<ul class="products">\n' + "\n".join(cards) + "\n</ul>"

    def _page_links(self, here: int) -> str:
        links = []
        if here > 1:
            links.append(f'<a rel="prev" href="/products?page={here - 1}">{escape(self._texts.previous)}</a>')
        links += [
            f'<span class="here" aria-current="page">{number}</span>'
            if number == here
            else f'<a href="/products?page={number}">{number}</a>'
            for number in range(1, PAGES + 1)
        ]
        if here < PAGES:
            links.append(f'<a rel="next" href="/products?page={here + 1}">{escape(self._texts.next)}</a>')
        return '<nav class="pages">' + "\n".join(links) + "</nav>"

    def _store_name(self) -> str:
        return self._texts.store_names[self._store.country]

    def _document(self, title: str, body: str, *, head: str = "") -> str:
        kinds = "\n".join(
            f'<a href="/kind/{kind.key}">{escape(kind.plurals[self._language])}</a>' for kind in KINDS
        )
        store = f"{escape(self._store_name())} · {self._store.currency}"
        return f"""<!doctype html>
<html lang="{LOCALES[self._language].replace("_", "-")}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)} · {escape(NAME)}</title>
<link rel="icon" href="/pictures/logo.svg" type="image/svg+xml">
<link rel="stylesheet" href="/static/style.css">
<script src="/static/shop.js" defer></script>
{head}</head>
<body>
<header class="bar"><div class="width"><a class="wordmark" href="/">{escape(NAME)}</a>
<nav class="kinds">{kinds}</nav>
<span class="store" data-country="{self._store.country}">{store}</span>
</div></header>
{body}
<footer><div class="width"><span>{escape(self._texts.footer)}</span><span>{escape(NAME)}</span></div></footer>
</body>
</html>
"""
