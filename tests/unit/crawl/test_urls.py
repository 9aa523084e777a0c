"""What one page is (cases W6 and W7)."""

import pytest

from pageslots_agent.urls import MAX_URL_LENGTH, UrlError, parse, parse_link

BASE = "https://shop.example/a/b?c=d"


@pytest.mark.parametrize(
    ("href", "leads_to"),
    [
        ("x", "https://shop.example/a/x"),
        ("/x", "https://shop.example/x"),
        ("?q", "https://shop.example/a/b?q"),
        ("#top", "https://shop.example/a/b?c=d"),
        ("", "https://shop.example/a/b?c=d"),
        ("//else.example/x", "https://else.example/x"),
        ("../../../x", "https://shop.example/x"),
        ("  \n/x\t/y ", "https://shop.example/x/y"),
        ("\\x", "https://shop.example/x"),
        ("HTTP://ELSE.example:80/%7e", "http://else.example/%7e"),
        ("https://münchen.example/ü?ü", "https://xn--mnchen-3ya.example/%C3%BC?%C3%BC"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://[::1]:8080/", "http://[::1]:8080/"),
        ("http://shop.example./x", "http://shop.example./x"),
        ("https://me:secret@else.example/x", "https://else.example/x"),
        ("https://me@shop.example/x@y", "https://shop.example/x@y"),
    ],
)
def test_a_link_leads_where_the_url_standard_says(href, leads_to):
    address = parse_link(href, BASE)
    assert address is not None
    assert address.url == leads_to


@pytest.mark.parametrize(
    "href",
    [
        "javascript:void(0)",
        "mailto:me@shop.example",
        "data:text/html,x",
        "blob:https://shop.example/1",
        "file:///etc/passwd",
        "chrome://crash",
        "ftp://shop.example/",
        "http://",
        "http://a b/",
        "https://shop.example/" + "x" * MAX_URL_LENGTH,
    ],
)
def test_what_is_no_page_of_the_web_leads_nowhere(href):
    assert parse_link(href, BASE) is None


SPELLINGS = [
    "http://shop.example/~me/x?a=1",
    "HTTP://SHOP.EXAMPLE/~me/x?a=1",
    "http://shop.example:80/~me/x?a=1",
    "http://shop.example/%7Eme/x?a=1",
    "http://shop.example/%7eme/./x?a=1",
    "http://shop.example/y/../~me/x?a=1",
    "http://shop.example/~me/x?a=1#reviews",
    "http://shop.example\\~me\\x?a=1",
    "http://shop.example/~me/x;jsessionid=0F3A?a=1",
    "http://shop.example/~me/x?PHPSESSID=4711&a=1",
    "http://shop.example/~me/x?a=1&ASPSESSIONIDQQ=AB",
    " http://shop.example/~me/\tx?a=1 ",
]


def test_all_spellings_of_a_page_are_one_page():
    assert {parse(url).identity for url in SPELLINGS} == {parse(SPELLINGS[0]).identity}


@pytest.mark.parametrize(
    "other",
    [
        "http://shop.example/~me/x?a=2",
        "http://shop.example/~me/x",
        "http://shop.example/~me/x/?a=1",
        "http://shop.example/~ME/x?a=1",
        "https://shop.example/~me/x?a=1",
        "http://shop.example:8080/~me/x?a=1",
        "http://shop.example./~me/x?a=1",
        "http://shop.example/~me%2Fx?a=1",
        "http://shop.example/~me/x?a=1&jsessionid",
    ],
)
def test_pages_that_can_differ_are_not_folded(other):
    assert parse(other).identity != parse(SPELLINGS[0]).identity


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("shop.example", "'shop.example' is not a URL"),
        ("ftp://shop.example/", "the scheme 'ftp': only http and https are crawled"),
        ("http://shop.example/" + "x" * 3_000, "longer than 2048 characters"),
    ],
)
def test_an_unusable_start_url_is_told_why(text, said):
    with pytest.raises(UrlError, match=said):
        parse(text)


def test_an_address_knows_its_host():
    address = parse("https://[::1]:8443/x")
    assert (address.host, address.hostname, address.origin) == ("[::1]:8443", "[::1]", "https://[::1]:8443")
    assert parse("http://Shop.example:8080").hostname == "shop.example"
