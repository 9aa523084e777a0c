"""What a benchmark says: rows of a value beside its goal and, where there is one, its peer in the same run."""

import json
import os
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from rich.console import Console
from rich.table import Table


class Row(TypedDict):
    """One number. `ok` None: it has no goal of its own, it explains another one."""

    name: str
    value: float
    unit: str
    goal: str
    ok: bool | None
    peer: NotRequired[str]
    note: NotRequired[str]


class Measured(TypedDict):
    """What one benchmark gave. `load`: the machine's one-minute load average before and after."""

    benchmark: str
    rows: list[Row]
    seconds: float
    load: tuple[float, float]
    error: NotRequired[str]


def at_most(name: str, value: float, unit: str, goal: float, *, peer: str = "", note: str = "") -> Row:
    """A row whose value should not exceed the goal."""
    return {**_row(name, value, unit, peer, note), "goal": f"≤ {goal:g}", "ok": value <= goal}


def at_least(name: str, value: float, unit: str, goal: float, *, peer: str = "", note: str = "") -> Row:
    """A row whose value should reach the goal."""
    return {**_row(name, value, unit, peer, note), "goal": f"≥ {goal:g}", "ok": value >= goal}


RATIO = "\N{MULTIPLICATION SIGN}"
"""Unit of a value in proportion to its peer's."""


def plain(name: str, value: float, unit: str, *, peer: str = "", note: str = "") -> Row:
    """A row without a goal."""
    return _row(name, value, unit, peer, note)


def _row(name: str, value: float, unit: str, peer: str, note: str) -> Row:
    return {"name": name, "value": value, "unit": unit, "goal": "", "ok": None, "peer": peer, "note": note}


def spread(values: Iterable[float]) -> str:
    """Median and range, for a note: `3.1 (2.9-3.4)`."""
    known = sorted(values)
    return f"{statistics.median(known):.3g} ({known[0]:.3g}-{known[-1]:.3g})"


def figure(value: float) -> str:
    """Three digits that matter, never an exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def show(console: Console, measured: Sequence[Measured]) -> None:
    """All rows as one table, and how busy the machine was."""
    table = Table(
        title=f"pageslots benchmarks, {os.cpu_count()} cores", title_justify="left", show_lines=False
    )
    for column in ("benchmark", "what", "value", "goal", "", "peer in the same run", "note"):
        table.add_column(column, justify="right" if column in ("value", "goal") else "left", overflow="fold")
    for one in measured:
        before, after = one["load"]
        head = f"{one['benchmark']}\n[dim]{one['seconds']:.0f} s, load {before:.1f}→{after:.1f}[/dim]"
        if "error" in one:
            table.add_row(head, f"[red]did not run: {one['error']}[/red]")
        for row in one["rows"]:
            mark = {None: "", True: "[green]ok[/green]", False: "[red]missed[/red]"}[row["ok"]]
            value = f"{figure(row['value'])} {row['unit']}".strip()
            table.add_row(
                head, row["name"], value, str(row["goal"]), mark, row.get("peer", ""), row.get("note", "")
            )
            head = ""
        table.add_section()
    console.print(table)


def write_json(path: Path, measured: Sequence[Measured]) -> None:
    """Everything, for a machine to compare."""
    whole: dict[str, Any] = {"cpus": os.cpu_count(), "benchmarks": list(measured)}
    path.write_text(json.dumps(whole, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
