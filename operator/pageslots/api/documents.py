"""YAML text as JSON values that know their places in the file.

Plain words become what `kubectl` makes of them (YAML 1.1: `NO` is false, `010` is 8): reading them
otherwise would make the same file mean one thing here and another in a cluster. The text of each plain
word is kept, so that the message can say so.

Bounds: a document has at most `MAX_NODES` values after aliases are expanded, and `MAX_DEPTH` levels.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from pageslots.api.faults import Path, Place

MAX_NODES = 500_000
MAX_DEPTH = 40
_LONGEST_NUMBER = 400

_TRUE = frozenset({"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
_FALSE = frozenset({"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
_BASED = re.compile(r"([-+]?)0(?:([xX])([0-9a-fA-F_]+)|([bB])([01_]+)|[oO]?([0-7_]+))")
_REAL = re.compile(
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
_DOCUMENT_START = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}"
    for name in ("map", "seq", "str", "int", "float", "bool", "null", "timestamp", "merge", "value")
)
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class Document:
    """One YAML document. `plain` has the text of every plain word that isn't a string."""

    value: Any
    values: dict[Path, Place] = field(default_factory=dict)
    """Where values are; what is written in lines of its own is where its key is."""
    keys: dict[Path, Place] = field(default_factory=dict)
    plain: dict[Path, str] = field(default_factory=dict)
    faults: list["Fault"] = field(default_factory=list)

    def place(self, path: Path) -> Place:
        """Where the value is; for an absent one, the key of the nearest thing around it."""
        if path in self.values:
            return self.values[path]
        while path and path not in self.keys:
            path = path[:-1]
        return self.keys.get(path) or self.values.get(path) or Place(1, 1)

    def key_place(self, path: Path) -> Place:
        """Where the key is."""
        return self.keys.get(path) or self.place(path)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with the text itself."""

    place: Place
    path: Path
    message: str


def read_documents(text: str) -> Iterator[Document]:
    """Each document that holds anything; one that can't be read has a fault and no value.

    Documents are read one by one, so that a broken one doesn't hide what is wrong in the next.
    """
    starts = [0, *(match.start() for match in _DOCUMENT_START.finditer(text)), len(text)]
    for start, end in pairwise(starts):
        chunk = text[start:end]
        if _is_blank(chunk):
            continue
        yield _read(chunk, lines_before=text.count("\n", 0, start))


def _is_blank(chunk: str) -> bool:
    lines = (line.strip() for line in chunk.removeprefix("---").splitlines())
    return all(not line or line.startswith(("#", "%")) or line == "..." for line in lines)


def _read(chunk: str, *, lines_before: int) -> Document:
    from ruamel.yaml import YAML  # noqa: PLC0415 - 30 ms that only loading needs
    from ruamel.yaml.error import MarkedYAMLError, YAMLError  # noqa: PLC0415

    document = Document(value=None)
    try:
        node = YAML(typ="safe", pure=True).compose(chunk)
        if node is not None:
            document.value = _Reader(document, lines_before).value(node, (), 0)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(mark.line + 1 + lines_before, mark.column + 1) if mark else Place(lines_before + 1, 1)
        document.faults.append(
            Fault(place, (), _syntax_message(str(error.problem), chunk, place.line - lines_before))
        )
    except YAMLError as error:
        first = str(error).strip().splitlines()[0]
        document.faults.append(Fault(Place(lines_before + 1, 1), (), f"not YAML: {first}"))
    except (RecursionError, _TooMuchError) as error:
        message = str(error) if isinstance(error, _TooMuchError) else "nested too deeply"
        document.faults.append(Fault(Place(lines_before + 1, 1), (), message))
    if document.faults and document.value is None:
        document.values.clear()
    return document


def _syntax_message(problem: str, chunk: str, line: int) -> str:
    lines = chunk.splitlines()
    words = lines[line - 1] if 0 < line <= len(lines) else ""
    if "\t" in words[: len(words) - len(words.lstrip())]:
        return "a tab indents this line: YAML takes spaces only"
    return f"not YAML: {problem}"


class _TooMuchError(Exception):
    """A bound is exceeded."""


class _Reader:
    """Turns nodes into values and notes their places."""

    def __init__(self, document: Document, lines_before: int) -> None:
        self._document = document
        self._lines_before = lines_before
        self._nodes = 0

    def value(self, node: Any, path: Path, depth: int) -> Any:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise _TooMuchError(f"more than {MAX_NODES} values, aliases expanded")
        if depth > MAX_DEPTH:
            raise _TooMuchError(f"more than {MAX_DEPTH} levels deep, or an alias that contains itself")
        place = self._place(node)
        is_block = node.id != "scalar" and not node.flow_style
        self._document.values[path] = self._document.keys.get(path, place) if is_block else place
        if node.tag not in _TAGS:
            self._document.faults.append(
                Fault(place, path, f"the tag {node.tag} means nothing here: remove it")
            )
            return None
        match node.id:
            case "mapping":
                return self._mapping(node, path, depth)
            case "sequence":
                return [
                    self.value(item, (*path, number), depth + 1) for number, item in enumerate(node.value)
                ]
            case _:
                return self._scalar(node, path)

    def _mapping(self, node: Any, path: Path, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            place = self._place(key_node)
            if key_node.id != "scalar":
                self._document.faults.append(Fault(place, path, "a key must be a word"))
                continue
            key = self._text(key_node, path)
            if key == "<<" and key_node.style is None:
                for part in value_node.value if value_node.id == "sequence" else [value_node]:
                    found = self.value(part, path, depth + 1)
                    merged = (found if isinstance(found, dict) else {}) | merged
                continue
            if key in made:
                before = self._document.keys[(*path, key)]
                self._document.faults.append(
                    Fault(place, (*path, key), f"stands twice: the first one is in line {before.line}")
                )
                continue
            self._document.keys[(*path, key)] = place
            made[key] = self.value(value_node, (*path, key), depth + 1)
        return merged | made

    def _scalar(self, node: Any, path: Path) -> Any:
        text = self._text(node, path)
        if node.style is not None:
            return text
        value = plain_value(text)
        if not isinstance(value, str):
            self._document.plain[path] = text
        return value

    def _text(self, node: Any, path: Path) -> str:
        """The text of a word; JSON writes a character beyond U+FFFF as two escapes, which are put together."""
        text = str(node.value)
        if _SURROGATE.search(text):
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            if "\ufffd" in text:
                self._document.faults.append(
                    Fault(self._place(node), path, "half a character: an escape is alone")
                )
        return text

    def _place(self, node: Any) -> Place:
        return Place(node.start_mark.line + 1 + self._lines_before, node.start_mark.column + 1)


def plain_value(text: str) -> str | int | float | bool | None:
    """What `kubectl` reads when `text` stands without quotes."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    is_number_like = len(text) <= _LONGEST_NUMBER and (text[0].isdigit() or text[0] in "+-.")
    return _number(text) if is_number_like else text


def _number(text: str) -> str | int | float:
    if _DECIMAL.fullmatch(text):
        return int(text.replace("_", ""))
    if based := _BASED.fullmatch(text):
        sign, is_hex, hexes, is_binary, bits, octals = based.groups()
        base, digits = (16, hexes) if is_hex else (2, bits) if is_binary else (8, octals)
        digits = digits.replace("_", "")
        return int(sign + digits, base) if digits else text
    if _REAL.fullmatch(text):
        return float(re.sub(r"\.(inf|nan)$", r"\1", text.lower()))
    return text
