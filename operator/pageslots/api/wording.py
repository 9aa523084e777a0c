"""From an error of pydantic to a sentence: what stands there, what was expected, what was meant."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pageslots.api import suggestions
from pageslots.api.documents import Document
from pageslots.api.expectations import Expectations, phrase
from pageslots.api.faults import Path, field_text

_MOST_SHOWN = 60
_KINDS_OF_WORD = {bool: "true or false", int: "a number", float: "a number", type(None): "nothing"}


def explain(
    error: Mapping[str, Any], expectations: Expectations, document: Document, base: Path
) -> Iterator[tuple[Path, str]]:
    """The culprits of one pydantic error, as (path below the object, message)."""
    path: Path = tuple(error["loc"])
    context: Mapping[str, Any] = error.get("ctx", {})
    found = show(error["input"])
    node = expectations.at(path)
    expected = phrase(node)
    match error["type"]:
        case "missing":
            yield path, f"is missing; expected {expected}"
        case "rule":
            for rule in context["broken"]:
                below: Path = tuple(rule["field"].split(".")) if rule["field"] else ()
                yield path + below, _with_found(rule["message"], error["input"], node)
        case "twin":
            yield (*path, context["number"]), f'two entries have the {context["what"]} "{context["shown"]}"'
        case "fraction":
            yield path, f'{found} is not a whole number or a fraction such as "1/3"{context["advice"]}'
        case "string_type" if base + path in document.plain:
            word, kind = document.plain[base + path], type(error["input"])
            read_as = show(error["input"]) if kind is bool else _KINDS_OF_WORD[kind]
            yield path, f'{word} without quotes is read as {read_as}: write "{word}"'
        case "string_too_long":
            yield path, f"has {len(error['input'])} characters; at most {node.get('maxLength')} are allowed"
        case "empty":
            yield path, f"has no entry; expected {expected}"
        case "too_long":
            yield path, f"has {len(error['input'])} entries; expected {expected}"
        case _:
            yield path, f"{found} is not {_with_suggestion(expected, error['input'], node)}"


def unknown_field(path: Path, known: list[str]) -> str:
    """The message for a field that a kind doesn't have."""
    meant = suggestions.nearest(str(path[-1]), known)
    where = field_text(path[:-1]) or "an object"
    if meant is not None:
        return f'unknown field; did you mean "{meant}"?'
    return f"unknown field; {where} has {', '.join(known)}"


def show(value: Any) -> str:
    """A value as it may stand in a message: on one line, and not longer than a line takes."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = (
        json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool | int | float) else str(value)
    )
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 2] + '…"'


def _with_found(message: str, value: Any, node: Mapping[str, Any]) -> str:
    if not message.startswith("not "):
        return message
    return f"{show(value)} is {_with_suggestion(message, value, node)}"


def _with_suggestion(expected: str, value: Any, node: Mapping[str, Any]) -> str:
    meant = suggestions.for_value(value, node)
    if meant is None or meant == value:
        return expected
    return f'{expected.partition(" such as ")[0]}; did you mean "{meant}"?'
