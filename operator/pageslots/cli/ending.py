"""What is said at the end of a run: what failed and why, where the results are, how to see them."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from rich.console import Console
from rich.text import Text

from pageslots.cli.words import count, duration, harmless
from pageslots.local.session import RunResult
from pageslots.local.snapshot import RequestRow

MOST_NAMED = 20
"""Requests that are named one by one."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How to tell the end of one run: `again` is the command that goes on with it."""

    output: Path
    again: Sequence[str] = ()

    def tell(self, result: RunResult, console: Console) -> None:
        """Write it."""
        for line in self.lines(result):
            console.print(line, soft_wrap=True)  # a command that is wrapped by hand can't be copied

    def lines(self, result: RunResult) -> list[Text]:
        """What is written."""
        lines = [Text(), Text(_total(result), style="bold")]
        lines += _failures(result)
        lines += self._unfinished(result)
        lines += self._where(result)
        return lines

    def _unfinished(self, result: RunResult) -> list[Text]:
        left = [row for row in result.requests if row.state in ("Queued", "Running")]
        if not left:
            return []
        held = [row for row in left if row.reason.endswith("Suspended")]
        lines = []
        if held and not result.interrupted:
            lines.append(Text(f"Suspended: {_names(held)}", style="yellow"))
        elif result.interrupted:
            lines.append(Text(f"Interrupted: {count(len(left), 'request')} not finished.", style="yellow"))
            if self.again:
                lines.append(Text("The same command goes on where this one stopped:"))
                lines.append(Text(f"  {shlex.join(self.again)}"))
        return lines

    def _where(self, result: RunResult) -> list[Text]:
        rows = [row for row in result.requests if row.records]
        if not rows:
            return [Text("No records were written.")]
        row = next((row for row in rows if row.state == "Succeeded"), rows[0])
        lines = [Text(f"Results are in {shown(self.output)}; to see those of {row.name}:")]
        folder = _folder(row.result)
        where = [row.name, "--output", shown(self.output)]
        if folder is not None and folder != self.output.resolve() / row.name:
            lines[0] = Text(f"Results are where the manifests say; to see those of {row.name}:")
            where = [shown(folder)]
        return [*lines, Text(f"  {shlex.join(['pageslots', 'results', *where])}", style="cyan")]


def _total(result: RunResult) -> str:
    parts = [
        f"{number:,} {word}"
        for number, word in (
            (result.succeeded, "succeeded"),
            (result.failed, "failed"),
            (result.stopped, "stopped"),
            (result.unfinished, "not finished"),
        )
        if number
    ]
    skipped = sum(row.skipped for row in result.requests)
    text = f"{count(len(result.requests), 'request')}: {', '.join(parts)}"
    text += f"; {count(result.pages, 'page')} in {duration(result.seconds)}"
    if skipped:
        text += f". {skipped:,} had finished in an earlier run (--fresh starts over)"
    return text


def _failures(result: RunResult) -> list[Text]:
    lines: list[Text] = []
    for state in ("Failed", "Stopped"):
        rows = [row for row in result.requests if row.state == state]
        if not rows:
            continue
        lines.append(Text(f"{state}:", style="red" if state == "Failed" else "yellow"))
        wide = max(len(row.name) for row in rows[:MOST_NAMED])
        lines += [Text(f"  {row.name:<{wide}}  {_reason(row)}") for row in rows[:MOST_NAMED]]
        if len(rows) > MOST_NAMED:
            lines.append(Text(f"  and {len(rows) - MOST_NAMED:,} more"))
    return lines


def _reason(row: RequestRow) -> str:
    text = harmless(f"{row.reason}: {row.message}" if row.message else row.reason)
    notes = []
    if row.pages_failed and row.pages_discovered > 1 and row.reason != "TooManyFailedPages":
        notes.append(f"{row.pages_failed:,} of {count(row.pages_discovered, 'page')} failed")
    if row.attempts > 1 and "in a row" not in row.message:
        notes.append(count(row.attempts, "attempt"))
    return f"{text} ({', '.join(notes)})" if notes else text


def _names(rows: Sequence[RequestRow]) -> str:
    names = ", ".join(row.name for row in rows[:MOST_NAMED])
    return names if len(rows) <= MOST_NAMED else f"{names} and {len(rows) - MOST_NAMED:,} more"


def _folder(uri: str) -> Path | None:
    """The local folder of a result."""
    parts = urlsplit(uri)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def shown(path: Path) -> str:
    """A path as a person would type it here."""
    path = path.resolve()
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) and path != here else str(path)
