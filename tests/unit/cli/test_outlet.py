"""Output that nobody reads, or reads slowly, holds up no crawl (case U5)."""

import io
import os
import threading

from pageslots.cli.outlet import MAX_WAITING, Outlet


class Blocked(io.StringIO):
    """A reader that doesn't read until it is let."""

    def __init__(self):
        super().__init__()
        self.entered = threading.Event()
        self.released = threading.Event()

    def write(self, text):
        self.entered.set()
        assert self.released.wait(10)
        return super().write(text)


def test_everything_written_arrives_in_order():
    stream = io.StringIO()
    outlet = Outlet(stream)
    for number in range(100):
        outlet.write(f"{number}\n")
    outlet.close()
    assert stream.getvalue().split() == [str(number) for number in range(100)]


def test_a_slow_reader_blocks_nobody_and_is_told_what_is_missing():
    stream = Blocked()
    outlet = Outlet(stream)
    outlet.write("first\n")
    assert stream.entered.wait(10)
    for _ in range(MAX_WAITING + 7):
        outlet.write("x\n")
    assert outlet.is_behind
    stream.released.set()
    outlet.close()
    assert stream.getvalue().count("x\n") == MAX_WAITING
    assert "(7 lines left out: the reader was slow)" in stream.getvalue()


def test_a_closed_pipe_is_told_once_and_swallows_the_rest():
    reading, writing = os.pipe()
    gone = threading.Event()
    stream = os.fdopen(writing, "w")
    outlet = Outlet(stream, on_gone=gone.set)
    os.close(reading)
    outlet.write("into nothing\n")
    assert gone.wait(10)
    assert outlet.closed_by_reader
    outlet.write("more\n")
    outlet.close()
    stream.close()  # and its own flush has nothing to complain about
