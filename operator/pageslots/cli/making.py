"""Manifests out of a command line: a pool and a request for each country.

The request's name ends in a digest of all that it asks for: the same command again is the same request, which is
skipped or goes on; another command is another one.
"""

import hashlib
import io
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pageslots.api import API_VERSION, LoadedManifests, ManifestError, ManifestErrors, load_manifests
from pageslots.api.documents import plain_value
from pageslots.cli.problems import UsageProblem

POOL = "crawl"
FALLBACK_COUNTRY = "US"
_LOCALE = re.compile(r"[a-z]{2,3}_([A-Z]{2})\b")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the options of `pageslots crawl` say. `css` and `xpath` are `name=selector`, or `name@attribute=…`."""

    urls: Sequence[str]
    countries: Sequence[str]
    css: Sequence[str] = ()
    xpath: Sequence[str] = ()
    follow: str | None = None
    include: Sequence[str] = ()
    max_pages: int | None = None
    capture: Sequence[str] = ()
    wait_for: str | None = None
    parallel: int = 1
    allow_private: bool = False
    name: str = ""


def home_country(environment: Mapping[str, str]) -> str:
    """The country of the user's locale, such as SG of en_SG.UTF-8; US where it names none."""
    for variable in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if match := _LOCALE.match(environment.get(variable, "")):
            return match[1]
    return FALLBACK_COUNTRY


def documents(wanted: Wanted) -> list[dict[str, Any]]:
    """The pool and the requests, as JSON."""
    countries = list(dict.fromkeys(wanted.countries)) or [home_country(os.environ)]
    browsers = min(len(countries) * wanted.parallel, 5_000)
    pool: dict[str, Any] = {
        "maxPageSlots": browsers,
        "maxConcurrent": browsers,
        "countries": [{"code": code, "direct": True} for code in countries],
    }
    if wanted.parallel > 1:
        pool["dispatch"] = {"maxPerSite": wanted.parallel}
    if wanted.allow_private:
        pool["network"] = {"allowPrivateAddresses": True}
    made = [_document("PageSlotPool", POOL, pool)]
    for code in countries:
        spec = {"poolName": POOL, "country": code} | _spec(wanted)
        made.append(_document("CrawlRequest", _request_name(wanted, spec, several=len(countries) > 1), spec))
    return made


def _document(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": dict(spec)}


def _spec(wanted: Wanted) -> dict[str, Any]:
    spec: dict[str, Any] = {"startUrls": list(wanted.urls)}
    if wanted.parallel > 1:
        spec["parallelism"] = wanted.parallel
    if wanted.follow or wanted.include:
        spec["follow"] = {"scope": wanted.follow or "host"}
        if wanted.include:
            spec["follow"]["include"] = list(wanted.include)
    if wanted.max_pages is not None:
        spec["maxPages"] = wanted.max_pages
    extract = [_field("--extract", "css", text) for text in wanted.css]
    extract += [_field("--xpath", "xpath", text) for text in wanted.xpath]
    if extract:
        spec["extract"] = extract
    if wanted.capture:
        spec["capture"] = list(dict.fromkeys(wanted.capture))
    if wanted.wait_for:
        spec["waitFor"] = {"selector": wanted.wait_for}
    return spec


def _field(option: str, key: str, text: str) -> dict[str, str]:
    """`price=.price` or `link@href=a.next`; a selector may have `=` and `@` itself."""
    name, equals, selector = text.partition("=")
    if not equals or not name or not selector:
        raise UsageProblem(
            f'{option}: "{text}" is not name=selector, such as price=.price or link@href=a.next'
        )
    name, at, attribute = name.partition("@")
    return {"name": name, key: selector} | ({"attribute": attribute} if at else {})


def _request_name(wanted: Wanted, spec: Mapping[str, Any], *, several: bool) -> str:
    """`example-com-3f9a1c`, with the country in it where there are several."""
    code = spec["country"].lower()
    if wanted.name:
        return f"{wanted.name}-{code}" if several else wanted.name
    digest = hashlib.blake2b(json.dumps(spec, sort_keys=True).encode(), digest_size=3).hexdigest()
    host = urlsplit(wanted.urls[0]).hostname or "crawl"
    words = (
        re.sub(r"[^a-z0-9]+", "-", host.removeprefix("www.").lower()).strip("-")[:36].strip("-") or "crawl"
    )
    return "-".join([words, *([re.sub("[^a-z0-9-]", "", code)] if several else []), digest])


def as_yaml(wanted: Wanted) -> str:
    """The manifests, to be kept in a file."""
    from ruamel.yaml import YAML  # noqa: PLC0415 - 30 ms

    yaml = YAML()
    yaml.default_flow_style = False
    yaml.width = 1_000
    yaml.indent(mapping=2, sequence=4, offset=2)
    texts = []
    for document in documents(wanted):
        buffer = io.StringIO()
        yaml.dump(_quoted(document), buffer)
        texts.append(buffer.getvalue())
    return "---\n".join(texts)


def _quoted(value: Any) -> Any:
    """Words that YAML would take for something else, such as the country NO, in quotes."""
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString  # noqa: PLC0415 - 30 ms

    match value:
        case dict():
            return {key: _quoted(below) for key, below in value.items()}
        case list():
            return [_quoted(below) for below in value]
        case str() if not isinstance(plain_value(value), str):
            return DoubleQuotedScalarString(value)
        case _:
            return value


def load_made(wanted: Wanted) -> LoadedManifests:
    """The objects; raises UsageProblem that speaks of options, not of fields."""
    text = as_yaml(wanted)
    try:
        return load_manifests(["-"], stdin=io.BytesIO(text.encode()))
    except ManifestErrors as errors:
        sentences = dict.fromkeys(_about_option(error, wanted) for error in errors.errors)
        raise UsageProblem(*sentences) from None


def _about_option(error: ManifestError, wanted: Wanted) -> str:
    """The sentence of an error with the option in the place of the field."""
    number = re.search(r"\[(\d+)\]", error.field)
    index = int(number[1]) if number else 0
    options = {
        "spec.country": "--country",
        "spec.countries": "--country",
        "spec.startUrls": "URL",
        "spec.follow.include": "--include",
        "spec.follow": "--follow",
        "spec.parallelism": "--parallel",
        "spec.maxPageSlots": "--parallel",
        "spec.maxConcurrent": "--parallel",
        "spec.dispatch": "--parallel",
        "spec.maxPages": "--max-pages",
        "spec.capture": "--capture",
        "spec.waitFor": "--wait-for",
        "metadata.name": "--name",
    }
    if error.field.startswith("spec.extract"):
        option = "--extract" if index < len(wanted.css) else "--xpath"
    else:
        option = next((name for field, name in options.items() if error.field.startswith(field)), error.field)
    return f"{option}: {error.message}"
