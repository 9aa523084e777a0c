"""A run whose course is written down: for the command line's tests."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from pageslots.local.session import RunResult, RunView
from pageslots.local.snapshot import CountryRow, RequestRow, Snapshot


def a_row(name: str = "shop", state: str = "Succeeded", **more: object) -> RequestRow:
    """A request of one page that succeeded, unless `more` says otherwise."""
    row = RequestRow(
        name=name,
        country="SG",
        state=state,
        reason="",
        message="",
        pages_done=1,
        pages_failed=0,
        pages_discovered=1,
        attempts=1,
        records=1,
        result="",
        seconds=2.0,
        skipped=False,
    )
    return replace(row, **more)  # type: ignore[arg-type]


def a_country(country: str = "SG", **more: object) -> CountryRow:
    """A country with two slots, one of which runs."""
    row = CountryRow("default", country, 2, 2, 0, 1, 1, 0, 3, 4, direct=True)
    return replace(row, **more)  # type: ignore[arg-type]


def a_snapshot(*rows: RequestRow, **more: object) -> Snapshot:
    """A run of these requests, 42 s old."""
    shot = Snapshot(
        now_ms=0,
        seconds=42.0,
        countries=(a_country(),),
        requests=rows,
        permits_held=1,
        permits_max=4,
        browsers=1,
        pages=7,
        pages_per_second=1.5,
        bytes=2048,
        stopping=False,
    )
    return replace(shot, **more)  # type: ignore[arg-type]


def a_result(*rows: RequestRow, interrupted: bool = False) -> RunResult:
    """The end of a run of these requests."""
    states = [row.state for row in rows]
    return RunResult(
        succeeded=states.count("Succeeded"),
        failed=states.count("Failed"),
        stopped=states.count("Stopped"),
        unfinished=states.count("Queued") + states.count("Running"),
        interrupted=interrupted,
        requests=rows,
        seconds=42.0,
        pages=7,
    )


class ScriptedRun:
    """Runs until it is told to stop, or until `finish` is called; remembers what it was told."""

    def __init__(
        self, *rows: RequestRow, on_attach: Callable[["ScriptedRun"], None] = lambda _: None
    ) -> None:
        self.rows: Sequence[RequestRow] = rows
        self.told: list[str] = []
        self._on_attach = on_attach
        self._ended: asyncio.Event
        self.needs_kill = False

    def snapshot(self) -> Snapshot:
        return a_snapshot(*self.rows, stopping="stop" in self.told)

    def stop(self) -> None:
        self.told.append("stop")
        if not self.needs_kill:
            self._ended.set()

    def kill(self) -> None:
        self.told.append("kill")
        self._ended.set()

    def finish(self, *rows: RequestRow) -> None:
        self.rows = rows
        self._ended.set()

    async def __call__(self, view: RunView) -> RunResult:
        self._ended = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            view.attach(self)
            follow = tasks.create_task(view.follow())
            asyncio.get_running_loop().call_soon(self._on_attach, self)
            async with asyncio.timeout(10):
                await self._ended.wait()
            follow.cancel()
        return a_result(*self.rows, interrupted=bool(self.told))
