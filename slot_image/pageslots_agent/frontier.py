"""Which page comes next: every page once, politely to each host, fairly between hosts.

Pages live in a SQLite file of their own, whose cache is bounded: a million of them cost disk, not memory. The
file has no name (it is unlinked once open), so nothing is left behind however the agent ends; what must
outlive it goes into checkpoints (`changes`, `rows`, `restore`).

- *Once*: a page is told apart by its identity (see `urls`), and admitted the first time only.
- *Politely*: two leases of one host are at least its delay apart.
- *Fairly*: of the hosts that are eligible the one served longest ago is next, and a host met for the first
  time queues up behind the others; so a host waits for at most one page of each other host.
- *Finite*: at most `max_pages` pages end (skipped ones don't count), at most `max_links` links are admitted.

Nothing here waits or blocks on anything but the local disk; callers admit in batches of ADMIT_BATCH and yield
to the event loop in between.
"""

import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from pageslots_agent.scope import Anchor
from pageslots_agent.urls import Address

ADMIT_BATCH = 500
"""Admitting this many takes about 5 ms."""

CACHE_KIB = 16_384
HOSTS_REMEMBERED = 10_000
Row = list[object]


class State(IntEnum):
    """Where a page is in its life; LEASED is QUEUED for a checkpoint."""

    QUEUED = 0
    LEASED = 1
    ENDED = 2
    SKIPPED = 3  # never loaded: robots.txt says no


@dataclass(frozen=True, slots=True)
class Candidate:
    """A page that may be new. `root`: id of the start page it descends from; None for a start page itself."""

    address: Address
    depth: int = 0
    root: int | None = None
    input: str = ""  # JSON text of the other columns of its row


@dataclass(frozen=True, slots=True)
class Page:
    """A leased page: load it, then `end`, `skip` or `put_back` it."""

    id: int
    url: str
    host: str
    depth: int
    root: int  # its own id for a start page
    is_start: bool
    tries: int
    input: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing is eligible before this moment."""

    until_ms: int


class Frontier:
    """The pages of one request. Times are milliseconds of one clock of the caller's, given with each call."""

    def __init__(self, *, max_pages: int | None, max_links: int, page_delay_ms: int = 0) -> None:
        self._db = _database()
        self._max_pages = max_pages
        self._max_links = max_links
        self._page_delay_ms = page_delay_ms
        self._host_ids: dict[str, int] = {}
        self._next_id = 1
        self._next_place = 1
        self._turn = 0
        self._links = 0
        self._ended = 0
        self._queued = 0
        self._queued_starts = 0
        self._changed: set[int] = set()
        self._changed_from = 1  # every id from here on is new since the last checkpoint
        self._anchored: set[int] = set()

    @property
    def discovered(self) -> int:
        """Pages admitted, ever."""
        return self._next_id - 1

    @property
    def ended(self) -> int:
        """Pages that ended."""
        return self._ended

    @property
    def queued(self) -> int:
        """Pages that wait, leased ones not among them."""
        return self._queued

    @property
    def queued_starts(self) -> int:
        """Start pages that wait."""
        return self._queued_starts

    @property
    def is_full(self) -> bool:
        """No further link will be admitted."""
        return self._links >= self._max_links

    @property
    def is_spent(self) -> bool:
        """`max_pages` have ended."""
        return self._max_pages is not None and self._ended >= self._max_pages

    def admit(self, candidates: Iterable[Candidate]) -> int:
        """Queue those that are new; tells how many were. Admitting twice is admitting once."""
        arrivals: dict[str, int] = {}
        before = self._next_id
        for candidate in candidates:
            if candidate.root is not None and self.is_full:
                continue
            self._insert(candidate, arrivals)
        for host, count in arrivals.items():
            self._arrive(host, count)
        return self._next_id - before

    def lease(self, now_ms: int) -> Page | Wait | None:
        """The next page; when to ask again; or None when nothing waits (leased pages may still come back)."""
        if self.is_spent or self._queued == 0:
            return None
        while True:
            # Few hosts are passed over: only those served within their delay, and they have the highest
            # turns.
            host = self._db.execute(
                "SELECT id, name, delay_ms FROM host"
                " WHERE queued > 0 AND eligible_ms <= ? ORDER BY turn LIMIT 1",
                (now_ms,),
            ).fetchone()
            if host is None:
                [until] = self._db.execute("SELECT min(eligible_ms) FROM host WHERE queued > 0").fetchone()
                return Wait(until)
            host_id, name, delay_ms = host
            page = self._db.execute(
                "SELECT id, url, depth, root, start, tries, input, not_before_ms FROM page"
                " WHERE host = ? AND state = 0 ORDER BY place LIMIT 1",
                (host_id,),
            ).fetchone()
            if page[7] <= now_ms:
                break
            self._db.execute("UPDATE host SET eligible_ms = ? WHERE id = ?", (page[7], host_id))
        self._turn += 1
        delay_ms = max(delay_ms, self._page_delay_ms)
        self._db.execute(
            "UPDATE host SET queued = queued - 1, turn = ?, eligible_ms = ? WHERE id = ?",
            (self._turn, now_ms + delay_ms, host_id),
        )
        self._db.execute("UPDATE page SET state = 1 WHERE id = ?", (page[0],))
        self._queued -= 1
        self._queued_starts -= page[4]
        return Page(
            id=page[0],
            url=page[1],
            host=name,
            depth=page[2],
            root=page[3],
            is_start=bool(page[4]),
            tries=page[5],
            input=page[6],
        )

    def end(self, page: Page) -> None:
        """The page is done with, well or not: it never comes back."""
        self._ended += 1
        self._leave(page, State.ENDED)

    def skip(self, page: Page) -> None:
        """The page may not be loaded: it never comes back and counts for nothing."""
        self._leave(page, State.SKIPPED)

    def put_back(self, page: Page, *, tried: bool, not_before_ms: int = 0) -> None:
        """The page waits again: a tried one at the end of its queue, an untouched one where it was."""
        place = None
        if tried:
            place, self._next_place = self._next_place, self._next_place + 1
        self._db.execute(
            "UPDATE page SET state = 0, tries = tries + ?, place = coalesce(?, place), not_before_ms = ?"
            " WHERE id = ?",
            (int(tried), place, not_before_ms, page.id),
        )
        self._db.execute("UPDATE host SET queued = queued + 1 WHERE name = ?", (page.host,))
        self._queued += 1
        self._queued_starts += page.is_start
        self._touch(page.id)

    def delay_host(self, host: str, delay_ms: int) -> None:
        """Leases of `host` are at least so far apart from now on (Crawl-delay)."""
        self._db.execute(
            "UPDATE host SET eligible_ms = eligible_ms + max(?, ?) - max(delay_ms, ?), delay_ms = ?"
            " WHERE name = ?",
            (delay_ms, self._page_delay_ms, self._page_delay_ms, delay_ms, host),
        )

    def served(self, host: str, now_ms: int) -> None:
        """`host` answered a request that was no page (its robots.txt): the delay counts from here."""
        self._db.execute(
            "UPDATE host SET eligible_ms = ? + max(delay_ms, ?) WHERE name = ?",
            (now_ms, self._page_delay_ms, host),
        )

    def anchor(self, root: int, anchors: Sequence[Anchor]) -> None:
        """Keep what links below the start page `root` are judged by."""
        rows = [(root, *anchor.to_list()) for anchor in anchors]
        self._db.execute("DELETE FROM anchor WHERE root = ?", (root,))
        self._db.executemany("INSERT INTO anchor VALUES (?, ?, ?, ?)", rows)
        self._anchored.add(root)

    def anchors(self, root: int) -> list[Anchor]:
        """What `anchor` kept."""
        rows = self._db.execute(
            "SELECT host, prefix, site FROM anchor WHERE root = ? ORDER BY rowid", (root,)
        )
        return [Anchor(*row) for row in rows]

    def changes(self) -> Iterator[Row]:
        """Rows for `restore` that differ from the last checkpoint; call `mark` when they are all taken."""
        for page_id in sorted(self._changed):
            yield from self._page_rows("id = ?", page_id)
        yield from self._page_rows("id >= ?", self._changed_from)
        for root in sorted(self._anchored):
            yield from self._anchor_rows("root = ?", root)

    def rows(self) -> Iterator[Row]:
        """Everything, as rows for `restore`."""
        yield from self._page_rows("id >= ?", 0)
        yield from self._anchor_rows("root >= ?", 0)

    @property
    def changed(self) -> int:
        """How many pages `changes` would tell of, about."""
        return len(self._changed) + self._next_id - self._changed_from

    def mark(self) -> None:
        """A checkpoint was taken: `changes` starts anew."""
        self._changed.clear()
        self._anchored.clear()
        self._changed_from = self._next_id

    def restore(self, rows: Iterable[Row]) -> None:
        """Take over rows of `rows` or `changes`, older ones first; `settle` afterwards."""
        for kind, *values in rows:
            if kind == "p":
                self._restore_page(values)
            elif kind == "a":
                root, anchors = values
                assert isinstance(root, int)
                assert isinstance(anchors, list)
                self.anchor(root, [Anchor(*anchor) for anchor in anchors])
            else:
                raise ValueError(f"a frontier row of the unknown kind {kind!r}")

    def settle(self) -> None:
        """Count what was restored. Hosts line up by their first page: each attempt has its own rotation."""
        one = self._db.execute
        self._next_id, self._next_place = one(
            "SELECT coalesce(max(id), 0) + 1, coalesce(max(place), 0) + 1 FROM page"
        ).fetchone()
        self._queued, self._queued_starts, self._ended, self._links = one(
            "SELECT coalesce(sum(state = 0), 0), coalesce(sum(state = 0 AND start), 0),"
            " coalesce(sum(state = 2), 0), coalesce(sum(NOT start), 0) FROM page"
        ).fetchone()
        one(
            "UPDATE host SET queued = c.pages, turn = c.turn FROM"
            " (SELECT host, count(*) AS pages, row_number() OVER (ORDER BY min(place)) AS turn"
            "  FROM page WHERE state = 0 GROUP BY host) AS c WHERE host.id = c.host"
        )
        [self._turn] = one("SELECT coalesce(max(turn), 0) FROM host").fetchone()
        self.mark()

    def close(self) -> None:
        """Free the file."""
        self._db.close()

    def _insert(self, candidate: Candidate, arrivals: dict[str, int]) -> None:
        is_start = candidate.root is None
        address = candidate.address
        added = self._db.execute(
            "INSERT OR IGNORE INTO page VALUES (?, ?, ?, ?, ?, ?, 0, 0, ?, ?, ?, 0)",
            (
                self._next_id,
                address.identity,
                address.url,
                self._host(address.host),
                candidate.depth,
                self._next_id if is_start else candidate.root,
                self._next_place,
                is_start,
                candidate.input,
            ),
        )
        if added.rowcount == 0:
            return
        self._next_id += 1
        self._next_place += 1
        self._queued += 1
        self._queued_starts += is_start
        self._links += not is_start
        arrivals[address.host] = arrivals.get(address.host, 0) + 1

    def _host(self, name: str) -> int:
        known = self._host_ids.get(name)
        if known is not None:
            return known
        row = self._db.execute("SELECT id FROM host WHERE name = ?", (name,)).fetchone()
        if row is None:
            row = self._db.execute(
                "INSERT INTO host VALUES (NULL, ?, 0, 0, 0, 0) RETURNING id", (name,)
            ).fetchone()
        if len(self._host_ids) >= HOSTS_REMEMBERED:
            self._host_ids.clear()
        self._host_ids[name] = int(row[0])
        return int(row[0])

    def _arrive(self, host: str, count: int) -> None:
        self._turn += 1
        self._db.execute(
            "UPDATE host SET turn = CASE turn WHEN 0 THEN ? ELSE turn END, queued = queued + ?"
            " WHERE name = ?",
            (self._turn, count, host),
        )

    def _leave(self, page: Page, state: State) -> None:
        # Its address is needed no more: the identity alone keeps it from coming back.
        self._db.execute("UPDATE page SET state = ?, url = '', input = '' WHERE id = ?", (state, page.id))
        self._touch(page.id)

    def _touch(self, page_id: int) -> None:
        if page_id < self._changed_from:
            self._changed.add(page_id)

    def _page_rows(self, where: str, value: int) -> Iterator[Row]:
        cursor = self._db.execute(
            "SELECT p.id, hex(identity), url, h.name, depth, root, state, tries, place, start, input"  # noqa: S608 -- fixed texts
            f" FROM page p JOIN host h ON h.id = p.host WHERE p.{where} ORDER BY p.id",
            (value,),
        )
        for row in cursor:
            page = list(row)
            if page[6] == State.LEASED:
                page[6] = int(State.QUEUED)
            yield ["p", *page]

    def _anchor_rows(self, where: str, value: int) -> Iterator[Row]:
        roots = self._db.execute(
            f"SELECT DISTINCT root FROM anchor WHERE {where} ORDER BY root",  # noqa: S608 -- fixed texts
            (value,),
        ).fetchall()
        for [root] in roots:
            yield ["a", root, [anchor.to_list() for anchor in self.anchors(root)]]

    def _restore_page(self, values: Row) -> None:
        page_id, identity, url, host, *rest = values
        assert isinstance(identity, str)
        assert isinstance(host, str)
        self._db.execute(
            "INSERT OR REPLACE INTO page VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
            (page_id, bytes.fromhex(identity), url, self._host(host), *rest),
        )


def _database() -> sqlite3.Connection:
    handle, path = tempfile.mkstemp(prefix="pageslots-frontier-", suffix=".sqlite")
    os.close(handle)
    db = sqlite3.connect(path, isolation_level=None)
    for pragma in (
        "locking_mode = EXCLUSIVE",
        "journal_mode = OFF",  # never rolled back: checkpoints are what survives
        "synchronous = OFF",
        f"cache_size = -{CACHE_KIB}",
        "temp_store = FILE",
    ):
        db.execute(f"PRAGMA {pragma}").fetchall()
    db.executescript(_SCHEMA)
    db.execute("BEGIN")  # never committed: pages go to the file only when the cache is full
    Path(path).unlink()
    return db


_SCHEMA = """
CREATE TABLE host (
    id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL,
    queued INTEGER NOT NULL, turn INTEGER NOT NULL, eligible_ms INTEGER NOT NULL, delay_ms INTEGER NOT NULL
);
CREATE INDEX host_by_turn ON host (turn) WHERE queued > 0;
CREATE INDEX host_by_time ON host (eligible_ms) WHERE queued > 0;
CREATE TABLE page (
    id INTEGER PRIMARY KEY, identity BLOB UNIQUE NOT NULL, url TEXT NOT NULL, host INTEGER NOT NULL,
    depth INTEGER NOT NULL, root INTEGER NOT NULL, state INTEGER NOT NULL, tries INTEGER NOT NULL,
    place INTEGER NOT NULL, start INTEGER NOT NULL, input TEXT NOT NULL, not_before_ms INTEGER NOT NULL
);
CREATE INDEX page_by_place ON page (host, place) WHERE state = 0;
CREATE TABLE anchor (root INTEGER NOT NULL, host TEXT NOT NULL, prefix TEXT NOT NULL, site TEXT NOT NULL);
CREATE INDEX anchor_by_root ON anchor (root);
"""
