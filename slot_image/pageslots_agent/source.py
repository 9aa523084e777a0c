"""The start pages of a request: `startUrls`, or the rows of a file (`urlsFrom`), one after the other.

A file is CSV with a `url` column or JSON Lines of objects with a `url`; all other columns travel with the
page as its `input`. It is read as it is needed, never as a whole: a file of millions of rows costs a buffer.
What is wrong with a single row is said in that row (`problem`) and becomes a failed record; what is wrong
with the file as a whole is a SourceError. With parts, row i belongs to part i mod count, so that parts need
not know each other.
"""

import csv
import json
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import IO, Any

from pageslots.wire import AttemptSpec
from pageslots_agent.storage import local_path
from pageslots_agent.urls import Address, UrlError, parse

MAX_LINE_BYTES = 1024 * 1024
MAX_INPUT_CHARACTERS = 64 * 1024
MAX_PROBLEM_URL = 2_048


class SourceError(ValueError):
    """The start URLs can't be read at all; the text says which file, and what was expected."""


@dataclass(frozen=True, slots=True)
class Start:
    """Start URL number `row` of all. `address` None: `text` can't be crawled, `problem` says why."""

    row: int
    text: str
    address: Address | None
    problem: str = ""
    input: str = ""  # JSON text of an object, or empty


def starts(spec: AttemptSpec, *, after: int = 0) -> Generator[Start]:
    """The start pages from row `after` on; raises SourceError. Close the iterator to close the file."""
    if spec.urls_from is None:
        for row, url in enumerate(spec.start_urls[after:], start=after):
            yield _start(row, url, "")
        return
    given = spec.urls_from
    with closing(_rows(given.uri)) as rows:
        for row, start in enumerate(rows):
            if row >= after and row % given.part_count == given.part_index:
                url, text, problem = start
                yield Start(row, url, None, problem) if problem else _start(row, url, text)


def _start(row: int, url: str, given: str) -> Start:
    try:
        return Start(row, url, parse(url), input=given)
    except UrlError as error:
        return Start(row, url[:MAX_PROBLEM_URL], None, str(error), given)


Row = tuple[str, str, str]
"""url, input (JSON text), problem."""


def _rows(uri: str) -> Generator[Row]:
    path = local_path(uri)
    if path is None:
        raise SourceError(f"urlsFrom {uri!r}: only local files can be read (a path, or file://…)")
    try:
        file = path.open("rb")
    except OSError as error:
        raise SourceError(f"urlsFrom {path}: {error.strerror or error}") from None
    with file:
        yield from _format_of(path.name, file)(path.name, _lines(file))


def _format_of(name: str, file: IO[bytes]) -> Callable[[str, Iterable[str | None]], Iterator[Row]]:
    lower = name.lower()
    if lower.endswith((".jsonl", ".ndjson", ".json")):
        return _json_rows
    if lower.endswith((".csv", ".tsv")):
        return _csv_rows
    head = file.read(4_096)
    file.seek(0)
    return _json_rows if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else _csv_rows


def _lines(file: IO[bytes]) -> Iterator[str | None]:
    """Lines as text without a byte order mark; None for one that is longer than the bound."""
    first = True
    while line := file.readline(MAX_LINE_BYTES + 1):
        if len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
            while (rest := file.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
                pass
            yield None
            continue
        text = line.decode("utf-8", "replace")
        yield text.removeprefix("\ufeff") if first else text
        first = False


def _csv_rows(name: str, lines: Iterable[str | None]) -> Iterator[Row]:
    too_long = "\x00"  # can't be in a row that is read as text files are
    reader = csv.reader((too_long if line is None else line for line in lines), dialect=_dialect(name))
    try:
        header = [column.strip() for column in next(reader, [])]
    except csv.Error as error:
        raise SourceError(f"urlsFrom {name}: the header can't be read: {error}") from None
    columns = [column.lower() for column in header]
    if "url" not in columns:
        found = ", ".join(header[:10]) or "nothing"
        raise SourceError(f"urlsFrom {name}: expected a column named url in the first row, found {found}")
    at = columns.index("url")
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            yield "", "", f"row {reader.line_num} of {name}: {error}"
            continue
        if row is None:
            return
        if not any(row):
            continue
        where = f"row {reader.line_num} of {name}"
        if row == [too_long]:
            yield "", "", f"{where}: longer than {MAX_LINE_BYTES} bytes"
            continue
        if len(row) <= at or not row[at].strip():
            yield "", "", f"{where}: no url"
            continue
        others = {header[i]: value for i, value in enumerate(row[: len(header)]) if i != at and header[i]}
        yield _bounded(row[at].strip(), others, where)


def _dialect(name: str) -> type[csv.Dialect]:
    return csv.excel_tab if name.lower().endswith(".tsv") else csv.excel


def _json_rows(name: str, lines: Iterable[str | None]) -> Iterator[Row]:
    for number, line in enumerate(lines, start=1):
        where = f"line {number} of {name}"
        if line is None:
            yield "", "", f"{where}: longer than {MAX_LINE_BYTES} bytes"
            continue
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            yield "", "", f"{where}: not JSON"
            continue
        if not isinstance(entry, dict) or not isinstance(entry.get("url"), str):
            yield "", "", f'{where}: expected an object with a text "url"'
            continue
        url = entry.pop("url")
        yield _bounded(url.strip(), entry, where)


def _bounded(url: str, others: dict[str, Any], where: str) -> Row:
    text = json.dumps(others, ensure_ascii=False, separators=(",", ":")) if others else ""
    if len(text) > MAX_INPUT_CHARACTERS:
        return url, "", f"{where}: the other columns are longer than {MAX_INPUT_CHARACTERS} characters"
    return url, text, ""
