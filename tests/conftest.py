"""What holds for all tests."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def signals_are_heard() -> Iterator[None]:
    """A shell that starts something in the background has it ignore Ctrl-C, and nohup SIGHUP; pageslots obeys.

    Tests that send these signals mean to be heard, however the tests themselves were started.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGHUP)}
    for number, handler in before.items():
        if handler is signal.SIG_IGN:
            default = signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL
            signal.signal(number, default)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
