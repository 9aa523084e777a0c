"""Records as rows and columns: for a terminal, and as CSV."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from pageslots.cli.words import harmless

PAGE_COLUMNS = ("url", "finalUrl", "status", "outcome", "title", "message")
LEAST_WIDTH = 12
"""A column narrower than this shows nothing: records are drawn one below the other then."""


@dataclass(frozen=True, slots=True)
class Columns:
    """What the records have: extracted fields, and columns of the file that the URLs came from."""

    fields: tuple[str, ...]
    inputs: tuple[str, ...]
    all_ok: bool

    @classmethod
    def of(cls, records: Iterable[Mapping[str, Any]]) -> "Columns":
        """Fields in the order in which they first appear."""
        fields: dict[str, None] = {}
        inputs: dict[str, None] = {}
        all_ok = True
        for record in records:
            fields |= dict.fromkeys(record.get("data") or {})
            inputs |= dict.fromkeys(record.get("input") or {})
            all_ok = all_ok and record.get("outcome") == "Ok"
        return cls(tuple(fields), tuple(inputs), all_ok)


def csv_lines(records: Iterable[Mapping[str, Any]], columns: Columns) -> Iterator[str]:
    """RFC 4180 with a header; lists are JSON. Names are told apart as `data.name` where they would clash."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    names = [*PAGE_COLUMNS]
    taken = set(names)
    for kind, some in (("data", columns.fields), ("input", columns.inputs)):
        for name in some:
            names.append(f"{kind}.{name}" if name in taken else name)
            taken.add(name)
    writer.writerow(names)
    for record in records:
        yield _taken(buffer)
        data, given = record.get("data") or {}, record.get("input") or {}
        row = [record.get(name) for name in PAGE_COLUMNS]
        row += [data.get(name) for name in columns.fields] + [given.get(name) for name in columns.inputs]
        writer.writerow([value_text(value) for value in row])
    yield _taken(buffer)


def _taken(buffer: io.StringIO) -> str:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text


def value_text(value: object) -> str:
    """A field's value as text."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def drawn(records: Sequence[Mapping[str, Any]], columns: Columns, console: Console) -> RenderableType:
    """A table where there is room for one, else the records one below the other."""
    names = [*columns.inputs, *columns.fields] or ["title"]
    headers = ["url", *([] if columns.all_ok else ["outcome"]), *names]
    rows = [[_cell(record, header, columns) for header in headers] for record in records]
    if console.width < (LEAST_WIDTH + 2) * len(headers):
        return Group(*_blocks(headers, rows))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for header in headers:
        table.add_column(harmless(header), no_wrap=True, overflow="ellipsis")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _blocks(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[RenderableType]:
    for row in rows:
        yield Text(row[0], style="bold", no_wrap=True, overflow="ellipsis")
        for header, value in zip(headers[1:], row[1:], strict=True):
            yield Text(f"  {harmless(header)}: {value}", no_wrap=True, overflow="ellipsis")


def _cell(record: Mapping[str, Any], header: str, columns: Columns) -> str:
    if header == "url":
        return harmless(_short_url(str(record.get("url", ""))))
    if header == "outcome" and not columns.all_ok:
        text = " ".join(value_text(record.get(name)) for name in ("outcome", "rule") if record.get(name))
        return harmless(text)
    data, given = record.get("data") or {}, record.get("input") or {}
    if header in data:
        value = data[header]
    elif header in given:
        value = given[header]
    else:
        value = record.get(header) if header == "title" else None
    if isinstance(value, list):
        value = ", ".join(map(value_text, value))
    return harmless(value_text(value))


def _short_url(url: str) -> str:
    """Without the scheme: it costs eight columns and tells nothing."""
    return url.removeprefix("https://").removeprefix("http://")
