"""Who belongs to a slot, on made-up process tables; and real processes ended exactly."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping

import pytest
from tests.fakes.processes import alive, eventually

from pageslots.local.processes import POD_MARKER, Family, Process, Table, end, kill_all, memory_kib

AGENT, DRIVER, BROWSER, ZYGOTE, STRANGER, SHELL = (
    1_000_001,
    1_000_002,
    1_000_003,
    1_000_004,
    1_000_005,
    1_000_006,
)
"""Above every id that the kernel gives, so that no test touches a process of this machine."""


def a_table(*processes: Process, marked: Mapping[int, str] | None = None) -> Table:
    markers = {process.pid: {POD_MARKER: (marked or {}).get(process.pid, "")} for process in processes}
    return Table({process.pid: process for process in processes}, markers)


def p(pid: int, *, parent: int = 1, session: int, started: int = 7, zombie: bool = False) -> Process:
    return Process(pid, parent, session, started, zombie)


def a_family() -> Family:
    return Family((POD_MARKER, "mine"))


def test_a_process_is_known_by_its_marker():
    table = a_table(
        p(AGENT, session=AGENT), p(STRANGER, session=STRANGER), marked={AGENT: "mine", STRANGER: "another"}
    )
    assert list(a_family().look(table)) == [AGENT]


def test_descendants_belong_to_it_whatever_their_environment_says():
    table = a_table(
        p(AGENT, session=AGENT),
        p(DRIVER, parent=AGENT, session=AGENT),
        p(ZYGOTE, parent=DRIVER, session=ZYGOTE),
        marked={AGENT: "mine"},
    )
    assert sorted(a_family().look(table)) == [AGENT, DRIVER, ZYGOTE]


def test_a_session_that_the_slot_began_belongs_to_it_when_its_beginner_is_gone():
    """Chromium's zygotes overwrite their environment, and lose their parent when the browser is killed."""
    family = a_family()
    family.look(
        a_table(p(AGENT, session=AGENT), p(BROWSER, parent=AGENT, session=BROWSER), marked={AGENT: "mine"})
    )

    dying = family.look(a_table(p(BROWSER, session=BROWSER, zombie=True), p(DRIVER, session=BROWSER)))
    left = family.look(a_table(p(ZYGOTE, session=BROWSER), p(STRANGER, session=STRANGER)))

    assert list(dying) == [DRIVER]
    assert list(left) == [ZYGOTE]


def test_a_session_that_a_stranger_leads_does_not_make_its_members_ours():
    """Somebody runs a command with our marker in a shell: the shell is not to be killed for it."""
    family = a_family()
    table = a_table(
        p(SHELL, session=SHELL),
        p(AGENT, parent=SHELL, session=SHELL),
        p(STRANGER, parent=SHELL, session=SHELL),
        marked={AGENT: "mine"},
    )
    assert list(family.look(table)) == [AGENT]
    assert list(family.look(table)) == [AGENT]


def test_who_was_seen_once_stays_until_it_ends():
    family = a_family()
    family.look(
        a_table(p(AGENT, session=AGENT), p(ZYGOTE, parent=AGENT, session=ZYGOTE), marked={AGENT: "mine"})
    )
    family.sessions.clear()

    orphaned = a_table(p(ZYGOTE, session=ZYGOTE))
    assert list(family.look(orphaned)) == [ZYGOTE]
    reused = a_table(p(ZYGOTE, session=STRANGER, started=8), p(STRANGER, session=STRANGER))
    assert list(family.look(reused)) == []


def test_the_root_belongs_before_its_environment_is_set():
    family = a_family()
    family.root = AGENT
    assert list(family.look(a_table(p(AGENT, session=os.getsid(0))))) == [AGENT]
    assert family.sessions == set()


def test_the_dead_and_this_program_are_never_members():
    table = a_table(
        p(AGENT, session=AGENT, zombie=True),
        p(os.getpid(), session=os.getsid(0)),
        p(1, session=1),
        marked={AGENT: "mine", os.getpid(): "mine", 1: "mine"},
    )
    assert dict(a_family().look(table)) == {}


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, POD_MARKER: "a-test"}
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=environment
    ) as process:
        yield process
        process.kill()


def test_a_signal_reaches_exactly_the_process_that_was_meant(sleeper: subprocess.Popen[bytes]):
    seen = Table.read().processes[sleeper.pid]
    end(Process(seen.pid, seen.parent, seen.session, seen.started - 1, seen.zombie))
    assert alive([sleeper.pid]) == [sleeper.pid]

    end(seen)

    assert sleeper.wait(timeout=10) == -signal.SIGKILL
    end(seen)  # gone: nothing happens


def test_a_real_family_is_found_measured_and_ended(sleeper: subprocess.Popen[bytes]):
    family = Family((POD_MARKER, "a-test"))
    eventually(lambda: list(family.look(Table.read())) == [sleeper.pid])

    exact, upper = (memory_kib(family.members.values(), exact=exact) for exact in (True, False))
    assert 1_000 < exact <= upper < 200_000
    assert kill_all(family, within_seconds=10)
    assert family.members == {}
