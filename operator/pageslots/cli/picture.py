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
STOPPING = "stopping; Ctrl-C again ends at once"


def picture(snapshot: Snapshot, *, width: int, height: int) -> RenderableType:
    """The whole run in `width` columns and at most `height` rows (but never fewer than a dozen)."""
    around = 7 if width >= NARROW else 8  # head, gaps, headers, the line of sums, the one about stopping
    room = max(height, 12) - 2 - around
    countries = _countries(snapshot.countries, width=width, most=max(1, room // 3))
    left = room - countries.row_count
    parts: list[RenderableType] = [_head(snapshot, width=width), "", countries, ""]
    parts += _requests(snapshot.requests, width=width, most=left)
    if snapshot.stopping:
        parts.append(Text(STOPPING, style="yellow", no_wrap=True, overflow="ellipsis"))
    parts.append("")  # where the terminal echoes ^C: in a full line the echo would wrap and shift the picture
    return Group(*parts)


def _head(snapshot: Snapshot, *, width: int) -> Text:
    finished = sum(row.state in FINISHED for row in snapshot.requests)
    failed = sum(row.state == "Failed" for row in snapshot.requests)
    done = f"{finished}/{len(snapshot.requests)}"
    rate = f"{snapshot.pages_per_second:.1f}/s"
    permits = f"permits {snapshot.permits_held}/{snapshot.permits_max}"
    if width < NARROW:
        lines = [
            f"{stopwatch(snapshot.seconds)}  {done} done  {count(snapshot.pages, 'page')}",
            f"{permits}  {rate}",
        ]
        return Text("\n".join(lines), style="bold", no_wrap=True, overflow="ellipsis")
    words = [stopwatch(snapshot.seconds), f"{done} requests done"]
    if failed:
        words.append(f"{failed} failed")
    words += [count(snapshot.pages, "page"), rate, permits, count(snapshot.browsers, "browser")]
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
    """All requests where there is room; else the running ones, some of each other state, and sums of the rest."""
    shown, rest = (list(rows), []) if len(rows) <= most else _chosen(rows, most)
    headers = ["request", "state", "pages"]
    if width >= NARROW:
        headers.append("failed")
    if width >= WIDE:
        headers += ["records", "attempts", "time"]
    cells = [_cells(row, width=width) for row in shown]
    table = _table(headers)
    table.columns[1].justify = "left"
    gap = 1 if width < NARROW else 2
    table.padding = (0, gap, 0, 0)
    wide = [max(map(len, column)) for column in zip(headers, *cells, strict=True)]
    wide[0] = min(wide[0], width // 3 if width >= NARROW else max(8, width - sum(wide[1:]) - gap * len(wide)))
    for column, columns in zip(table.columns, wide, strict=True):
        column.width = columns
    left = width - sum(wide) - gap * len(wide)
    if width >= NARROW:
        table.add_column("why", no_wrap=True, overflow="ellipsis", width=max(left, 4))
    for row, (name, state, *numbers) in zip(shown, cells, strict=True):
        texts = [Text(name), Text(state, style=STYLES.get(state, "")), *map(Text, numbers)]
        if width >= NARROW:
            texts.append(Text(why(row), style="red" if state == "Failed" else "dim"))
        table.add_row(*texts)
    lines: list[RenderableType] = [table]
    below = f"and {len(rest):,} more: {sums(rest)}" if rest else _queue(rows) if width < NARROW else ""
    if below:
        lines.append(Text(below, style="dim", no_wrap=True, overflow="ellipsis"))
    return lines


def _chosen(rows: Sequence[RequestRow], most: int) -> tuple[list[RequestRow], list[RequestRow]]:
    """The rows to show, and the others: running ones first, but a third is left for what failed and what waits."""
    by_state = {state: [row for row in rows if row.state == state] for state in STYLES}
    others = by_state["Failed"] + by_state["Stopped"] + by_state["Queued"] + by_state["Succeeded"]
    running = by_state["Running"]
    share = max(most - len(others), most * 2 // 3)
    shown = running[:share]
    shown += others[: most - len(shown)]
    taken = {id(row) for row in shown}
    return shown, [row for row in rows if id(row) not in taken]


def _cells(row: RequestRow, *, width: int) -> list[str]:
    cells = [row.name, row.state, pages(row)]
    if width >= NARROW:
        cells.append(str(row.pages_failed or "-"))
    if width >= WIDE:
        cells += [
            str(row.records or "-"),
            str(row.attempts or "-"),
            stopwatch(row.seconds) if row.seconds else "-",
        ]
    return cells


def _queue(rows: Iterable[RequestRow]) -> str:
    """Why requests wait, where the table has no room for it."""
    queued = [row for row in rows if row.state == "Queued"]
    return f"queue: {_reasons(queued)}" if queued else ""


def _reasons(rows: Iterable[RequestRow]) -> str:
    numbers = Counter(row.reason for row in rows if row.state == "Queued" and row.reason)
    return ", ".join(f"{reason} {number}" for reason, number in numbers.most_common())


def pages(row: RequestRow) -> str:
    """Done of those that are known: `31/52`."""
    if not (row.pages_discovered or row.pages_done):
        return "-"
    return f"{row.pages_done}/{max(row.pages_discovered, row.pages_done)}"


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
    reasons = _reasons(rows)
    words = [
        f"{states[state]} {state}" + (f" ({reasons})" if state == "Queued" and reasons else "")
        for state in ("Running", "Queued", "Succeeded", "Failed", "Stopped")
        if states[state]
    ]
    return ", ".join(words)
