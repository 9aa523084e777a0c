"""Ctrl-C, closed pipes, exit codes."""

import asyncio
import io
import os
import re
import signal

import pytest
from tests.fakes.runs import ScriptedRun, a_row

from pageslots.cli.attending import attend
from pageslots.cli.ending import Ending
from pageslots.cli.problems import UsageProblem
from pageslots.local.inputs import UnusableInputError


def interrupt(times=1, number=signal.SIGINT):
    def send(_):
        for _ in range(times):
            os.kill(os.getpid(), number)

    return send


def attended(run, tmp_path, *, plain=True, stream=None):
    stream = stream or io.StringIO()
    code = attend(run, Ending(tmp_path, ["pageslots", "run", "crawl.yaml"]), plain=plain, stream=stream)
    return code, stream.getvalue() if isinstance(stream, io.StringIO) else ""


def test_a_run_in_which_all_succeeded_exits_with_0(tmp_path):
    code, text = attended(ScriptedRun(on_attach=lambda run: run.finish(a_row())), tmp_path)
    assert code == 0
    assert "1 request: 1 succeeded; 7 pages in 42.0 s" in text


def test_a_run_in_which_some_failed_exits_with_1(tmp_path):
    run = ScriptedRun(on_attach=lambda run: run.finish(a_row(), a_row("bad", "Failed", reason="Blocked")))
    code, text = attended(run, tmp_path)
    assert code == 1
    assert "bad  Blocked" in text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_asks_for_a_graceful_end_and_names_the_command_that_goes_on(tmp_path, number):
    run = ScriptedRun(a_row("big", "Running"), on_attach=interrupt(number=number))
    code, text = attended(run, tmp_path)
    assert run.told == ["stop"]
    assert code == 130
    assert "1 request not finished" in text
    assert "pageslots run crawl.yaml" in text


def test_the_second_ctrl_c_ends_at_once(tmp_path):
    run = ScriptedRun(a_row("big", "Running"), on_attach=lambda run: (interrupt()(run), second(run)))
    run.needs_kill = True

    def second(_):

        asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGINT)

    code, text = attended(run, tmp_path)
    assert run.told == ["stop", "kill"]
    assert code == 130
    assert "ending at once" in text


def test_ctrl_c_before_anything_was_started_ends_at_once(tmp_path):
    async def starting(_):
        os.kill(os.getpid(), signal.SIGINT)

        await asyncio.sleep(10)

    assert attended(starting, tmp_path)[0] == 130


def test_signals_that_were_ignored_stay_ignored(tmp_path):
    """`nohup pageslots run …` outlives its terminal."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        run = ScriptedRun(on_attach=lambda run: (os.kill(os.getpid(), signal.SIGHUP), run.finish(a_row())))
        code, _ = attended(run, tmp_path)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    assert code == 0
    assert run.told == []


def test_a_closed_pipe_ends_the_run_gracefully_and_quietly(tmp_path):
    """Case U5."""
    reading, writing = os.pipe()
    os.close(reading)
    run = ScriptedRun(a_row("one"), a_row("big", "Running"))
    with os.fdopen(writing, "w") as stream:
        code, _ = attended(run, tmp_path, stream=stream)
    assert run.told == ["stop"]
    assert code == 141


def test_unusable_input_is_told_as_sentences(tmp_path):
    async def refusing(_):
        raise UnusableInputError(["no browser was found", "second"])

    with pytest.raises(UsageProblem) as problem:
        attended(refusing, tmp_path)
    assert problem.value.sentences == ("no browser was found", "second")


class FakeTerminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_a_live_table_that_leaves_only_the_summary(tmp_path, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = FakeTerminal()
    run = ScriptedRun(a_row("big", "Running"), on_attach=_finish_soon)
    assert attended(run, tmp_path, plain=None, stream=stream)[0] == 0
    text = stream.getvalue()
    assert "permits 1/4" in text
    assert "\x1b[" in text
    assert f"pageslots results big --output {tmp_path}" in text  # in one piece, whatever the width


def test_no_color_is_obeyed_on_a_terminal(tmp_path, monkeypatch):
    """Case U5."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    stream = FakeTerminal()
    attended(
        ScriptedRun(a_row("big", "Running"), on_attach=_finish_soon), tmp_path, plain=None, stream=stream
    )
    assert "permits 1/4" in stream.getvalue()
    colours = [
        int(code) for found in re.findall(r"\x1b\[([\d;]+)m", stream.getvalue()) for code in found.split(";")
    ]
    assert not [code for code in colours if 30 <= code <= 49 or 90 <= code <= 107]


def test_a_dumb_terminal_gets_plain_lines(tmp_path, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    stream = FakeTerminal()
    attended(
        ScriptedRun(a_row("big", "Running"), on_attach=_finish_soon), tmp_path, plain=None, stream=stream
    )
    assert "\x1b[" not in stream.getvalue()
    assert "big  Succeeded" in stream.getvalue()


def _finish_soon(run):

    asyncio.get_running_loop().call_later(0.1, run.finish, a_row("big"))
