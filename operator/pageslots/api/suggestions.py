"""The nearest right thing to what somebody wrote."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from pageslots.api.countries import COUNTRIES
from pageslots.api.expectations import Node
from pageslots.api.fields import SAYS

_COUNTRY = r"^[A-Z]{2}"
_UNOFFICIAL = {"UK": "GB", "EL": "GR", "EN": "GB", "JA": "JP", "KO": "KR", "DA": "DK", "CS": "CZ"}
"""Abbreviations and language codes that people write for a country."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like it, if one is; letter case counts least."""
    by_lower = {name.lower(): name for name in known}
    if word.lower() in by_lower:
        return by_lower[word.lower()]
    close = get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[close[0]] if close else None


def for_value(value: Any, node: Node) -> str | None:
    """What was probably meant by a value that a field refuses, going by the field's schema."""
    if not isinstance(value, str) or not value:
        return None
    pattern, says = str(node.get("pattern", "")), str(node.get(SAYS, ""))
    if "enum" in node:
        return nearest(value, node["enum"])
    if pattern.startswith(_COUNTRY):
        return country(value)
    if "time zone" in says:
        return _time_zone(value)
    guess = f"https://{value}" if "://" in pattern else _plain(value)
    return guess if pattern and guess != value and re.fullmatch(pattern, guess) else None


def _plain(value: str) -> str:
    """A name or a host out of something that is nearly one."""
    return re.sub(r"^https?://|/.*$", "", value.strip()).lower().replace("_", "-").replace(" ", "-")


def country(text: str) -> str | None:
    """The code of a country that is written in lower case, with three letters, or by its English name."""
    from babel import Locale  # noqa: PLC0415 - 30 ms, only to explain an error
    from babel.core import get_global  # noqa: PLC0415

    head, _, variant = text.strip().partition("-")
    code = head.upper()
    aliases = get_global("territory_aliases")
    if code in _UNOFFICIAL:
        code = _UNOFFICIAL[code]
    elif code in aliases:
        code = aliases[code][0]
    if code not in COUNTRIES:
        names = {name: key for key, name in Locale("en").territories.items() if key in COUNTRIES}
        name = nearest(text.strip(), names)
        return names[name] if name else None
    variant = re.sub("[^a-z0-9]", "", variant.lower())[:12]
    return f"{code}-{variant}" if variant else code


def _time_zone(text: str) -> str | None:
    from zoneinfo import available_timezones  # noqa: PLC0415 - reads a folder tree, only to explain an error

    zones = available_timezones()
    by_city = {zone.rpartition("/")[2]: zone for zone in sorted(zones) if "/" in zone}
    words = text.strip().replace(" ", "_")
    city = nearest(words.rpartition("/")[2], by_city)
    return nearest(words, zones) or (by_city[city] if city else None)
