"""Reading a page: its title, its links and the values that a request asks for.

Selectors are compiled before any page is loaded, so that a wrong one costs nothing. A page is parsed once, by
lxml in the thread of `aside`, which leaves the event loop free: libxml2 works without Python's lock.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cssselect import HTMLTranslator, SelectorError
from lxml import etree
from lxml.html import HtmlElement, HTMLParser, document_fromstring

from pageslots.wire import Extract
from pageslots_agent.urls import MAX_URL_LENGTH, Address, parse_link

MAX_LINKS = 50_000
"""Distinct links of one page that are read; the rest is left."""
MAX_VALUES = 10_000
MAX_VALUE_CHARACTERS = 256 * 1024
"""Bounds of one extract of one page, all its values together; the record names the extracts that were cut."""
MAX_TITLE_CHARACTERS = 1_000

_BLANKS = re.compile(r"\s+")
# fmt: off
_INLINE = frozenset({
    "a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins", "kbd",
    "label", "mark", "q", "s", "samp", "small", "span", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
})
# fmt: on
_UNSEEN = frozenset({"script", "style", "template", "noscript"})


class ExtractError(ValueError):
    """A selector that can't be used; the text names the extract, the selector and the error."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a page showed. `data` has a value per extract: text, a list of texts, or None."""

    title: str = ""
    has_text: bool = False
    links: tuple[Address, ...] = ()
    data: dict[str, str | list[str] | None] = field(default_factory=dict)
    cut: tuple[str, ...] = ()


class Reader:
    """The compiled extracts of a request."""

    def __init__(self, extracts: Sequence[Extract]) -> None:
        self._extracts = [(extract, _compiled(extract)) for extract in extracts]
        self.at = ""  # what is being evaluated, for the message when it takes too long

    def read(self, html: str, url: str, *, links: bool, obey_nofollow: bool = False) -> Reading:
        """Parse a page that was loaded from `url`; raises ExtractError when a selector fails on it."""
        self.at = "the page"
        document = _parsed(html)
        if document is None:
            return Reading(data={extract.name: [] if extract.all else None for extract, _ in self._extracts})
        data: dict[str, str | list[str] | None] = {}
        cut = []
        for extract, select in self._extracts:
            self.at = _named(extract)
            try:
                found = select(document)
            except Exception as error:  # noqa: BLE001 -- lxml has no common base class for what XPath can raise
                raise ExtractError(f"{_named(extract)}: {error}") from None
            values, was_cut = _values(found, extract)
            data[extract.name] = values if extract.all else (values[0] if values else None)
            if was_cut:
                cut.append(extract.name)
        self.at = "the page"
        return Reading(
            title=_title(document),
            has_text=_has_text(document),
            links=tuple(_links(document, url, obey_nofollow=obey_nofollow)) if links else (),
            data=data,
            cut=tuple(cut),
        )


def normalised(text: str) -> str:
    """Text as people see it: runs of blanks are one space, none at the ends."""
    return _BLANKS.sub(" ", text).strip()


def _named(extract: Extract) -> str:
    kind, selector = ("css", extract.css) if extract.css is not None else ("xpath", extract.xpath)
    return f'extract "{extract.name}": {kind} {selector!r}'


def _compiled(extract: Extract) -> Callable[[HtmlElement], Any]:
    if (extract.css is None) == (extract.xpath is None):
        raise ExtractError(f'extract "{extract.name}": expected exactly one of css and xpath')
    path = extract.xpath if extract.xpath is not None else _from_css(extract)
    try:
        # Without EXSLT's regular expressions: they would run under Python's lock, for as long as they like.
        return etree.XPath(path, regexp=False, smart_strings=False)
    except etree.XPathSyntaxError as error:
        raise ExtractError(f"{_named(extract)}: {error}") from None


def _from_css(extract: Extract) -> str:
    try:
        return HTMLTranslator().css_to_xpath(extract.css or "")
    except SelectorError as error:
        hint = '; for an attribute\'s value say "attribute"' if "seudo-element" in str(error) else ""
        raise ExtractError(f"{_named(extract)}: {error}{hint}") from None


def _parsed(html: str) -> HtmlElement | None:
    # As bytes: lxml refuses text that declares an encoding of its own, which XHTML does.
    parser = HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True)
    try:
        return document_fromstring(html.encode("utf-8", "replace"), parser=parser)
    except etree.LxmlError:
        return None  # nothing in it: lxml calls an empty document an error


def _values(found: Any, extract: Extract) -> tuple[list[str], bool]:
    items = found if isinstance(found, list) else [found]
    if not extract.all:
        items = items[:1]
    values: list[str] = []
    left = MAX_VALUE_CHARACTERS
    for item in items:
        value = _value(item, extract.attribute)
        if value is None:
            continue
        if len(values) == MAX_VALUES or left <= 0:
            return values, True
        values.append(value[:left])
        left -= len(value)
    return values, left < 0


def _value(item: Any, attribute: str | None) -> str | None:
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, float):
        return str(int(item)) if item.is_integer() else str(item)
    if isinstance(item, str):
        return normalised(item)
    if isinstance(item, tuple):  # a namespace node: prefix and URI
        return normalised(str(item[1]))
    if attribute is not None:
        value = item.get(attribute)
        return None if value is None else value.strip()
    return normalised(_text(item))


def _text(element: HtmlElement) -> str:
    """The text of an element as it reads: blocks and cells apart, without scripts and styles inside it."""
    pieces = []
    walker = etree.iterwalk(element, events=("start", "end"))
    for event, node in walker:
        if event == "start":
            if node is not element and node.tag in _UNSEEN:
                walker.skip_subtree()
                continue
            pieces.append((node.text or "") if node.tag in _INLINE else f" {node.text or ''}")
        else:
            if node.tag not in _INLINE:
                pieces.append(" ")
            if node is not element:
                pieces.append(node.tail or "")
    return "".join(pieces)


def _title(document: HtmlElement) -> str:
    for title in document.iter("title"):
        return normalised(title.text or "")[:MAX_TITLE_CHARACTERS]
    return ""


def _has_text(document: HtmlElement) -> bool:
    body = document.find("body")
    for element in document.iter() if body is None else body.iter():
        if element.tag not in _UNSEEN and element.text and not element.text.isspace():
            return True
        if element is not body and element.tail and not element.tail.isspace():
            return True
    return False


def _links(document: HtmlElement, url: str, *, obey_nofollow: bool) -> Iterable[Address]:
    if obey_nofollow and _page_is_nofollow(document):
        return
    base = _base(document, url)
    seen_hrefs: set[str] = set()
    seen_urls: set[str] = set()
    for element in document.iter("a", "area"):
        href = element.get("href")
        if href is None or href in seen_hrefs or len(href) > 2 * MAX_URL_LENGTH:
            continue
        seen_hrefs.add(href)
        if obey_nofollow and "nofollow" in (element.get("rel") or "").lower().split():
            continue
        address = parse_link(href, base)
        if address is None or address.url in seen_urls:
            continue
        seen_urls.add(address.url)
        yield address
        if len(seen_urls) == MAX_LINKS:
            return


def _base(document: HtmlElement, url: str) -> str:
    for base in document.iter("base"):
        href = base.get("href")
        if href is not None:  # the first one with an href counts, by the HTML Standard
            address = parse_link(href, url)
            return url if address is None else address.url
    return url


def _page_is_nofollow(document: HtmlElement) -> bool:
    for meta in document.iter("meta"):
        if (meta.get("name") or "").strip().lower() == "robots":
            words = {word.strip() for word in (meta.get("content") or "").lower().split(",")}
            if words & {"nofollow", "none"}:
                return True
    return False
