"""Numbers as people read them, and text of strangers made harmless for a terminal."""

import re

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 page`, `2 pages`, `1,200 pages`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def duration(seconds: float) -> str:
    """`2.1 s`, `1 min 05 s`, `2 h 03 min`."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def stopwatch(seconds: float) -> str:
    """`0:42`, `1:02:03`."""
    whole = int(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def volume(size: int) -> str:
    """`512 B`, `1.4 MiB`."""
    if size < 1024:
        return f"{size} B"
    number = float(size)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        number /= 1024
        if number < 1024 or unit == "TiB":
            break
    return f"{number:.1f} {unit}"


def harmless(text: str) -> str:
    """The text in one line, without what a terminal would obey or turn around.

    Pages write what they like into their titles: escape sequences among it.
    """
    return _CONTROL.sub(" ", text)
