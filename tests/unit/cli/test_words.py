"""Numbers as people read them."""

import pytest

from pageslots.cli.words import count, duration, harmless, stopwatch, volume


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (count(1, "page"), "1 page"),
        (count(1200, "page"), "1,200 pages"),
        (duration(2.14), "2.1 s"),
        (duration(59.96), "1 min 00 s"),
        (duration(65), "1 min 05 s"),
        (duration(7380), "2 h 03 min"),
        (stopwatch(42.9), "0:42"),
        (stopwatch(3723), "1:02:03"),
        (volume(512), "512 B"),
        (volume(1_500_000), "1.4 MiB"),
        (volume(3 * 1024**4), "3.0 TiB"),
    ],
)
def test_numbers_are_said_as_people_say_them(said, expected):
    assert said == expected


def test_what_a_terminal_would_obey_becomes_a_space():
    assert harmless("a\x1b[2Jb\u202ec\nd") == "a [2Jb c d"
