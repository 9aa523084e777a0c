"""One record: what came of one page, as one line of JSON; docs/records.md says what each field means."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pageslots.wire import Outcome
from pageslots_agent.extract import Reading
from pageslots_agent.frontier import Page
from pageslots_agent.outcome import Verdict
from pageslots_agent.ports import Visit

RECORD_VERSION = 1


@dataclass(frozen=True, slots=True)
class Visited:
    """A page as it was found, with the verdict on it."""

    page: Page
    visit: Visit
    verdict: Verdict
    fetched_ms: int  # wall clock, when loading began
    reading: Reading | None = None
    html: str | None = None
    captures: Mapping[str, Any] = field(default_factory=dict)


def page_record(
    visited: Visited, *, attempt: str, captures: Mapping[str, Any], links: list[str] | None
) -> bytes:
    """The line of a page that was loaded, or was tried."""
    page, visit, verdict, reading = visited.page, visited.visit, visited.verdict, visited.reading
    record: dict[str, Any] = {
        "v": RECORD_VERSION,
        "url": page.url,
        "finalUrl": visit.final_url or page.url,
        "status": visit.status,
        "outcome": verdict.outcome,
        "depth": page.depth,
        "fetchedTime": timestamp(visited.fetched_ms),
        "milliseconds": visit.milliseconds,
        "bytes": visit.bytes,
        "attempt": attempt,
        "tries": page.tries + 1,
    }
    optional = {
        "rule": verdict.rule,
        "message": verdict.message,
        "title": reading.title if reading else "",
        "contentType": visit.content_type,
        "download": visit.is_download,
        "proxy": visit.proxy,
        "input": json.loads(page.input) if page.input else None,
        "data": reading.data if reading else None,
        "cut": reading.cut if reading else None,
        "captures": captures,
    }
    record |= {name: value for name, value in optional.items() if value}
    if links is not None:
        record["links"] = links
    return _line(record)


def row_record(*, text: str, problem: str, given: str, attempt: str, wall_ms: int) -> bytes:
    """The line of a start URL that can't be crawled."""
    record: dict[str, Any] = {
        "v": RECORD_VERSION,
        "url": text,
        "finalUrl": text,
        "status": None,
        "outcome": Outcome.BAD_REQUEST,
        "depth": 0,
        "fetchedTime": timestamp(wall_ms),
        "milliseconds": 0,
        "bytes": 0,
        "attempt": attempt,
        "tries": 0,
        "rule": "bad-url",
        "message": problem,
    }
    if given:
        record["input"] = json.loads(given)
    return _line(record)


def timestamp(wall_ms: int) -> str:
    """RFC 3339 in UTC, with milliseconds."""
    moment = datetime.fromtimestamp(wall_ms / 1_000, UTC)
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def _line(record: dict[str, Any]) -> bytes:
    # "replace": a lone surrogate from a page's script is no Unicode text and would stop every reader.
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace") + b"\n"
