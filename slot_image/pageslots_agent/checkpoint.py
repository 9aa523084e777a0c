"""What an attempt leaves behind for the next one, as files beside the parts.

A checkpoint is a gzip file of JSON Lines: a header, rows of the frontier, and a last line that counts them.
It either holds the whole frontier, or what has changed since the checkpoint before; the header's `chain`
names the files to read first, the whole one at its head. So a checkpoint costs what has changed, however
large the frontier is, and a new whole one is written when the chain has grown as long as the frontier itself:
a constant number of rows written per row changed.

A checkpoint is written after the parts that it counts and names those that its predecessor did not know. What
it does not count has not happened: pages of uncounted parts are still queued in it.
"""

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pageslots.wire import Outcome

VERSION = 1
ROWS_AT_ONCE = 1_000
MAX_CHAIN = 64
_GZIP = 16 + zlib.MAX_WBITS


class CheckpointError(ValueError):
    """Bytes that are no checkpoint of ours, or not all of one."""


@dataclass(slots=True)
class Tally:
    """What a request has come to over all its attempts; part of every checkpoint."""

    next_row: int = 0  # of the start URLs
    sources_done: bool = False
    bad_rows: int = 0
    done: int = 0
    failed: int = 0  # blocked ones too
    blocked: int = 0
    records: int = 0
    disallowed: int = 0  # by robots.txt: never loaded
    failures_captured: int = 0
    starts: dict[str, int] = field(default_factory=dict)  # ended start pages by outcome

    def count_start(self, outcome: Outcome) -> None:
        """A start page ended."""
        self.starts[outcome] = self.starts.get(outcome, 0) + 1

    @property
    def starts_ok(self) -> int:
        """Start pages that ended Ok."""
        return self.starts.get(Outcome.OK, 0)


@dataclass(frozen=True, slots=True)
class Part:
    """A file of records that counts."""

    name: str
    records: int


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a checkpoint."""

    request_uid: str
    chain: tuple[str, ...]  # names of the checkpoints to read before this one
    parts: tuple[Part, ...]  # new ones since the last name in `chain`
    tally: Tally
    void: bool = False  # nothing came of it: the next attempt starts over


class Encoder:
    """Packs a checkpoint, rows batch by batch."""

    def __init__(self, header: Header) -> None:
        self._pack = zlib.compressobj(level=1, wbits=_GZIP)
        self._chunks: list[bytes] = []
        self._rows = 0
        first = {
            "version": VERSION,
            "requestUid": header.request_uid,
            "chain": header.chain,
            "parts": [[part.name, part.records] for part in header.parts],
            "tally": {name: getattr(header.tally, name) for name in Tally.__slots__},
            "void": header.void,
        }
        self._write([first])

    def add(self, rows: list[list[object]]) -> None:
        """Rows as the frontier gives them."""
        self._rows += len(rows)
        self._write(rows)

    def finish(self) -> list[bytes]:
        """The file, in pieces."""
        self._write([{"rows": self._rows}])
        self._chunks.append(self._pack.flush())
        return self._chunks

    def _write(self, lines: Iterable[object]) -> None:
        text = "".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines)
        packed = self._pack.compress(text.encode())
        if packed:
            self._chunks.append(packed)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint that was read and found whole."""

    header: Header
    _packed: bytes

    def rows(self) -> Iterator[list[object]]:
        """Its frontier rows."""
        lines = _lines(self._packed)
        next(lines)
        before = next(lines)
        for line in lines:
            yield json.loads(before)
            before = line


def read(packed: bytes) -> Checkpoint:
    """Check a file from its first to its last byte; raises CheckpointError."""
    lines = _lines(packed)
    try:
        header = _header(json.loads(next(lines)))
        last, rows = "", -1
        for line in lines:
            last, rows = line, rows + 1
        if json.loads(last) != {"rows": rows}:
            raise CheckpointError("the last line does not count the rows")
    except (ValueError, KeyError, TypeError, StopIteration, zlib.error) as error:
        raise CheckpointError(f"not a whole checkpoint: {error or type(error).__name__}") from None
    return Checkpoint(header, packed)


def _header(first: Mapping[str, Any]) -> Header:
    if first["version"] != VERSION:
        raise CheckpointError(f"version {first['version']!r}, expected {VERSION}")
    return Header(
        request_uid=str(first["requestUid"]),
        chain=tuple(first["chain"]),
        parts=tuple(Part(name, records) for name, records in first["parts"]),
        tally=Tally(**first["tally"]),
        void=bool(first["void"]),
    )


def _lines(packed: bytes) -> Iterator[str]:
    unpack = zlib.decompressobj(wbits=_GZIP)
    rest = b""
    for at in range(0, len(packed), 65_536):
        *lines, rest = (rest + unpack.decompress(packed[at : at + 65_536])).split(b"\n")
        for line in lines:
            yield line.decode()
    if rest or not unpack.eof:
        raise CheckpointError("cut off")
