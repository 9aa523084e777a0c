"""A run with somebody at the keyboard: Ctrl-C, a closed pipe, and the view that fits where words go."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TextIO

from rich.console import Console

from pageslots.api import LoadedManifests
from pageslots.cli.ending import Ending
from pageslots.cli.live import LiveView
from pageslots.cli.outlet import Outlet
from pageslots.cli.plain import PlainView
from pageslots.cli.problems import UsageProblem
from pageslots.control.ports import Level
from pageslots.local.inputs import UnusableInputError
from pageslots.local.session import RunControl, RunOptions, RunResult, RunView, run_local

Run = Callable[[RunView], Awaitable[RunResult]]
"""Something that runs to its end and shows itself in a view."""

ASKING_TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPTED, PIPE_CLOSED = 130, 141
"""The exit codes of a program that SIGINT or SIGPIPE ended, as shells count."""
FIRST = "stopping: places are being saved; Ctrl-C again ends at once"
SECOND = "ending at once"


def run_manifests(loaded: LoadedManifests, options: RunOptions) -> Run:
    """A run of manifests that are loaded already."""
    return lambda view: run_local(loaded, options, view)


def attend(run: Run, ending: Ending, *, plain: bool | None, stream: TextIO | None = None) -> int:
    """Run it, show it, tell how it ended; returns the exit code. Raises what the run raises."""
    outlet = Outlet(stream or sys.stdout)
    try:
        console = Console(file=outlet, highlight=False)  # type: ignore[arg-type]  # as much of a file as it uses
        view: PlainView | LiveView = (
            PlainView(outlet) if _is_plain(asked=plain, console=console) else LiveView(console, outlet)
        )
        result = asyncio.run(_attended(run, view, outlet))
    except asyncio.CancelledError:  # asked to end before anything was started
        return PIPE_CLOSED if outlet.closed_by_reader else INTERRUPTED
    except UnusableInputError as error:
        raise UsageProblem(*error.errors) from None
    else:
        if isinstance(view, PlainView):
            view.tell_finished(result.requests)
        ending.tell(result, console)
    finally:
        outlet.close()
    return PIPE_CLOSED if outlet.closed_by_reader and result.interrupted else result.exit_code


def _is_plain(*, asked: bool | None, console: Console) -> bool:
    return asked if asked is not None else not console.is_terminal or console.is_dumb_terminal


async def _attended(run: Run, view: RunView, outlet: Outlet) -> RunResult:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    attended = _Attended(view, task)

    def tell_gone() -> None:
        loop.call_soon_threadsafe(attended.reader_gone)

    outlet.on_gone = tell_gone
    # A shell that starts something in the background has it ignore Ctrl-C, and nohup SIGHUP: that stays so.
    heard = [number for number in ASKING_TO_END if signal.getsignal(number) is not signal.SIG_IGN]
    for number in heard:
        loop.add_signal_handler(number, attended.asked_to_end)
    try:
        return await run(attended)
    finally:
        outlet.on_gone = _nothing
        for number in heard:
            loop.remove_signal_handler(number)


def _nothing() -> None:
    """Nobody needs to be told any more."""


class _Attended:
    """Hands on to the view, and turns signals into words to the run."""

    def __init__(self, view: RunView, task: "asyncio.Task[object]") -> None:
        self._view = view
        self._task = task
        self._control: RunControl | None = None
        self._asked = 0

    def notice(self, text: str) -> None:
        """Hand on."""
        self._view.notice(text)

    def event(self, level: Level, name: str, fields: Mapping[str, object]) -> None:
        """Hand on."""
        self._view.event(level, name, fields)

    def attach(self, control: RunControl) -> None:
        """Hand on, and remember whom to ask to end."""
        self._control = control
        self._view.attach(control)

    async def follow(self) -> None:
        """Hand on."""
        await self._view.follow()

    def asked_to_end(self) -> None:
        """The first time gracefully, the second time at once; before the run has begun, at once."""
        self._asked += 1
        if self._control is None:
            self._task.cancel()
        elif self._asked == 1:
            self._view.notice(FIRST)
            self._control.stop()
        elif self._asked == 2:
            self._view.notice(SECOND)
            self._control.kill()

    def reader_gone(self) -> None:
        """Nobody reads any more: end gracefully, so that the same command can go on later."""
        if self._control is None:
            self._task.cancel()
        elif self._asked == 0:
            self._asked = 1
            self._control.stop()
