"""The agent as a process: its start, its life over HTTP, its ends."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
from tests.fakes.vtime import until
from tests.local.agent_browser import an_echo_site, config_for
from tests.unit.agent_server.upstreams import listening

from pageslots.wire import (
    TOKEN_HEADER,
    AgentStatus,
    AttemptReport,
    AttemptSpec,
    AttemptState,
    DrainOrder,
    Outcome,
    Phase,
    ProxyServer,
    Refusal,
    RefusalCode,
    StopOrder,
    StopReason,
)
from pageslots_agent import processes

pytestmark = pytest.mark.browser


@dataclass
class Agent:
    """A running agent, and how to talk to it."""

    process: subprocess.Popen
    base: str
    session: aiohttp.ClientSession
    parent_fd: int
    log: object

    async def ask(self, method, path, message=None):
        body = message.to_json() if message is not None else None
        async with self.session.request(method, self.base + path, data=body) as answer:
            return answer.status, await answer.read()

    async def status(self, after=-1):
        status, body = await self.ask("GET", f"/v1/status?after={after}&wait=10")
        assert status == 200
        return AgentStatus.from_json(body)

    async def reaches(self, *phases):
        rev = -1
        async with asyncio.timeout(60):
            while True:
                status = await self.status(rev)
                if status.phase in phases:
                    return status
                rev = status.rev

    async def ends(self, attempt_id):
        rev = -1
        async with asyncio.timeout(60):
            while True:
                status = await self.status(rev)
                if (
                    status.attempt
                    and status.attempt.id == attempt_id
                    and status.attempt.state is AttemptState.ENDED
                ):
                    return status.attempt
                rev = status.rev

    async def exit_code(self, within=15):
        await until(lambda: self.process.poll() is not None, within_seconds=within)
        return self.process.returncode

    @property
    def children(self):
        return processes.descendants(self.process.pid)


def start(config, log):
    """The process, what tells its address, and what keeps it alive."""
    ready, told = os.pipe()
    parent, ours = os.pipe()
    command = [sys.executable, "-m", "pageslots_agent", "--config", str(config)]
    process = subprocess.Popen(
        [*command, "--ready-fd", str(told), "--parent-fd", str(parent)],
        pass_fds=[told, parent],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=log,
    )
    os.close(told)
    os.close(parent)
    return process, ready, ours


def command_of(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def open_for_writing(pid):
    """Files that a process may write to."""
    found = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            info = Path(f"/proc/{pid}/fdinfo/{link.name}").read_text()
            flags = int(info.split("flags:")[1].split()[0], 8)
            if flags & (os.O_WRONLY | os.O_RDWR):
                found.add(str(link.readlink()))
    return {target for target in found if target.startswith("/")}


def all_gone(pids):
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


@contextlib.asynccontextmanager
async def a_silent_site():
    """Its origin, and an event that is set when somebody has asked."""
    begun = asyncio.Event()

    async def never(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        begun.set()
        await reader.read()

    async with listening(never) as port:
        yield f"http://127.0.0.1:{port}/", begun


@contextlib.asynccontextmanager
async def an_agent(folder, **changes):
    config = await config_for(**{"scratch_dir": str(folder / "scratch"), "stale_ms": 60_000, **changes})
    (folder / "config.json").write_bytes(config.to_json())
    log = (folder / "log").open("w+")
    process, ready, ours = start(folder / "config.json", log)
    children = []
    try:
        with os.fdopen(ready) as pipe:
            address = json.loads(await asyncio.to_thread(pipe.readline))
        base = f"http://{address['host']}:{address['port']}"
        async with aiohttp.ClientSession(headers={TOKEN_HEADER: "secret"}) as session:
            agent = Agent(process, base, session, ours, log)
            yield agent
            children = agent.children
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
            processes.kill(children)
        with contextlib.suppress(OSError):
            os.close(ours)
        log.close()


def a_spec(*urls, name="r1-1", **changes):
    given = {"start_urls": urls, "capture": ("text",), **changes}
    return AttemptSpec(name, 1, "shop/crawl", "r1", "pod-1", 7, "SG", "shop", **given)


HEAVY_MODULES = (
    "pydantic",
    "aiohttp",
    "lxml",
    "rich",
    "click",
    "structlog",
    "sqlite3",
    "ada_url",
    "psutil",
    "ruamel",
)


def test_an_idle_agent_imports_no_more_than_it_needs():
    """pydantic costs 11 MiB, aiohttp 10: times the slots of a node."""
    code = (
        "import asyncio, sys, pageslots_agent.main\n"
        "from playwright.async_api import async_playwright\n"
        "async def main():\n"
        "    async with async_playwright(): pass\n"
        "asyncio.run(main())\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))\n"
        "print(*sorted(name for name in sys.modules if name.startswith('pageslots')))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    packages, ours = (set(line.split()) for line in answer.stdout.splitlines())
    assert packages.isdisjoint(HEAVY_MODULES)
    assert {"playwright", "h11"} <= packages
    assert {m for m in ours if not m.startswith("pageslots_agent")} == {"pageslots", "pageslots.wire"}
    assert "pageslots_agent.crawl" not in ours


def test_a_life_from_ready_to_drained(tmp_path):
    async def scenario():
        async with an_echo_site() as (site, origin), an_agent(tmp_path) as agent:
            ready = await agent.reaches(Phase.READY)
            assert ready.ready_ms
            assert ready.browser_version.startswith("1")
            for path in ("/livez", "/readyz", "/metrics"):
                assert (await agent.ask("GET", path))[0] == 200

            spec = a_spec(f"{origin}/a", f"{origin}/b", max_pages=2)
            status, body = await agent.ask("PUT", f"/v1/attempts/{spec.id}", spec)
            assert status == 200
            assert AttemptReport.from_json(body).state is AttemptState.RUNNING
            status, body = await agent.ask("POST", "/v1/drain", DrainOrder(7, "pod-1"))
            assert (status, Refusal.from_json(body).code) == (409, RefusalCode.BUSY)

            report = await agent.ends(spec.id)
            assert report.outcome is Outcome.OK
            assert report.pages.done == 2
            assert site.paths() == ["/a", "/b"]
            records = (await agent.ask("GET", f"/v1/attempts/{spec.id}/records?offset=0"))[1]
            assert [json.loads(line)["status"] for line in records.splitlines()] == [200, 200]
            after = await agent.status()
            assert (after.phase, after.warm_site, after.pages) == (Phase.READY, "shop", 2)
            assert after.bytes > 1000
            assert (await agent.ask("GET", "/v1/screenshot"))[1].startswith(b"\x89PNG")
            assert (await agent.ask("DELETE", f"/v1/attempts/{spec.id}"))[0] == 204

            status, body = await agent.ask("POST", "/v1/drain", DrainOrder(7, "pod-1"))
            assert AgentStatus.from_json(body).phase is Phase.DRAINED
            await until(lambda: agent.children == [])  # the browser goes at once
            assert (await agent.ask("GET", "/livez"))[0] == 200
            assert (await agent.ask("PUT", "/v1/attempts/r2-1", a_spec(origin, name="r2-1")))[0] == 410
            agent.process.send_signal(signal.SIGTERM)
            assert await agent.exit_code() == 0

    asyncio.run(scenario())


def test_everything_that_is_written_lies_below_the_scratch_folder(tmp_path):
    async def scenario():
        async with an_echo_site() as (_, origin), an_agent(tmp_path) as agent:
            await agent.reaches(Phase.READY)
            await agent.ask("PUT", "/v1/attempts/r1-1", a_spec(origin))
            await agent.ends("r1-1")
            written = set()
            for pid in [agent.process.pid, *agent.children]:
                written |= open_for_writing(pid)
            strangers = {t for t in written if not t.startswith((str(tmp_path), "/dev/", "/memfd:"))}
            assert strangers == set()

    asyncio.run(scenario())


def test_sigterm_in_the_middle_of_a_page_ends_in_time_with_a_report(tmp_path):
    """Case W15: the poll under way learns how the attempt ended, and nothing is left behind."""

    async def scenario():
        async with a_silent_site() as (url, begun), an_agent(tmp_path, grace_ms=6_000) as agent:
            await agent.reaches(Phase.READY)
            await agent.ask("PUT", "/v1/attempts/r1-1", a_spec(url))
            await begun.wait()
            family = agent.children
            assert family
            ending = asyncio.create_task(agent.ends("r1-1"))
            began = time.monotonic()
            agent.process.send_signal(signal.SIGTERM)
            report = await ending
            assert (report.outcome, report.stop_reason) == (Outcome.STOPPED, StopReason.SHUTDOWN)
            assert await agent.exit_code() == 0
            assert time.monotonic() - began < 6
            await until(lambda: all_gone(family))

    asyncio.run(scenario())


def test_a_second_sigterm_ends_it_at_once(tmp_path):
    async def scenario():
        async with a_silent_site() as (url, begun), an_agent(tmp_path, grace_ms=60_000) as agent:
            await agent.reaches(Phase.READY)
            await agent.ask("PUT", "/v1/attempts/r1-1", a_spec(url))
            await begun.wait()
            family = agent.children
            agent.process.send_signal(signal.SIGTERM)
            await agent.reaches(Phase.RUNNING)
            agent.process.send_signal(signal.SIGTERM)
            assert await agent.exit_code(within=3) == 1
            await until(lambda: all_gone(family))

    asyncio.run(scenario())


def test_the_end_of_the_parent_is_the_end_of_the_agent(tmp_path):
    async def scenario():
        async with an_agent(tmp_path) as agent:
            await agent.reaches(Phase.READY)
            family = agent.children
            os.close(agent.parent_fd)
            assert await agent.exit_code() == 0
            await until(lambda: all_gone(family))

    asyncio.run(scenario())


def test_a_stopped_attempt_leaves_the_slot_warm(tmp_path):
    async def scenario():
        async with an_echo_site() as (_, origin), an_agent(tmp_path) as agent:
            await agent.reaches(Phase.READY)
            spec = a_spec(*(f"{origin}/{n}" for n in range(500)), page_delay_ms=50)
            await agent.ask("PUT", "/v1/attempts/r1-1", spec)
            status, body = await agent.ask(
                "POST", "/v1/attempts/r1-1/stop", StopOrder(StopReason.STOPPED, 7, "pod-1")
            )
            assert status == 200
            assert AttemptReport.from_json(body).state is AttemptState.RUNNING
            report = await agent.ends("r1-1")
            assert report.outcome is Outcome.STOPPED
            assert (await agent.status()).warm_site == "shop"

    asyncio.run(scenario())


def test_a_browser_that_dies_while_idle_is_opened_again(tmp_path):
    """Case W2."""

    async def scenario():
        async with an_echo_site() as (_, origin), an_agent(tmp_path) as agent:
            await agent.reaches(Phase.READY)
            before = await agent.status()
            for pid in agent.children:
                if b"--remote-debugging-pipe" in command_of(pid):
                    os.kill(pid, signal.SIGKILL)
            await agent.status(before.rev)
            await agent.reaches(Phase.READY)
            await agent.ask("PUT", "/v1/attempts/r1-1", a_spec(origin))
            assert (await agent.ends("r1-1")).outcome is Outcome.OK

    asyncio.run(scenario())


def test_without_a_browser_it_gives_up_and_says_what_is_missing(tmp_path):
    """Case U2."""

    async def scenario():
        async with an_agent(tmp_path, chromium="/no/such/browser", give_up_after_failures=2) as agent:
            status = await agent.reaches(Phase.GAVE_UP)
            assert status.consecutive_failures == 2
            assert status.last_failure.outcome is Outcome.BROWSER_CRASH
            assert "there is no browser at /no/such/browser" in status.last_failure.message

    asyncio.run(scenario())


def test_a_drain_in_the_middle_of_a_preparation_leaves_no_browser(tmp_path):
    async def scenario():
        async with an_agent(tmp_path) as agent:
            await until(lambda: agent.children != [], step_seconds=0.001)
            status, body = await agent.ask("POST", "/v1/drain", DrainOrder(7, "pod-1"))
            assert (status, AgentStatus.from_json(body).phase) == (200, Phase.DRAINED)
            await until(lambda: agent.children == [])
            assert (await agent.ask("GET", "/livez"))[0] == 200
            agent.process.send_signal(signal.SIGTERM)
            assert await agent.exit_code() == 0
            agent.log.seek(0)
            assert "Traceback" not in agent.log.read()

    asyncio.run(scenario())


def test_nobody_asking_for_it_is_a_reason_to_end(tmp_path):
    async def scenario():
        async with an_agent(tmp_path, stale_ms=700) as agent:
            assert await agent.exit_code() == 0
            agent.log.seek(0)
            assert "no operator has asked" in agent.log.read()

    asyncio.run(scenario())


def test_a_folder_that_is_not_writable_or_a_proxy_that_is_none_ends_it_with_a_reason(tmp_path):
    """Cases U2, W13."""

    async def configurations():
        file = tmp_path / "file"
        file.write_text("")
        proxy = ProxyServer("px", "ftp://proxy.example:1")
        return await config_for(scratch_dir=str(file / "below")), await config_for(proxies=(proxy,))

    for config, says in zip(
        asyncio.run(configurations()), ["Not a directory", "expected http://"], strict=True
    ):
        (tmp_path / "config.json").write_bytes(config.to_json())
        command = [sys.executable, "-m", "pageslots_agent", "--config", str(tmp_path / "config.json")]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        assert answer.returncode == 2
        assert "agent.unusable" in answer.stderr
        assert says in answer.stderr


@pytest.mark.parametrize(
    ("text", "says"), [("{", "not JSON"), ('{"pod_name": "p"}', "AgentConfig"), (None, "No such file")]
)
def test_an_unusable_configuration_is_one_line_and_status_2(tmp_path, text, says):
    file = tmp_path / "config.json"
    if text is not None:
        file.write_text(text)
    answer = subprocess.run(
        [sys.executable, "-m", "pageslots_agent", "--config", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 2
    assert says in answer.stderr
    assert str(file) in answer.stderr
    assert len(answer.stderr.splitlines()) == 1
