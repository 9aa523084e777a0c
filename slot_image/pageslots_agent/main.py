"""Wires one slot agent together, and ends it in order. Decides nothing about slots."""

import argparse
import asyncio
import contextlib
import importlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pageslots.wire import MAX_BODY_BYTES, AgentConfig, WireError
from pageslots_agent import processes
from pageslots_agent.blocking import BLOCKABLE, Blocking
from pageslots_agent.browser import DRIVER_ENVIRONMENT, BrowserSettings, Chromium
from pageslots_agent.http11 import HttpServer
from pageslots_agent.logs import event, set_up, warn
from pageslots_agent.metrics import exposition
from pageslots_agent.proxies import ProxyChoice
from pageslots_agent.relay import Relay
from pageslots_agent.server import Routes
from pageslots_agent.slot import Slot, StartAttempt
from pageslots_agent.slot_browser import SlotBrowser

UNPOLLED_STALE_TIMES = 3
ANSWERS_SECONDS = 0.3
CLOSE_SECONDS = 2.0
MARGIN_SECONDS = 0.8
"""What is left of the grace when the attempt must have ended."""
LOOK_SECONDS = 5.0


def main(argv: list[str] | None = None) -> int:
    """Run the agent; exit status 0 after an orderly end, 2 for an unusable start."""
    arguments = _parser().parse_args(argv)
    try:
        config = AgentConfig.from_json(Path(arguments.config).read_bytes())
    except (OSError, WireError) as error:
        print(f"pageslots_agent: {arguments.config}: {error}", file=sys.stderr)
        return 2
    set_up(country=config.country, slot=config.pod_name)
    ours: Path | None = None
    try:
        if config.scratch_dir:
            scratch = Path(config.scratch_dir).resolve()
        else:
            scratch = ours = Path(tempfile.mkdtemp(prefix="pageslots-agent-"))
        _set_environment(scratch)
        return asyncio.run(_Agent(config).run(ready_fd=arguments.ready_fd, parent_fd=arguments.parent_fd))
    except (OSError, ValueError) as error:  # an address in use, a folder not writable, a proxy that is none
        warn("agent.unusable", error=error)
        return 2
    finally:
        if ours is not None:
            shutil.rmtree(ours, ignore_errors=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pageslots_agent", description="The agent behind one page slot.")
    parser.add_argument("--config", required=True, help="file with an AgentConfig as JSON")
    parser.add_argument("--ready-fd", type=int, help="descriptor that is told the address when listening")
    parser.add_argument("--parent-fd", type=int, help="descriptor whose end ends the agent")
    return parser


def _set_environment(scratch: Path) -> None:
    """HOME and temporary files below scratch; Playwright's own browser is still found."""
    home = Path.home()
    caches = home / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    os.environ.setdefault("PLAYWRIGHT_BROWSERS_PATH", str(caches / "ms-playwright"))
    for name, folder in {
        "HOME": "home",
        "TMPDIR": "tmp",
        "XDG_CACHE_HOME": "home/.cache",
        "XDG_CONFIG_HOME": "home/.config",
        "XDG_RUNTIME_DIR": "tmp",
    }.items():
        path = scratch / folder
        path.mkdir(parents=True, exist_ok=True)
        os.environ[name] = str(path)
    tempfile.tempdir = None  # forget what was found before TMPDIR was set
    os.environ.setdefault("NODE_COMPILE_CACHE", str(scratch / "node-cache"))
    os.environ.update(DRIVER_ENVIRONMENT)


async def _load_crawl() -> StartAttempt:
    """Import the crawl, whose libraries cost memory that an idle slot saves; aside, as it takes its time."""
    crawl = await asyncio.to_thread(importlib.import_module, "pageslots_agent.crawl")
    start: StartAttempt = crawl.start_attempt
    return start


class _Agent:
    """The parts of one agent, started and stopped in the same place."""

    def __init__(self, config: AgentConfig) -> None:
        self._config = config
        self._ending = asyncio.Event()
        self._reason = ""
        self._choice = ProxyChoice(config, random.SystemRandom())
        self._relay = Relay(self._choice.choose())

    async def run(self, *, ready_fd: int | None, parent_fd: int | None) -> int:
        asyncio.get_running_loop().set_exception_handler(_stray)
        config = self._config
        chromium = Chromium(browser_settings(config, await self._relay.start()))
        browser = SlotBrowser(config, chromium, self._relay, self._choice, wall_clock=_wall_clock)
        slot = Slot(config, browser, load_crawl=_load_crawl, wall_clock=_wall_clock)
        chromium.on_lost = slot.browser_lost
        routes = Routes(slot, token=config.token, metrics=lambda: self._metrics(slot, browser))
        server = HttpServer(routes.handle, max_body_bytes=MAX_BODY_BYTES)
        host, port = await server.start(config.listen_host, config.listen_port)
        event("agent.listening", host=host, port=port)
        if ready_fd is not None:
            os.write(ready_fd, json.dumps({"host": host, "port": port}).encode() + b"\n")
            os.close(ready_fd)
        self._listen_for_the_end(parent_fd)
        worker = asyncio.create_task(slot.run(), name="slot-worker")
        look = asyncio.create_task(self._look(slot, routes), name="look-for-an-operator")
        ending = asyncio.create_task(self._ending.wait())
        await asyncio.wait({worker, look, ending}, return_when=asyncio.FIRST_COMPLETED)
        failed = worker.done()
        event("agent.ending", reason=self._reason or "its worker failed")
        clock = asyncio.get_running_loop().time
        until = clock() + config.grace_ms / 1000 - MARGIN_SECONDS
        try:
            if not failed:
                await slot.shut_down(seconds=max(until - clock(), 0.1))
            for task in (worker, look, ending):
                task.cancel()
            await server.close(grace_seconds=ANSWERS_SECONDS)
            # a clean end if there is time for it; whatever is left is killed
            async with asyncio.timeout(max(min(until - clock(), CLOSE_SECONDS), 0.1)):
                await asyncio.wait({worker, look, ending})
                await browser.close()
                await self._relay.close()
        except TimeoutError:
            warn("agent.killing-browser", children=processes.kill_own_children())
        finally:
            processes.kill_own_children()
        if failed and not worker.cancelled() and (error := worker.exception()) is not None:
            raise error
        return 0

    def _listen_for_the_end(self, parent_fd: int | None) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end, number.name)
        if parent_fd is not None:
            os.set_blocking(parent_fd, False)
            loop.add_reader(parent_fd, self._parent_spoke, parent_fd)

    def _parent_spoke(self, parent_fd: int) -> None:
        with contextlib.suppress(BlockingIOError):
            if os.read(parent_fd, 4096) == b"":
                asyncio.get_running_loop().remove_reader(parent_fd)
                if not self._ending.is_set():
                    self._end("the parent is gone")

    def _end(self, reason: str) -> None:
        if self._ending.is_set():
            warn("agent.killed", reason=f"{reason} again")
            processes.kill_own_children()
            os._exit(1)
        self._reason = reason
        self._ending.set()

    async def _look(self, slot: Slot, routes: Routes) -> None:
        """Return when nobody asks for this slot any more, or its attempt does not end."""
        unpolled = UNPOLLED_STALE_TIMES * self._config.stale_ms / 1000
        while True:
            await asyncio.sleep(min(LOOK_SECONDS, unpolled / 4))
            if slot.overdue:
                self._reason = "the attempt did not end at its deadline"
                return
            if not slot.busy and time.monotonic() - routes.last_contact > unpolled:
                self._reason = f"no operator has asked for {unpolled:.0f} s"
                return

    def _metrics(self, slot: Slot, browser: SlotBrowser) -> bytes:
        return exposition(
            slot.status(),
            country=self._config.country,
            outcomes=slot.outcomes,
            bytes_sent=self._relay.meter.sent,
            bytes_received=self._relay.meter.received,
            browser_starts=browser.starts,
        )


def _stray(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What nobody awaited. Playwright leaves such tasks when its driver is killed: a line, no traceback."""
    error = context.get("exception")
    library = type(error).__module__.startswith("playwright")
    exc_info = error if isinstance(error, BaseException) and not library else False
    warn("task.failed", what=context.get("message"), error=repr(error), exc_info=exc_info)


def browser_settings(config: AgentConfig, relay_port: int) -> BrowserSettings:
    """What the browser of a slot is made with."""
    unknown = sorted(set(config.blocked_resource_types) - BLOCKABLE)
    if unknown:
        warn("blocking.unknown-types", types=",".join(unknown), expected=",".join(sorted(BLOCKABLE)))
    return BrowserSettings(
        executable=config.chromium,
        sandbox=config.chromium_sandbox,
        locale=config.locale,
        time_zone=config.time_zone,
        viewport=(config.viewport_width, config.viewport_height),
        blocking=Blocking(frozenset(config.blocked_resource_types), config.blocked_url_patterns),
        relay_port=relay_port,
    )


def _wall_clock() -> int:
    return time.time_ns() // 1_000_000
