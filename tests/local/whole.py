"""Whole runs on this machine with real browsers: manifests in, results and a recording of all processes out."""

import asyncio
import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from pageslots.api import load_manifests
from pageslots.control.ports import Level
from pageslots.local.session import RunControl, RunOptions, RunResult, run_local

Document = dict[str, Any]


def pool(**spec: Any) -> Document:
    """A pool `default` with direct countries that may fetch from this machine."""
    countries = spec.pop("countries", ("SG",))
    return {
        "apiVersion": "pageslots.dev/v1alpha1",
        "kind": "PageSlotPool",
        "metadata": {"name": "default"},
        "spec": {
            "countries": [{"code": code, "direct": True} for code in countries],
            "network": {"allowedCidrs": ["127.0.0.0/8"]},
            **spec,
        },
    }


def request(name: str, **spec: Any) -> Document:
    """A crawl request, by default of SG."""
    return {
        "apiVersion": "pageslots.dev/v1alpha1",
        "kind": "CrawlRequest",
        "metadata": {"name": name},
        "spec": {"country": "SG", **spec},
    }


def write(folder: Path, *documents: Document) -> Path:
    """One manifest file (JSON is YAML)."""
    path = folder / "manifests.yaml"
    path.write_text("\n---\n".join(json.dumps(document) for document in documents))
    return path


@dataclass
class Watching:
    """A view that remembers, and may act: `act` is called with the control once, when the run has begun."""

    act: Callable[[RunControl], Any] | None = None
    notices: list[str] = field(default_factory=list)
    events: list[tuple[str, Mapping[str, object]]] = field(default_factory=list)
    control: RunControl | None = None

    def notice(self, text: str) -> None:
        self.notices.append(text)

    def event(self, level: Level, name: str, fields: Mapping[str, object]) -> None:
        self.events.append((name, dict(fields)))

    def attach(self, control: RunControl) -> None:
        self.control = control

    async def follow(self) -> None:
        assert self.control is not None
        if self.act is not None:
            await self.act(self.control)
        await asyncio.Event().wait()


def run(output: Path, *paths: Path, view: Watching | None = None, **options: Any) -> RunResult:
    """`pageslots run PATH… --output OUTPUT` in this process."""
    chosen = RunOptions(output=output, output_given=True, recording=output.parent / "events.jsonl", **options)
    return asyncio.run(run_local(load_manifests(paths), chosen, view or Watching()))


def command(*arguments: str | Path) -> list[str]:
    """The command line, as a user's shell starts it."""
    return [sys.executable, "-m", "pageslots.cli", *(str(argument) for argument in arguments)]


def records(output: Path, name: str) -> list[Document]:
    """The records of a request that count: those of the parts that `_done.json` names; children's too."""
    folder = output / name
    found: list[Document] = []
    for done in sorted(folder.rglob("_done.json")):
        for part in json.loads(done.read_text())["parts"]:
            lines = (done.parent / part["name"]).read_text().splitlines()
            found += [json.loads(line) for line in lines]
    return found


def most_at_once(recording: Path) -> int:
    """The most slots that existed at the same time, replayed from the recording of starts and ends."""
    alive: set[str] = set()
    most = 0
    for line in recording.read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "start":
            alive.add(event["uid"])
        else:
            alive.discard(event["uid"])
        most = max(most, len(alive))
    assert not alive, f"never ended: {alive}"
    return most


def strays(pids: set[int] | None = None) -> list[str]:
    """Processes of slots that are left on this machine: agents, drivers and browsers below `scratch`."""
    left = []
    for process in psutil.process_iter(["pid", "cmdline", "status"]):
        words = " ".join(process.info["cmdline"] or ())
        is_ours = "pageslots_agent" in words or "pageslots-" in words
        if (
            is_ours
            and process.info["status"] != psutil.STATUS_ZOMBIE
            and (pids is None or process.pid in pids)
        ):
            left.append(f"{process.pid} {words[:120]}")
    return left


def descendants(pid: int) -> set[int]:
    """Everything that a process has started and that still lives."""
    try:
        return {child.pid for child in psutil.Process(pid).children(recursive=True)}
    except psutil.NoSuchProcess:
        return set()


def wait_until(condition: Callable[[], bool], *, seconds: float, what: str) -> None:
    """Look until it is so; AssertionError after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.05)
