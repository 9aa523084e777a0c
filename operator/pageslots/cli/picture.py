"""A run as a picture for a terminal: pure, from a snapshot and the room there is.

Three widths are drawn: below 60 columns only what fits, up to 100 the reasons too, beyond that everything.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pageslots.cli.words import count, harmless, stopwatch, volume
from pageslots.local.snapshot import CountryRow, RequestRow, Snapshot

NARROW, WIDE = 60, 100
STYLES = {"Running": "cyan", "Succeeded": "green", "Failed": "red", "Stopped": "yellow", "Queued": "dim"}
FINISHED = frozenset({"Succeeded", "Failed", "Stopped"})
STOPPING = "stopping: places are being saved; Ctrl-C again ends at once"


def picture(snapshot: Snapshot, *, width: int, height: int) -> RenderableType:
    """The whole run in `width` columns and at most `height` rows (but never fewer than a dozen)."""
    room = max(height, 12) - 4
    countries = _countries(snapshot.countries, width=width, most=max(3, room // 3))
    left = max(3, room - countries.row_count - 2)
    parts: list[RenderableType] = [_head(snapshot, width=width), "", countries, ""]
    parts += _requests(snapshot.requests, width=width, most=left)
    if snapshot.stopping:
        parts.append(Text(STOPPING, style="yellow", no_wrap=True, overflow="ellipsis"))
    return Group(*parts)


def _head(snapshot: Snapshot, *, width: int) -> Text:
    finished = sum(row.state in FINISHED for row in snapshot.requests)
    failed = sum(row.state == "Failed" for row in snapshot.requests)
    words = [
        stopwatch(snapshot.seconds),
        f"{finished}/{len(snapshot.requests)} {'done' if width < NARROW else 'requests done'}",
        count(snapshot.pages, "page"),
        f"{snapshot.pages_per_second:.1f}/s",
        f"permits {snapshot.permits_held}/{snapshot.permits_max}",
    ]
    if width >= NARROW:
        words.append(count(snapshot.browsers, "browser"))
        if failed:
            words.insert(2, f"{failed} failed")
    if width >= WIDE:
        words.append(volume(snapshot.bytes))
    return Text("  ".join(words), style="bold", no_wrap=True, overflow="ellipsis")


def _table(headers: Iterable[str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", expand=False)
    for number, header in enumerate(headers):
        table.add_column(
            header, justify="left" if number == 0 else "right", no_wrap=True, overflow="ellipsis"
        )
    return table


def _countries(rows: Sequence[CountryRow], *, width: int, most: int) -> Table:
    """Slots by country and state; the busiest countries when there isn't room for all."""
    headers: tuple[str, ...] = ("country", "slots", "preparing", "ready", "running", "queued", "done")
    if width < NARROW:
        headers = ("", "slots", "prep", "ready", "run", "queue", "done")
    elif width >= WIDE:
        headers = (
            "country",
            "slots",
            "no page",
            "preparing",
            "ready",
            "running",
            "closing",
            "queued",
            "done",
        )
    table = _table(headers)
    if width < NARROW:
        table.padding = (0, 1, 0, 0)
    several = len({row.pool for row in rows}) > 1
    shown = rows if len(rows) <= most else sorted(rows, key=_quietness)[: most - 1]
    for row in sorted(shown, key=lambda row: (row.pool, row.country)):
        empty = row.slots - row.preparing - row.ready - row.running - row.closing
        states = [row.preparing, row.ready, row.running, row.queued, row.finished]
        if width >= WIDE:
            states = [empty, row.preparing, row.ready, row.running, row.closing, row.queued, row.finished]
        name = f"{row.pool}/{row.country}" if several else row.country
        table.add_row(name, str(row.slots), *(str(number) if number else "-" for number in states))
    if len(shown) < len(rows):
        table.add_row(f"and {len(rows) - len(shown)} more", *[""] * (len(headers) - 1), style="dim")
    return table


def _quietness(row: CountryRow) -> tuple[int, int, str]:
    return (-row.running - row.preparing - row.ready, -row.queued, row.country)


def _requests(rows: Sequence[RequestRow], *, width: int, most: int) -> list[RenderableType]:
    """All requests where there is room; else the running ones, some that come next, and sums of the rest."""
    rest: list[RequestRow] = []
    shown = list(rows)
    if len(rows) > most:
        by_state = sorted(rows, key=lambda row: {"Running": 0, "Queued": 1}.get(row.state, 2))
        shown, rest = by_state[: most - 1], by_state[most - 1 :]
    headers = ["request", "state", "pages"]
    if width >= WIDE:
        headers += ["records", "attempts", "time"]
    if width >= NARROW:
        headers.append("why")
    table = _table(headers)
    table.columns[1].justify = "left"
    if width < NARROW:
        table.padding = (0, 1, 0, 0)
        table.columns[0].max_width = max(8, width - 20)
    else:
        table.columns[-1].justify = "left"
        table.columns[0].max_width = width // 3
    for row in shown:
        table.add_row(*_cells(row, width=width))
    lines: list[RenderableType] = [table]
    if rest:
        lines.append(
            Text(f"and {len(rest)} more: {sums(rest)}", style="dim", no_wrap=True, overflow="ellipsis")
        )
    return lines


def _cells(row: RequestRow, *, width: int) -> list[Text]:
    cells = [Text(row.name), Text(row.state, style=STYLES.get(row.state, "")), Text(pages(row))]
    if width >= WIDE:
        cells += [
            Text(str(row.records or "-")),
            Text(str(row.attempts or "-")),
            Text(stopwatch(row.seconds) if row.seconds else "-"),
        ]
    if width >= NARROW:
        cells.append(Text(why(row), style="red" if row.state == "Failed" else "dim"))
    return cells


def pages(row: RequestRow) -> str:
    """`31/52`, and the failed ones where there are some: `3/5 -1`."""
    if not (row.pages_discovered or row.pages_done):
        return "-"
    failed = f" -{row.pages_failed}" if row.pages_failed else ""
    return f"{row.pages_done}/{max(row.pages_discovered, row.pages_done)}{failed}"


def why(row: RequestRow) -> str:
    """Why it waits, or how it failed; nothing where the state says it all."""
    if row.skipped:
        return "in an earlier run"
    if row.state == "Succeeded" or (row.state == "Running" and row.reason == "Running"):
        return ""
    return harmless(
        f"{row.reason}: {row.message}" if row.reason and row.message else row.reason or row.message
    )


def sums(rows: Iterable[RequestRow]) -> str:
    """`3 Running, 300 Queued (WaitingForSlot 290, SiteCoolingDown 10), 20 Succeeded`."""
    rows = list(rows)
    states = Counter(row.state for row in rows)
    waiting = Counter(row.reason for row in rows if row.state == "Queued" and row.reason)
    reasons = ", ".join(f"{reason} {number}" for reason, number in waiting.most_common())
    words = [
        f"{states[state]} {state}" + (f" ({reasons})" if state == "Queued" and reasons else "")
        for state in ("Running", "Queued", "Succeeded", "Failed", "Stopped")
        if states[state]
    ]
    return ", ".join(words)
