"""Whether the selectors of a request can be read at all: told before a browser is opened for them."""

from collections.abc import Iterator
from typing import Any

from pageslots.api.faults import Path


def wrong_selectors(request: Any) -> Iterator[tuple[Path, str]]:
    """Each `css` and `xpath` of `extract` that has no meaning, as (path, message).

    `request` is JSON whose other errors are told elsewhere: what isn't there is passed over.
    """
    match request:
        case {"spec": {"extract": list(extracts)}}:
            pass
        case _:
            return
    for number, extract in enumerate(extracts):
        if not isinstance(extract, dict):
            continue
        path: Path = ("spec", "extract", number)
        css, xpath = extract.get("css"), extract.get("xpath")
        if isinstance(css, str) and (problem := _css_problem(css)):
            yield (*path, "css"), f'"{css}" is not a CSS selector: {problem}'
        if isinstance(xpath, str) and (problem := _xpath_problem(xpath)):
            yield (*path, "xpath"), f'"{xpath}" is not an XPath expression: {problem}'


def _css_problem(css: str) -> str | None:
    from cssselect import SelectorError, SelectorSyntaxError  # noqa: PLC0415 - only requests with css need it
    from cssselect.xpath import HTMLTranslator  # noqa: PLC0415

    try:
        HTMLTranslator().css_to_xpath(css)
    except SelectorSyntaxError as error:
        return str(error)
    except SelectorError as error:  # valid CSS that extraction doesn't know, such as :hover-like states
        return f"extraction doesn't know it ({error})"
    return None


def _xpath_problem(xpath: str) -> str | None:
    from lxml import etree  # noqa: PLC0415 - 10 MiB, only requests with xpath need it

    try:
        etree.XPath(xpath)
    except etree.XPathSyntaxError as error:
        return str(error)
    return None
