"""What the demo shop sells, and what each page of it must say: crawl results are compared with this.

48 products: eight kinds of thing in six colourways. Three country sites with their own currency and prices;
the language of the page is the visitor's (`Accept-Language`), the money is the country's. Everything is
computed from the tables below: no randomness, no clock, the same answer on every machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Literal, get_args

from babel.numbers import format_currency

Language = Literal["en", "de", "ja"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

PAGE_SIZE = 12


@dataclass(frozen=True, slots=True)
class Store:
    """One country site. A price is the euro cents times `rate_percent` ÷ 100, rounded up to `step` minor
    units, less `charm` (so that it ends in 90 cents); `digits` are the currency's decimal places.
    """

    country: str
    language: Language
    currency: str
    digits: int
    rate_percent: int
    step: int
    charm: int
    tax_percent: int
    time_zone: str


STORES: Mapping[str, Store] = MappingProxyType(
    {
        "SG": Store("SG", "en", "SGD", 2, 148, 100, 10, 9, "Asia/Singapore"),
        "DE": Store("DE", "de", "EUR", 2, 100, 100, 10, 19, "Europe/Berlin"),
        "JP": Store("JP", "ja", "JPY", 0, 164, 100, 20, 10, "Asia/Tokyo"),
    }
)
"""The country sites, in the order of their ports."""

LOCALES: Mapping[Language, str] = MappingProxyType({"en": "en_SG", "de": "de_DE", "ja": "ja_JP"})


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of thing: `cents` is the price of its first colourway in euro cents."""

    key: str
    names: Mapping[Language, str]
    plurals: Mapping[Language, str]
    cents: int


@dataclass(frozen=True, slots=True)
class Colourway:
    """A colour that every kind comes in; `colour` is sRGB."""

    key: str
    names: Mapping[Language, str]
    colour: tuple[int, int, int]


def _names(en: str, de: str, ja: str) -> Mapping[Language, str]:
    return MappingProxyType({"en": en, "de": de, "ja": ja})


KINDS: tuple[Kind, ...] = (
    Kind("mug", _names("mug", "Becher", "マグカップ"), _names("Mugs", "Becher", "マグカップ"), 1800),
    Kind("bowl", _names("bowl", "Schale", "ボウル"), _names("Bowls", "Schalen", "ボウル"), 2200),
    Kind("vase", _names("vase", "Vase", "花瓶"), _names("Vases", "Vasen", "花瓶"), 3900),
    Kind(
        "teapot",
        _names("teapot", "Teekanne", "ティーポット"),
        _names("Teapots", "Teekannen", "ティーポット"),
        5400,
    ),
    Kind(
        "planter",
        _names("planter", "Blumentopf", "植木鉢"),
        _names("Planters", "Blumentöpfe", "植木鉢"),
        2900,
    ),
    Kind("lamp", _names("lamp", "Leuchte", "ランプ"), _names("Lamps", "Leuchten", "ランプ"), 8900),
    Kind("clock", _names("clock", "Uhr", "時計"), _names("Clocks", "Uhren", "時計"), 6500),
    Kind("stool", _names("stool", "Hocker", "スツール"), _names("Stools", "Hocker", "スツール"), 11900),
)

COLOURWAYS: tuple[Colourway, ...] = (
    Colourway("harbour", _names("Harbour", "Hafen", "港"), (44, 108, 140)),
    Colourway("ember", _names("Ember", "Glut", "残り火"), (214, 86, 46)),
    Colourway("meadow", _names("Meadow", "Wiese", "草原"), (104, 146, 82)),
    Colourway("dusk", _names("Dusk", "Dämmerung", "夕暮れ"), (128, 96, 158)),
    Colourway("straw", _names("Straw", "Stroh", "麦わら"), (222, 172, 66)),
    Colourway("ink", _names("Ink", "Tinte", "墨"), (52, 62, 78)),
)


@dataclass(frozen=True, slots=True)
class Product:
    """One thing in one colourway. `sku` is `<kind>-<colourway>`, `number` its place in the list, from 0."""

    number: int
    kind: Kind
    colourway: Colourway

    @property
    def sku(self) -> str:
        """The name in URLs."""
        return f"{self.kind.key}-{self.colourway.key}"

    @property
    def stock(self) -> int:
        """How many are left, 0 to 17."""
        return (self.number * 7 + 3) % 18

    @property
    def discount_percent(self) -> int:
        """What today's price is below the list price: 0, 5, 10 or 15."""
        return self.number * 3 % 4 * 5

    def name(self, language: Language) -> str:
        """The name as that language puts it."""
        kind, colourway = self.kind.names[language], self.colourway.names[language]
        match language:
            case "en":
                return f"{colourway} {kind}"
            case "de":
                return f"{kind} „{colourway}“"
            case "ja":
                return f"{colourway}の{kind}"


PRODUCTS: Mapping[str, Product] = MappingProxyType(
    {
        product.sku: product
        for product in (
            Product(row * len(KINDS) + column, kind, COLOURWAYS[(row + column) % len(COLOURWAYS)])
            for row in range(len(COLOURWAYS))
            for column, kind in enumerate(KINDS)
        )
    }
)
"""Every product by SKU, in the order of the list pages."""

PAGES = -(-len(PRODUCTS) // PAGE_SIZE)


@dataclass(frozen=True, slots=True)
class ExpectedProduct:
    """What the page of a product says on one country site; amounts in minor units, texts as they stand on the
    page (some languages put a no-break space, U+00A0, between number and currency).
    """

    sku: str
    path: str
    name: str
    language: Language
    currency: str
    list_amount: int
    list_price: str
    today_amount: int
    today_price: str
    stock: int


def expected_product(country: str, sku: str, accept_language: str = "") -> ExpectedProduct:
    """What the shop says about `sku` on the site of `country` to a visitor with these language wishes.

    `list_price` is in the HTML, `today_price` appears when the page's script has run. Raises `KeyError` for
    an unknown country or SKU.
    """
    store, product = STORES[country], PRODUCTS[sku]
    language = chosen_language(accept_language, store.language)
    listed, today = list_amount(store, product), today_amount(store, product)
    return ExpectedProduct(
        sku=sku,
        path=f"/product/{sku}",
        name=product.name(language),
        language=language,
        currency=store.currency,
        list_amount=listed,
        list_price=price_text(store, listed, language),
        today_amount=today,
        today_price=price_text(store, today, language),
        stock=product.stock,
    )


def expected_page(number: int) -> list[str]:
    """The SKUs on list page `number`, from 1; none beyond the last page."""
    skus = list(PRODUCTS)
    return skus[(number - 1) * PAGE_SIZE : number * PAGE_SIZE] if number >= 1 else []


def of_kind(key: str) -> list[Product]:
    """The products of one kind, in the order of the list."""
    return [product for product in PRODUCTS.values() if product.kind.key == key]


def list_amount(store: Store, product: Product) -> int:
    """The price without discount, in minor units of the store's currency."""
    return _rounded(store, product.kind.cents + 200 * COLOURWAYS.index(product.colourway))


def today_amount(store: Store, product: Product) -> int:
    """The price that the script shows, in minor units."""
    cents = product.kind.cents + 200 * COLOURWAYS.index(product.colourway)
    return _rounded(store, cents * (100 - product.discount_percent) // 100)


def _rounded(store: Store, cents: int) -> int:
    minor = cents * store.rate_percent // 100
    return -(-minor // store.step) * store.step - store.charm


def price_text(store: Store, amount: int, language: Language) -> str:
    """`amount` minor units as that language writes them: `$26.90`, `17,90 €`, `￥2,880`."""
    value = Decimal(amount).scaleb(-store.digits)
    return format_currency(value, store.currency, locale=LOCALES[language])


def chosen_language(accept_language: str, default: Language) -> Language:
    """The shop's language for an Accept-Language header (RFC 9110, 12.5.4): the wish with the highest weight
    that the shop has, the earlier one among equals; `default` when it has none of them.
    """
    best, best_weight = default, Decimal(0)
    for wish in accept_language.split(","):
        tag, _, parameter = wish.partition(";")
        weight = _weight(parameter)
        for language in LANGUAGES:
            if tag.strip().lower().partition("-")[0] == language and weight > best_weight:
                best, best_weight = language, weight
    return best


def _weight(parameter: str) -> Decimal:
    """`q=0.8` as a number; 1 when there is none, 0 when it is not a weight."""
    name, _, value = parameter.strip().partition("=")
    if not name:
        return Decimal(1)
    digits = value.strip().replace(".", "", 1)
    return (
        Decimal(value.strip())
        if name.strip() == "q" and digits.isascii() and digits.isdigit()
        else Decimal(0)
    )
