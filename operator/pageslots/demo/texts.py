"""What the shop says, in the languages that it speaks."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pageslots.demo.catalogue import Language


@dataclass(frozen=True, slots=True)
class Texts:
    """Every sentence of the shop in one language; `{…}` are filled in with `str.format`."""

    claim: str
    lead: str
    see_all: str
    new_in: str
    all_products: str
    count: str
    previous: str
    next: str
    list_price: str
    today_price: str
    tax: str
    stock: str
    in_stock: str
    sold_out: str
    your_time: str
    ships_from: str
    home: str
    not_found: str
    not_found_lead: str
    refused: str
    refused_lead: str
    footer: str
    store_names: Mapping[str, str]


TEXTS: Mapping[Language, Texts] = MappingProxyType(
    {
        "en": Texts(
            claim="Good things for the table and the shelf",
            lead="Eight shapes, six colours, fired and turned in small batches.",
            see_all="See all {count} products",
            new_in="New in",
            all_products="All products",
            count="{count} products",
            previous="Previous",
            next="Next",
            list_price="List price",
            today_price="Today",
            tax="incl. {percent} % GST",
            stock="Availability",
            in_stock="{count} in stock",
            sold_out="Sold out",
            your_time="Your time",
            ships_from="Ships from",
            home="Home",
            not_found="We don't have that",
            not_found_lead="The page may have moved, or the product is no longer made.",
            refused="Access denied",
            refused_lead="This address has sent too many requests. Come back later.",
            footer="A demonstration: nothing here is for sale.",
            store_names=MappingProxyType({"SG": "Singapore", "DE": "Germany", "JP": "Japan"}),
        ),
        "de": Texts(
            claim="Gutes für Tisch und Regal",
            lead="Acht Formen, sechs Farben, in kleinen Serien gebrannt und gedrechselt.",
            see_all="Alle {count} Produkte ansehen",
            new_in="Neu im Laden",
            all_products="Alle Produkte",
            count="{count} Produkte",
            previous="Zurück",
            next="Weiter",
            list_price="Listenpreis",
            today_price="Heute",
            tax="inkl. {percent} % MwSt.",
            stock="Verfügbarkeit",
            in_stock="{count} auf Lager",
            sold_out="Ausverkauft",
            your_time="Ihre Zeit",
            ships_from="Versand aus",
            home="Start",
            not_found="Das haben wir nicht",
            not_found_lead="Die Seite ist umgezogen, oder das Produkt wird nicht mehr hergestellt.",
            refused="Zugriff verweigert",
            refused_lead="Von dieser Adresse kamen zu viele Anfragen. Bitte später noch einmal.",
            footer="Eine Vorführung: Hier wird nichts verkauft.",
            store_names=MappingProxyType({"SG": "Singapur", "DE": "Deutschland", "JP": "Japan"}),
        ),
        "ja": Texts(
            claim="食卓と棚のための、よいもの",
            lead="八つの形、六つの色。少しずつ、ていねいに。",
            see_all="全{count}点を見る",
            new_in="新着",
            all_products="すべての商品",
            count="{count}点",
            previous="前へ",
            next="次へ",
            list_price="通常価格",
            today_price="本日の価格",
            tax="税込 {percent}%",
            stock="在庫",
            in_stock="残り{count}点",
            sold_out="売り切れ",
            your_time="お客様の時刻",
            ships_from="発送元",
            home="ホーム",
            not_found="お探しの商品はありません",
            not_found_lead="ページが移動したか、商品の製造が終了しました。",
            refused="アクセスが拒否されました",
            refused_lead="このアドレスからのリクエストが多すぎます。時間をおいてお試しください。",
            footer="これはデモです。販売はしていません。",
            store_names=MappingProxyType({"SG": "シンガポール", "DE": "ドイツ", "JP": "日本"}),
        ),
    }
)
