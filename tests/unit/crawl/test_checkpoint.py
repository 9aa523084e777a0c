"""Checkpoints are read whole or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pageslots.wire import Outcome
from pageslots_agent.checkpoint import CheckpointError, Encoder, Header, Part, Tally, read


def a_checkpoint(rows: list[list[object]]) -> bytes:
    tally = Tally(next_row=7, done=3, starts={Outcome.OK: 2})
    header = Header("uid-1", ("_frontier-x.1-000001",), (Part("part-x.1-000001.jsonl", 4),), tally)
    encoder = Encoder(header)
    encoder.add(rows)
    return b"".join(encoder.finish())


def test_what_was_written_is_read_back():
    rows: list[list[object]] = [["p", 1, "AB", "https://a.example/ü\n", None], ["a", 1, [["h", "/", "s"]]]]

    checkpoint = read(a_checkpoint(rows))

    assert list(checkpoint.rows()) == rows
    assert checkpoint.header.tally.starts == {"Ok": 2}
    assert checkpoint.header.tally.starts_ok == 2
    assert checkpoint.header.parts == (Part("part-x.1-000001.jsonl", 4),)
    assert checkpoint.header.chain == ("_frontier-x.1-000001",)


def test_no_rows_are_fine():
    assert list(read(a_checkpoint([])).rows()) == []


@given(st.data())
def test_a_cut_or_damaged_checkpoint_is_refused(data):
    """For every cut and every changed byte: refused, or (in the gzip header) without effect."""
    rows: list[list[object]] = [["p", i, "AB"] for i in range(50)]
    packed = a_checkpoint(rows)
    at = data.draw(st.integers(0, len(packed) - 1))
    with pytest.raises(CheckpointError):
        read(packed[:at])
    damaged = packed[:at] + bytes([packed[at] ^ data.draw(st.integers(1, 255))]) + packed[at + 1 :]
    try:
        assert list(read(damaged).rows()) == rows
    except CheckpointError:
        return


@pytest.mark.parametrize("packed", [b"", b"nonsense", b"{}"])
def test_other_files_are_no_checkpoints(packed):
    with pytest.raises(CheckpointError):
        read(packed)
