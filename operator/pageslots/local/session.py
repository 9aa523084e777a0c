"""A run on one machine: store, processes and control wired together, from the manifests to the exit code.

Wires, decides nothing. The order of the end is what keeps promises: first planning stops, then every agent gets
its grace to checkpoint, then requests that were running go back to the queue, free of charge.
"""

import asyncio
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pageslots.api import CrawlRequest, PageSlotPool
from pageslots.api.loading import LoadedManifests
from pageslots.api.reasons import RequestReason, RequestState
from pageslots.control import request_status
from pageslots.control.context import AlwaysLeading, Settings
from pageslots.control.controller import Controller
from pageslots.control.names import Key, browser_name, permit_of
from pageslots.control.ports import Kind, Level, NotFoundError
from pageslots.control.site import site_of
from pageslots.core.model import Instant
from pageslots.local import urlfiles
from pageslots.local.browser import NoBrowserError, find_browser
from pageslots.local.clock import WallClock
from pageslots.local.inputs import Adopted, Inputs, UnusableInputError, adopt, read_inputs
from pageslots.local.runlog import RunLog
from pageslots.local.runtime import ProcessRuntime
from pageslots.local.snapshot import RequestRow, Snapshot
from pageslots.local.store import LocalStore
from pageslots.local.storefile import StoreError, StoreFile
from pageslots.local.summary import Summary
from pageslots.local.validation import VALIDATE

STATE_FOLDER = ".pageslots"
STATE_FILE = "state.sqlite"
CHECK_SECONDS = 0.05
"""How long a finished run may go unnoticed."""
HELD_BACK = frozenset(
    {
        RequestReason.SUSPENDED,
        RequestReason.POOL_SUSPENDED,
        RequestReason.COUNTRY_SUSPENDED,
        RequestReason.SITE_SUSPENDED,
    }
)
"""Reasons for which nobody but a person can help: a run does not wait for them."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What the command line says about a run."""

    output: Path
    output_given: bool = False
    fresh: bool = False
    chromium: str = ""
    secrets: Path | None = None
    recording: Path | None = None
    log: Path | None = None


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended."""

    succeeded: int
    failed: int
    stopped: int
    unfinished: int
    interrupted: bool
    requests: tuple[RequestRow, ...]
    seconds: float
    pages: int

    @property
    def exit_code(self) -> int:
        """0: all succeeded; 1: some did not; 130: interrupted."""
        if self.interrupted:
            return 130
        return 0 if not (self.failed or self.stopped or self.unfinished) else 1


class RunControl(Protocol):
    """What a view may ask of a run."""

    def snapshot(self) -> Snapshot:
        """The run as of now."""
        ...

    def stop(self) -> None:
        """End gracefully: checkpoint, leave what is unfinished in the queue."""
        ...

    def kill(self) -> None:
        """End at once; what was running goes on from its last checkpoint next time."""
        ...


class RunView(Protocol):
    """Where a run tells what it does."""

    def notice(self, text: str) -> None:
        """One sentence, once."""
        ...

    def event(self, level: Level, name: str, fields: Mapping[str, object]) -> None:
        """A decision."""
        ...

    def attach(self, control: RunControl) -> None:
        """The run has begun."""
        ...

    async def follow(self) -> None:
        """Show the run until cancelled."""
        ...


class Recorder:
    """Decisions go to the view and into the run's log."""

    def __init__(self, view: RunView, log: RunLog) -> None:
        self._view = view
        self._log = log

    def event(self, level: Level, name: str, /, **fields: object) -> None:
        """Tell both."""
        self._log.write(level, name, fields)
        self._view.event(level, name, fields)


async def run_local(loaded: LoadedManifests, options: RunOptions, view: RunView) -> RunResult:
    """Run the manifests to the end. Raises UnusableInputError before anything is started."""
    inputs = read_inputs(loaded, outputs_overridden=options.output_given)
    state = options.output.resolve() / STATE_FOLDER
    try:
        browser = await find_browser(options.chromium)
        if options.fresh:
            _start_over(options.output.resolve(), inputs)
        store = LocalStore.open(state / STATE_FILE, validate=VALIDATE)
    except (NoBrowserError, StoreError) as error:
        raise UnusableInputError([str(error)]) from None
    with store, RunLog.open(options.log or state / "run.log") as log:
        adopted = await adopt(store, inputs)
        for notice in inputs.notices:
            view.notice(notice)
        session = _Session(store, inputs, adopted, options, view, Recorder(view, log), str(browser.path))
        return await session.run()


def _start_over(output: Path, inputs: Inputs) -> None:
    """Forget earlier runs: their state, and the results of the requests that this run names.

    Under the state's lock, which stays where it is: a run that works on this output must not lose its state.
    """
    state = output / STATE_FOLDER
    with StoreFile.locked(state / STATE_FILE) as lock:
        for path in state.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif path != lock.path:
                path.unlink()
        for request in inputs.requests:
            shutil.rmtree(output / request.name, ignore_errors=True)


class _Session:
    """One run, from the first plan to the last process."""

    def __init__(
        self,
        store: LocalStore,
        inputs: Inputs,
        adopted: Adopted,
        options: RunOptions,
        view: RunView,
        recorder: Recorder,
        chromium: str,
    ) -> None:
        self._store = store
        self._inputs = inputs
        self._options = options
        self._view = view
        self._clock = WallClock()
        self._output = options.output.resolve()
        self._runtime = ProcessRuntime(
            self._output / STATE_FOLDER, clock=self._clock, recording=options.recording
        )
        settings = Settings(
            output_uri=self._output_uri,
            site_of=self._site_of,
            row_count=urlfiles.row_count,
            proxy_credentials=self._proxy_credentials,
            chromium=chromium,
            delete_finished=False,
        )
        self._controller = Controller(
            store, self._runtime, self._clock, recorder, AlwaysLeading(store.version), settings
        )
        self._summary = Summary(self._controller, self._clock, inputs, adopted, self._runtime)
        self._stop = asyncio.Event()
        self._kill = asyncio.Event()

    # RunControl

    def snapshot(self) -> Snapshot:
        """The run as of now."""
        return self._summary.snapshot(stopping=self._stop.is_set())

    def stop(self) -> None:
        """End gracefully."""
        self._stop.set()

    def kill(self) -> None:
        """End at once."""
        self._stop.set()
        self._kill.set()

    async def run(self) -> RunResult:
        """Work until all is finished, or until told to stop."""
        async with self._runtime:
            await self._back_to_queue()
            await self._free_permits()
            async with asyncio.TaskGroup() as tasks:
                work = tasks.create_task(self._controller.run(), name="control")
                self._view.attach(self)
                follow = tasks.create_task(self._view.follow(), name="view")
                stop = tasks.create_task(self._stop.wait(), name="stop")
                done = tasks.create_task(self._wait_done(), name="done")
                await asyncio.wait([stop, done, work], return_when=asyncio.FIRST_COMPLETED)
                interrupted = self._stop.is_set() and not done.done()
                work.cancel()
                await asyncio.wait([work])
                await self._end_processes(tasks, gently=interrupted)
                for task in (stop, done, follow):
                    task.cancel()
            await self._back_to_queue()
        return self._result(interrupted=interrupted)

    async def _end_processes(self, tasks: asyncio.TaskGroup, *, gently: bool) -> None:
        """All slots at once get their grace; a second request to stop takes the rest of it away."""
        grace_ms = max(self._grace_ms(pool) for pool in self._inputs.pools)
        ending = tasks.create_task(
            self._runtime.shut_down(grace_ms=grace_ms if gently else min(grace_ms, 5_000))
        )
        kill = tasks.create_task(self._kill.wait())
        await asyncio.wait([ending, kill], return_when=asyncio.FIRST_COMPLETED)
        if not ending.done():
            await self._runtime.shut_down(grace_ms=0)
        await ending
        kill.cancel()

    @staticmethod
    def _grace_ms(pool: PageSlotPool) -> int:
        return pool.spec.pod_template.termination_grace_period_seconds * 1_000

    async def _wait_done(self) -> None:
        """Until no request of this run is unfinished."""
        await self._controller.wait_ready()
        changed = asyncio.Event()
        self._controller.on_change = changed.set
        while not all(self._is_over(request) for request in self._inputs.requests):
            changed.clear()
            await asyncio.sleep(CHECK_SECONDS)  # one look for a burst of changes
            await changed.wait()

    def _is_over(self, request: CrawlRequest) -> bool:
        obj = self._controller.context.cache.get(Kind.REQUEST, Key(request.metadata.namespace, request.name))
        if obj is None:
            return True
        known = CrawlRequest.model_validate(obj)
        if known.status.is_finished:
            return True
        if known.status.state is RequestState.RUNNING:
            return False
        return self._summary.why(known) in HELD_BACK

    async def _back_to_queue(self) -> None:
        """No process of this run exists: what the store calls running goes on later, free of charge."""
        now = Instant(self._clock.now_ms())
        for obj in await self._store.list(Kind.REQUEST):
            request = CrawlRequest.model_validate(obj)
            if request.status.state is not RequestState.RUNNING or request.status.children is not None:
                continue
            latest = request.status.attempt
            report = None if latest is None else self._controller.context.reports.get(latest.id)
            patch = request_status.requeued(
                request,
                now,
                outcome=None,
                progressed=True,
                next_attempt=None,
                message="interrupted; goes on from its checkpoint",
                report=report,
            )
            patched = await self._store.patch(
                Kind.REQUEST, request.metadata.namespace, request.name, {"status": patch}, status=True
            )
            self._controller.context.cache.observe(Kind.REQUEST, patched)

    async def _free_permits(self) -> None:
        """Permits whose processes ended with an earlier run wait for nobody.

        Control would hold them for the grace period, as it must where a missing pod's processes may still live.
        """
        for lease in await self._store.list(Kind.LEASE):
            namespace, name = lease["metadata"]["namespace"], lease["metadata"]["name"]
            permit = permit_of(name)
            if permit is None or not lease["spec"].get("holderIdentity"):
                continue
            try:
                await self._runtime.get(namespace, browser_name(*permit))
            except NotFoundError:
                await self._store.patch(Kind.LEASE, namespace, name, {"spec": {"holderIdentity": None}})

    def _result(self, *, interrupted: bool) -> RunResult:
        snapshot = self._summary.snapshot(stopping=True)
        states = [row.state for row in snapshot.requests]
        return RunResult(
            succeeded=states.count(RequestState.SUCCEEDED),
            failed=states.count(RequestState.FAILED),
            stopped=states.count(RequestState.STOPPED),
            unfinished=states.count(RequestState.QUEUED) + states.count(RequestState.RUNNING),
            interrupted=interrupted,
            requests=snapshot.requests,
            seconds=snapshot.seconds,
            pages=snapshot.pages,
        )

    # Settings

    def _output_uri(self, request: CrawlRequest, pool: PageSlotPool, parent: CrawlRequest | None) -> str:
        named = request.spec.output
        folder = self._output / (request.name if parent is None else f"{parent.name}/{request.name}")
        if named is None or self._options.output_given:
            return folder.as_uri()
        prefix = next(o.uri_prefix for o in pool.spec.outputs if o.name == named.name)
        started = request.status.first_start_time or request.metadata.creation_timestamp or ""
        top = request if parent is None else parent
        uri = prefix.format(
            namespace=request.metadata.namespace,
            request=top.name,
            country=request.spec.country,
            date=started[:10],
        )
        below = named.path or ("" if "{request}" in prefix else top.name)
        parts = [uri.rstrip("/"), below, "" if parent is None else request.name]
        return "/".join(part for part in parts if part)

    @staticmethod
    def _site_of(request: CrawlRequest) -> str:
        source = request.spec.urls_from
        return site_of(request, None if source is None else urlfiles.first_url(source.uri))

    def _proxy_credentials(self, namespace: str, name: str) -> tuple[str, str]:
        """A secret is a folder with the files `username` and `password`, as Kubernetes mounts one."""
        del namespace
        folder = (self._options.secrets or Path("secrets")) / name
        return (folder / "username").read_text().strip(), (folder / "password").read_text().strip()
