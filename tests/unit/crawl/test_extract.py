"""Reading a page (case W7)."""

import pytest

from pageslots.wire import Extract
from pageslots_agent.extract import MAX_VALUE_CHARACTERS, ExtractError, Reader

URL = "https://shop.example/list/?page=1"
PAGE = """<!doctype html><html><head><title> Kettles \n &amp; pots </title></head><body>
<h1>All   <b>kettles</b></h1>
<ul><li class="item" data-price="12">One</li><li class="item">Two<script>no()</script></li></ul>
<a href="/x" rel="nofollow">x</a></body></html>"""


def read(html: str, *extracts: Extract, links: bool = False, obey_nofollow: bool = False):
    return Reader(extracts).read(html, URL, links=links, obey_nofollow=obey_nofollow)


@pytest.mark.parametrize(
    ("extract", "value"),
    [
        (Extract("v", css="h1"), "All kettles"),
        (Extract("v", css=".item"), "One"),
        (Extract("v", css=".item", all=True), ["One", "Two"]),
        (Extract("v", css=".item", attribute="data-price"), "12"),
        (Extract("v", css=".item", attribute="data-price", all=True), ["12"]),
        (Extract("v", css="ul"), "One Two"),
        (Extract("v", css="script"), "no()"),
        (Extract("v", css=".none"), None),
        (Extract("v", css=".none", all=True), []),
        (Extract("v", xpath="//li[2]/text()"), "Two"),
        (Extract("v", xpath="//li/@class", all=True), ["item", "item"]),
        (Extract("v", xpath="count(//li)"), "2"),
        (Extract("v", xpath="count(//li) div 4"), "0.5"),
        (Extract("v", xpath="boolean(//table)"), "false"),
        (Extract("v", xpath="string(//h1)"), "All kettles"),
    ],
)
def test_a_value_is_what_its_selector_finds(extract, value):
    assert read(PAGE, extract).data == {"v": value}


def test_the_title_is_text():
    assert read(PAGE).title == "Kettles & pots"


@pytest.mark.parametrize(
    ("extract", "said"),
    [
        (Extract("price", css="li[["), r'extract "price": css \'li\[\[\': '),
        (Extract("price", css="li::text"), r'say "attribute"'),
        (Extract("price", css="li:hover(2)"), "extract"),
        (
            Extract(
                "price",
                xpath="//li[",
            ),
            r'extract "price": xpath \'//li\[\': ',
        ),
        (Extract("price"), "expected exactly one of css and xpath"),
        (Extract("price", css="a", xpath="//a"), "expected exactly one of css and xpath"),
    ],
)
def test_a_wrong_selector_is_refused_before_any_page(extract, said):
    with pytest.raises(ExtractError, match=said):
        Reader([extract])


def test_a_function_that_does_not_exist_is_the_extracts_fault():
    with pytest.raises(ExtractError, match='extract "price"'):
        read(PAGE, Extract("price", xpath="lower-case(//h1)"))


def test_regular_expressions_in_xpath_are_out_of_reach():
    """They would run under Python's lock for as long as they like."""
    with pytest.raises(ExtractError):
        read(PAGE, Extract("v", xpath="//li[re:test(., '(a+)+b')]"))


def test_a_huge_value_is_cut_and_said_to_be():
    reading = read(f"<p>{'x' * (MAX_VALUE_CHARACTERS + 5)}</p>", Extract("v", css="p"))
    assert len(reading.data["v"] or "") == MAX_VALUE_CHARACTERS
    assert reading.cut == ("v",)


def test_many_values_share_one_bound():
    reading = read("<p>" + f"<b>{'x' * 1_000}</b>" * 1_000, Extract("v", css="b", all=True))
    assert sum(map(len, reading.data["v"] or [])) <= MAX_VALUE_CHARACTERS
    assert reading.cut == ("v",)


@pytest.mark.parametrize("html", ["", "   ", "<!-- only a comment -->"])
def test_nothing_is_read_from_nothing(html):
    reading = read(html, Extract("v", css="p"), Extract("w", css="p", all=True), links=True)
    assert (reading.data, reading.links, reading.has_text) == ({"v": None, "w": []}, (), False)


def test_a_page_that_declares_an_encoding_is_read_as_the_text_it_is():
    html = (
        '<?xml version="1.0" encoding="iso-8859-1"?><html><meta charset="windows-1251"><p>Größe €</p></html>'
    )
    assert read(html, Extract("v", css="p")).data == {"v": "Größe €"}


def links_of(html: str, **more: bool) -> list[str]:
    return [link.url for link in read(html, links=True, **more).links]


def test_links_are_resolved_deduplicated_and_in_order():
    html = """<a href="b">1</a><a href="/a">2</a><a href="b#x">3</a><area href="c"><a>no</a>
    <a href="javascript:x()">4</a><a href="mailto:a@b">5</a><a href="data:,x">6</a><a href="blob:x">7</a>"""
    assert links_of(html) == [
        "https://shop.example/list/b",
        "https://shop.example/a",
        "https://shop.example/list/c",
    ]


@pytest.mark.parametrize(
    ("base", "leads_to"),
    [
        ('<base href="/deep/er/">', "https://shop.example/deep/er/x"),
        ('<base target="_blank"><base href="https://cdn.example/a/">', "https://cdn.example/a/x"),
        ('<base href="/one/"><base href="/two/">', "https://shop.example/one/x"),
        ('<base href="data:,x">', "https://shop.example/list/x"),
        ("", "https://shop.example/list/x"),
    ],
)
def test_links_are_relative_to_the_base_element(base, leads_to):
    assert links_of(f"<html><head>{base}</head><body><a href=x>x</a></body></html>") == [leads_to]


def test_nofollow_is_obeyed_when_asked_to():
    assert links_of(PAGE) == ["https://shop.example/x"]
    assert links_of(PAGE, obey_nofollow=True) == []
    page = '<head><meta name="Robots" content="noindex, NOFOLLOW"></head><a href="/x">x</a>'
    assert links_of(page, obey_nofollow=True) == []
    assert links_of(page) == ["https://shop.example/x"]


def test_a_page_of_a_hundred_thousand_links_is_read_up_to_a_bound():
    """Case W6."""
    assert len(links_of("".join(f'<a href="/{i}">x</a>' for i in range(100_000)))) == 50_000
