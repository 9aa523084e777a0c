"""What a run looks like on a terminal of any size (case U5)."""

import io

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from tests.fakes.runs import a_country, a_row, a_snapshot

from pageslots.cli.picture import picture, sums


def drawn(snapshot, *, width, height=24):
    console = Console(width=width, height=height, file=io.StringIO(), color_system=None)
    console.print(picture(snapshot, width=width, height=height))
    return console.file.getvalue()


FAILED = a_row("bad", "Failed", reason="Blocked", message="403 everywhere", pages_done=0, pages_failed=1)
WAITING = a_row("later", "Queued", reason="SiteCoolingDown", pages_done=0, pages_discovered=0, attempts=0)
RUNNING = a_row("big", "Running", reason="Running", pages_done=31, pages_discovered=52)


def test_forty_columns_show_states_pages_permits_and_why_requests_wait():
    text = drawn(a_snapshot(FAILED, WAITING, RUNNING), width=40)
    assert "permits 1/4" in text
    assert "1.5/s" in text
    assert "31/52" in text
    assert "queue: SiteCoolingDown 1" in text


def test_eighty_columns_show_reasons_beside_the_requests():
    text = drawn(a_snapshot(FAILED, WAITING, RUNNING), width=80)
    assert "Blocked: 403 everywhere" in text
    assert "SiteCoolingDown" in text
    assert "1/3 requests done" in text


def test_wide_terminals_show_every_slot_state():
    country = a_country(slots=7, preparing=1, ready=1, running=1, closing=1)
    line = next(
        line for line in drawn(a_snapshot(countries=(country,)), width=120).splitlines() if "SG" in line
    )
    assert line.split() == ["SG", "7", "3", "1", "1", "1", "1", "3", "4"]


def test_running_and_failed_requests_are_seen_among_a_thousand():
    rows = [a_row(f"later-{i}", "Queued", reason="WaitingForSlot") for i in range(1000)]
    text = drawn(a_snapshot(*rows, FAILED, RUNNING), width=80)
    assert "big" in text
    assert "bad" in text
    assert "WaitingForSlot 9" in text


def test_the_busiest_countries_are_seen_among_fifty():
    rows = [a_country(f"A{chr(65 + i % 26)}", running=0, ready=0, queued=0) for i in range(49)]
    text = drawn(a_snapshot(countries=(*rows, a_country("ZA", running=2))), width=80)
    assert "ZA" in text
    assert "more" in text


def test_what_pages_say_does_not_reach_the_terminal_as_commands():
    hostile = a_row("bad", "Failed", reason="Blocked", message="\x1b]0;owned\x07\x1b[2J")
    assert "\x1b" not in drawn(a_snapshot(hostile), width=120)


def test_sums_name_the_reasons_of_the_queue():
    assert sums([RUNNING, WAITING, FAILED]) == "1 Running, 1 Queued (SiteCoolingDown 1), 1 Failed"


STATES = st.sampled_from(["Queued", "Running", "Succeeded", "Failed", "Stopped"])
ROWS = st.builds(
    lambda name, state, message, pages: a_row(
        name,
        state,
        message=message,
        reason="Blocked",
        pages_done=pages,
        pages_discovered=pages,
        pages_failed=pages,
    ),
    st.text("abc-", min_size=1, max_size=63),
    STATES,
    st.text(max_size=100),
    st.integers(0, 10**7),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(ROWS, max_size=60), st.integers(1, 40), st.integers(40, 160), st.integers(12, 60))
def test_a_picture_fits_its_terminal(rows, countries, width, height):
    """At 40 columns or more no line is cut or wrapped, and no row is beyond the last."""
    codes = [f"A{chr(65 + i % 26)}" for i in range(countries)]
    shot = a_snapshot(*rows, countries=tuple(map(a_country, codes)), stopping=True)
    lines = drawn(shot, width=width, height=height).splitlines()
    assert max(map(cell_len, lines)) <= width
    assert len(lines) < height
