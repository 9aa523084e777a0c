"""What an attempt writes: records in parts, checkpoints that count them, and at last `_done.json`.

    part-<attempt>-<seq>.jsonl      records; closed every 100 of them, or after 10 s
    _frontier-<attempt>-<seq>       a checkpoint (see `checkpoint`), always written after the parts it counts
    captures/<attempt>-<page>-…     screenshots, HTML, long texts; named in the records
    _failure-<attempt>.json         the page that made an attempt end early, as a record
    _done.json                      the parts that count, with counts and outcome: the request is finished

`<attempt>` is a digest of the request's UID and the attempt's number, so that files tell whose they are. Only
parts named by `_done.json` count; all others are deleted by the next attempt or before `_done.json` is
written. A page therefore counts once, whatever moment an attempt is killed at: before the checkpoint its part
does not count and the page is still queued, after it both are settled.

A folder that holds another request's output is refused (docs/decisions/output-folder.md).
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import islice
from typing import TypeVar

from pageslots.wire import AttemptSpec, Outcome
from pageslots_agent.aside import Aside
from pageslots_agent.checkpoint import (
    MAX_CHAIN,
    ROWS_AT_ONCE,
    Checkpoint,
    CheckpointError,
    Encoder,
    Header,
    Part,
    Tally,
    read,
)
from pageslots_agent.clock import Clock
from pageslots_agent.frontier import Frontier
from pageslots_agent.storage import Storage, StorageError

PART_RECORDS = 100
PART_MS = 10_000
MAX_WAITING_RECORDS = 5 * PART_RECORDS
MAX_WAITING_BYTES = 8 * 1024 * 1024
"""Records kept in memory while the storage is slow or refuses; beyond, the crawl waits."""
CALL_MS = 30_000
"""One storage call; a hung one is abandoned and made again."""
FIRST_RETRY_MS, LAST_RETRY_MS = 200, 5_000
PREVIEW_BYTES = 128 * 1024

DONE = "_done.json"
_OURS = re.compile(r"(?:part|_frontier|_failure)-([0-9a-f]{8})\.(\d+)(?:-(\d+))?(?:\.jsonl?)?\Z")

T = TypeVar("T")


class OutputError(Exception):
    """The output can't be written; the text says what was refused."""


class ForeignOutputError(Exception):
    """The folder holds what another request wrote."""


@dataclass(frozen=True, slots=True)
class Finished:
    """What `_done.json` says."""

    outcome: Outcome
    tally: Tally
    discovered: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Records and the checkpoint that counts them, ready to be written."""

    part: Part | None
    lines: tuple[bytes, ...]
    checkpoint: str
    packed: list[bytes]
    obsolete: tuple[str, ...]


class Preview:
    """Records of an attempt without an output: in memory, as far as they fit a ConfigMap."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._bytes = 0
        self.truncated = False

    def add(self, line: bytes) -> None:
        """Keep a record, or remember that one was left out; the kept ones are the first ones."""
        if self.truncated or self._bytes + len(line) > PREVIEW_BYTES:
            self.truncated = True
            return
        self._lines.append(line)
        self._bytes += len(line)

    def since(self, offset: int) -> bytes:
        """JSON Lines from record `offset` on."""
        return b"".join(self._lines[max(0, offset) :])


class Folder:
    """The output folder of a request, as one attempt uses it."""

    def __init__(self, storage: Storage, spec: AttemptSpec, clock: Clock) -> None:
        self._storage = storage
        self._spec = spec
        self._clock = clock
        self._aside = Aside("output")
        self._owner = blake2b(spec.request_uid.encode(), digest_size=4).hexdigest()
        self._attempt = f"{self._owner}.{spec.number}"
        self._seq = 0
        self._lines: list[bytes] = []
        self._bytes = 0
        self._parts: list[Part] = []  # all that count
        self._told = 0  # how many of them the last cut checkpoint knows
        self._chain: list[str] = []
        self._chain_rows = 0
        self._whole_rows = 0
        self._stale: list[str] = []  # files to delete when a whole checkpoint, or the end, is written
        self._hurry = asyncio.Event()
        self.give_up_ms = 0
        """When to stop trying (on the clock); the attempt keeps it up to date."""
        self.trouble = ""
        """What the storage said last, while it refuses."""

    @property
    def waiting(self) -> int:
        """Records not handed to a batch yet."""
        return len(self._lines)

    @property
    def is_crowded(self) -> bool:
        """The crawl should wait for the storage."""
        return len(self._lines) >= MAX_WAITING_RECORDS or self._bytes >= MAX_WAITING_BYTES

    def hurry(self, give_up_ms: int) -> None:
        """Try at once, and not beyond `give_up_ms`: the attempt ends."""
        self.give_up_ms = give_up_ms
        self._hurry.set()

    async def open(self) -> Finished | list[Checkpoint]:
        """What earlier attempts left: the end, or the checkpoints to restore in order (none: start).

        Raises OutputError, ForeignOutputError and StorageError.
        """
        await self._persist("open", self._prepare)
        done = await self._persist("read", partial(self._storage.get, DONE))
        if done is not None:
            return self._finished(done)
        names = await self._persist("list", self._storage.list)
        mine, foreign = self._sorted(names)
        if foreign:
            raise ForeignOutputError(self._foreign(foreign[0]))
        self._stale = [name for name in mine if name.startswith("_frontier-")]
        checkpoints: list[Checkpoint] = []
        for name in reversed(self._stale):
            checkpoints = await self._load(name)
            if checkpoints:
                break
        if checkpoints and checkpoints[-1].header.void:
            checkpoints = []
        self._parts = [part for checkpoint in checkpoints for part in checkpoint.header.parts]
        counted = {part.name for part in self._parts}
        await self._delete([name for name in mine if name.startswith("part-") and name not in counted])
        return checkpoints

    def add(self, line: bytes) -> None:
        """A record; it counts from the next checkpoint on."""
        self._lines.append(line)
        self._bytes += len(line)

    async def keep(self, name: str, content: bytes) -> None:
        """Write a file of its own; raises OutputError."""
        await self._persist("write", partial(self._storage.put_atomic, name, [content]))

    def capture_name(self, page_id: int, suffix: str) -> str:
        """Where a capture of a page goes; no other attempt uses the name."""
        return f"captures/{self._attempt}-{page_id:06d}-{suffix}"

    async def keep_failure(self, line: bytes) -> None:
        """Keep the record of the page that ended this attempt; raises OutputError."""
        await self.keep(f"_failure-{self._attempt}.json", line)

    async def cut(self, frontier: Frontier, tally: Tally, *, void: bool = False) -> Batch:
        """Take the waiting records and the state that counts them. The frontier must not change meanwhile."""
        self._seq += 1
        part = self._cut_part()
        lines, self._lines, self._bytes = tuple(self._lines), [], 0
        whole = self._wants_whole(frontier)
        obsolete: tuple[str, ...] = ()
        if whole:
            obsolete, self._stale = (*self._stale, *self._chain), []
            self._chain, self._chain_rows, self._told = [], 0, 0
        header = Header(
            request_uid=self._spec.request_uid,
            chain=tuple(self._chain),
            parts=tuple(self._parts[self._told :]),
            tally=tally,
            void=void,
        )
        encoder = Encoder(header)
        rows = 0
        source = frontier.rows() if whole else frontier.changes()
        while some := list(islice(source, ROWS_AT_ONCE)):
            encoder.add(some)
            rows += len(some)
            if len(some) == ROWS_AT_ONCE:
                await asyncio.sleep(0)
        frontier.mark()
        name = f"_frontier-{self._attempt}-{self._seq:06d}"
        self._chain.append(name)
        self._told = len(self._parts)
        if whole:
            self._whole_rows = rows
        else:
            self._chain_rows += rows
        return Batch(part, lines, name, encoder.finish(), obsolete)

    async def write(self, batch: Batch) -> None:
        """Write a batch; raises OutputError. In this order: the part, then the checkpoint that counts it."""
        await self._write_part(batch.part, batch.lines)
        await self._persist("write", partial(self._storage.put_atomic, batch.checkpoint, batch.packed))
        await self._delete(batch.obsolete)

    async def finish(self, outcome: Outcome, tally: Tally, discovered: int) -> None:
        """Write what waits and `_done.json`: the request is finished; raises OutputError."""
        self._seq += 1
        part = self._cut_part()
        lines, self._lines, self._bytes = tuple(self._lines), [], 0
        await self._write_part(part, lines)
        done = {
            "version": 1,
            "request": self._spec.request,
            "requestUid": self._spec.request_uid,
            "attempt": self._spec.id,
            "outcome": outcome,
            "records": tally.records,
            "pages": {
                "done": tally.done,
                "failed": tally.failed,
                "blocked": tally.blocked,
                "discovered": discovered,
            },
            "starts": tally.starts,
            "parts": [{"name": part.name, "records": part.records} for part in self._parts],
        }
        text = json.dumps(done, indent=1, ensure_ascii=False) + "\n"
        await self._persist("write", partial(self._storage.put_atomic, DONE, [text.encode()]))
        await self._delete((*self._stale, *self._chain))

    def close(self) -> None:
        """Let go of the thread."""
        self._aside.close()

    def _cut_part(self) -> Part | None:
        if not self._lines:
            return None
        part = Part(f"part-{self._attempt}-{self._seq:06d}.jsonl", len(self._lines))
        self._parts.append(part)
        return part

    async def _write_part(self, part: Part | None, lines: tuple[bytes, ...]) -> None:
        if part is not None:
            await self._persist("write", partial(self._storage.put_atomic, part.name, lines))

    def _wants_whole(self, frontier: Frontier) -> bool:
        if not self._chain or len(self._chain) >= MAX_CHAIN:
            return True
        return self._chain_rows + frontier.changed > max(self._whole_rows, ROWS_AT_ONCE)

    def _prepare(self) -> None:
        try:
            self._storage.prepare()
        except (PermissionError, NotADirectoryError) as error:
            where = f"output {self._spec.output_uri}"
            raise StorageError(f"{where}: {error.strerror or error}; make it a writable folder") from None

    async def _load(self, name: str) -> list[Checkpoint]:
        """A checkpoint behind those of its chain; empty when one of them is not whole."""
        try:
            last = await self._read(name)
            return [*[await self._read(before) for before in last.header.chain], last]
        except CheckpointError:
            return []

    async def _read(self, name: str) -> Checkpoint:
        packed = await self._persist("read", partial(self._storage.get, name))
        return await self._aside.call(partial(read, packed or b""), timeout_ms=CALL_MS)

    def _sorted(self, names: list[str]) -> tuple[list[str], list[str]]:
        """Files of this request in the order they were written, and files of others."""
        mine: list[tuple[int, int, str]] = []
        foreign = []
        for name in names:
            match = _OURS.match(name)
            if match is None:
                continue
            if match[1] != self._owner:
                foreign.append(name)
                continue
            number, seq = int(match[2]), int(match[3] or 0)
            mine.append((number, seq, name))
            if number == self._spec.number:
                self._seq = max(self._seq, seq)
        return [name for _, _, name in sorted(mine)], foreign

    def _finished(self, done: bytes) -> Finished:
        try:
            said = json.loads(done)
            uid, outcome, pages = said["requestUid"], Outcome(said["outcome"]), said["pages"]
            tally = Tally(
                sources_done=True,
                done=pages["done"],
                failed=pages["failed"],
                blocked=pages["blocked"],
                records=said["records"],
                starts=dict(said["starts"]),
            )
            discovered = int(pages["discovered"])
        except (ValueError, KeyError, TypeError):
            raise ForeignOutputError(self._foreign(DONE)) from None
        if uid != self._spec.request_uid:
            raise ForeignOutputError(self._foreign(DONE))
        return Finished(outcome, tally, discovered)

    def _foreign(self, name: str) -> str:
        return (
            f"output {self._spec.output_uri}: {name} was written for another request;"
            " use another path, or remove that folder first"
        )

    async def _delete(self, names: Iterable[str]) -> None:
        for name in names:
            await self._persist("delete", partial(self._storage.delete, name))

    async def _persist(self, verb: str, call: Callable[[], T]) -> T:
        """Make a storage call until it succeeds, with growing pauses, or until `give_up_ms`."""
        pause = FIRST_RETRY_MS
        while True:
            left = max(self.give_up_ms - self._clock.elapsed_ms(), 1_000)
            try:
                result = await self._aside.call(call, timeout_ms=min(CALL_MS, left))
            except TimeoutError:
                self.trouble = (
                    f"output {self._spec.output_uri}: {verb} took longer than {min(CALL_MS, left)} ms"
                )
            except OSError as error:
                self.trouble = f"output {self._spec.output_uri}: {verb} failed: {error.strerror or error}"
            else:
                self.trouble = ""
                return result
            now = self._clock.elapsed_ms()
            if now >= self.give_up_ms:
                raise OutputError(self.trouble)
            was_hurried = self._hurry.is_set()
            if await self._clock.wait(self._hurry, min(pause, self.give_up_ms - now)) and was_hurried:
                await self._clock.wait(asyncio.Event(), min(pause, max(0, self.give_up_ms - now)))
            pause = min(2 * pause, LAST_RETRY_MS)
