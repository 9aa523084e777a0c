"""Decisions of a run as sentences."""

from collections.abc import Mapping

from pageslots.cli.words import count, duration, harmless
from pageslots.control.ports import Level
from pageslots.local.snapshot import RequestRow

_SILENT = frozenset({"request.finished", "attempt.start", "pod.delete"})
"""Told by other means (finished requests with their pages), or of no interest on a screen; the log has them."""


def told(level: Level, name: str, fields: Mapping[str, object]) -> str:
    """One line, or nothing for what a person needn't see."""
    match name:
        case "attempt.again":
            return _again(fields)
        case _ if name in _SILENT:
            return ""
    words = " ".join(f"{key}={value}" for key, value in fields.items() if value not in (None, ""))
    return harmless(f"{'warning  ' if level == 'warning' else ''}{name}  {words}").rstrip()


def _again(fields: Mapping[str, object]) -> str:
    outcome, message = fields.get("outcome"), fields.get("message")
    if outcome == "NotStarted":
        return f"{fields.get('request')}  back in the queue: it had not started"
    return harmless(f"{fields.get('request')}  again after {outcome}" + (f": {message}" if message else ""))


def finished(row: RequestRow) -> str:
    """How a request ended: `sg-list  Succeeded  4 pages, 4 records in 3.1 s`."""
    if row.skipped:
        return f"{row.name}  {row.state} in an earlier run"
    words = [count(row.pages_done, "page")]
    if row.pages_failed:
        words.append(f"{row.pages_failed:,} failed")
    words.append(count(row.records, "record"))
    text = f"{row.name}  {row.state}  {', '.join(words)} in {duration(row.seconds)}"
    if row.attempts > 1:
        text += f", {count(row.attempts, 'attempt')}"
    if row.state != "Succeeded" and row.reason:
        text += f"  {row.reason}" + (f": {row.message}" if row.message else "")
    return harmless(text)
