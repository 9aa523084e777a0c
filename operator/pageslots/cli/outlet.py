"""Where a run's words go: standard output, written by a thread of its own.

A reader may stop reading (a pager, Ctrl-S) or go away (`| head`). Neither may hold up or end a crawl by
accident: a slow reader costs lines that are counted, a gone one is told to whoever asked to be told.
"""

import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

MAX_WAITING = 1_000
"""Writes that wait for a slow reader; later ones are left out."""


class Outlet:
    """A text stream, as far as `rich.console.Console` and `print` need one.

    `write` never blocks and never fails. `closed_by_reader` becomes true when nobody reads any more;
    `on_gone` is then called once, in the writing thread.
    """

    def __init__(self, stream: TextIO, *, on_gone: Callable[[], None] = lambda: None) -> None:
        self.closed_by_reader = False
        self.on_gone = on_gone
        self._stream = stream
        self._waiting: deque[str] = deque()
        self._changed = threading.Condition()
        self._left_out = 0
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="outlet", daemon=True)
        self._thread.start()

    @property
    def encoding(self) -> str:
        """That of the stream; rich draws with ASCII where it isn't a UTF."""
        return self._stream.encoding or "utf-8"

    @property
    def is_behind(self) -> bool:
        """Whether the reader hasn't read what was written before."""
        with self._changed:
            return len(self._waiting) > 1

    def isatty(self) -> bool:
        """Whether a person looks at it."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """The stream's descriptor."""
        return self._stream.fileno()

    def write(self, text: str) -> int:
        """Take `text`; it is left out when too much waits already, or when nobody reads."""
        with self._changed:
            if self.closed_by_reader or self._closing:
                return len(text)
            if len(self._waiting) >= MAX_WAITING:
                self._left_out += 1
            else:
                self._waiting.append(text)
                self._changed.notify_all()
        return len(text)

    def flush(self) -> None:
        """Nothing: the thread flushes after each write."""

    def close(self) -> None:
        """Wait until everything is written, as long as the reader takes; then let go of the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    def _work(self) -> None:
        while (text := self._next()) is not None:
            try:
                self._stream.write(text)
                self._stream.flush()
            except (OSError, ValueError):  # a closed pipe, a terminal that is gone, a closed file
                with self._changed:
                    self.closed_by_reader = True
                    self._waiting.clear()
                self._discard_rest()
                self.on_gone()
                return

    def _next(self) -> str | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            text = "".join(self._waiting)
            self._waiting.clear()
            if self._left_out:
                text += f"({self._left_out} lines left out: the reader was slow)\n"
                self._left_out = 0
            return text or None

    def _discard_rest(self) -> None:
        """Make the interpreter's own flush at its end find nothing to complain about."""
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
