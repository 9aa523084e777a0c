"""The shop's web font: capitals, figures and currency signs made of dots, as a TrueType file of about 30 KiB.

Built from the grids below, table by table, because a shop that is to be crawled like a real one loads a font
like a real one (and a pool that blocks fonts should have one to block).
"""

import struct
from collections.abc import Mapping, Sequence
from types import MappingProxyType

UNITS = 1000
DOT, PITCH = 52, 120
"""Radius of a dot, and the distance between two, in units of the em."""
ROWS, COLUMNS = 7, 5
ADVANCE = (COLUMNS + 1) * PITCH

GRIDS: Mapping[str, str] = MappingProxyType(
    {
        "A": "0e 11 11 1f 11 11 11", "B": "1e 11 11 1e 11 11 1e", "C": "0f 10 10 10 10 10 0f",
        "D": "1e 11 11 11 11 11 1e", "E": "1f 10 10 1e 10 10 1f", "F": "1f 10 10 1e 10 10 10",
        "G": "0f 10 10 13 11 11 0f", "H": "11 11 11 1f 11 11 11", "I": "0e 04 04 04 04 04 0e",
        "J": "07 02 02 02 02 12 0c", "K": "11 12 14 18 14 12 11", "L": "10 10 10 10 10 10 1f",
        "M": "11 1b 15 15 11 11 11", "N": "11 19 19 15 13 13 11", "O": "0e 11 11 11 11 11 0e",
        "P": "1e 11 11 1e 10 10 10", "Q": "0e 11 11 11 15 12 0d", "R": "1e 11 11 1e 14 12 11",
        "S": "0f 10 10 0e 01 01 1e", "T": "1f 04 04 04 04 04 04", "U": "11 11 11 11 11 11 0e",
        "V": "11 11 11 11 0a 0a 04", "W": "11 11 11 15 15 1b 11", "X": "11 11 0a 04 0a 11 11",
        "Y": "11 11 0a 04 04 04 04", "Z": "1f 01 02 04 08 10 1f",
        "0": "0e 11 13 15 19 11 0e", "1": "04 0c 14 04 04 04 1f", "2": "0e 11 01 06 08 10 1f",
        "3": "1e 01 01 0e 01 01 1e", "4": "02 06 0a 12 1f 02 02", "5": "1f 10 1e 01 01 11 0e",
        "6": "06 08 10 1e 11 11 0e", "7": "1f 01 02 02 04 04 04", "8": "0e 11 11 0e 11 11 0e",
        "9": "0e 11 11 0f 01 02 0c",
        " ": "00 00 00 00 00 00 00", "\xa0": "00 00 00 00 00 00 00", ".": "00 00 00 00 00 0c 0c",
        ",": "00 00 00 00 0c 0c 08", "-": "00 00 00 0e 00 00 00", ":": "00 0c 0c 00 0c 0c 00",
        "/": "01 01 02 04 08 10 10", "&": "0c 12 12 0c 15 12 0d", "%": "19 19 02 04 08 13 13",
        "$": "04 0f 14 0e 05 1e 04", "€": "07 08 1e 08 1e 08 07", "¥": "11 0a 1f 04 1f 04 04",
        "￥": "11 0a 1f 04 1f 04 04",
    }
)  # fmt: skip
"""Seven rows of five dots each, top row first, as hexadecimal numbers. Small letters look like capitals."""


def web_font() -> bytes:
    """The font file."""
    glyphs = [_glyph("0e 11 11 11 11 11 0e"), *(_glyph(grid) for grid in GRIDS.values())]
    offsets = [0]
    for glyph in glyphs:
        offsets.append(offsets[-1] + len(glyph))
    count = len(glyphs)
    tables = {
        b"OS/2": _os2(),
        b"cmap": _cmap(),
        b"glyf": b"".join(glyphs),
        b"head": _head(),
        b"hhea": _hhea(count),
        b"hmtx": b"".join(struct.pack(">Hh", ADVANCE, PITCH // 2) for _ in glyphs),
        b"loca": struct.pack(f">{count + 1}I", *offsets),
        b"maxp": struct.pack(">I14H", 0x10000, count, ROWS * COLUMNS * 8, ROWS * COLUMNS, 0, 0, 2, *[0] * 8),
        b"name": _name(),
        b"post": struct.pack(">IIhhIIIII", 0x30000, 0, -100, 50, 1, 0, 0, 0, 0),
    }
    return _font_file(tables)


def _glyph(grid: str) -> bytes:
    """One outline: eight corners for each dot, four-byte aligned; empty for a space."""
    dots = [
        (column * PITCH + PITCH, (ROWS - 1 - row) * PITCH + PITCH // 2)
        for row, bits in enumerate(int(number, 16) for number in grid.split())
        for column in range(COLUMNS)
        if bits >> (COLUMNS - 1 - column) & 1
    ]
    if not dots:
        return b""
    short = DOT * 2 // 5
    corners = [
        (-short, DOT), (short, DOT), (DOT, short), (DOT, -short),
        (short, -DOT), (-short, -DOT), (-DOT, -short), (-DOT, short),
    ]  # fmt: skip
    points = [(x + dx, y + dy) for x, y in dots for dx, dy in corners]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    body = (
        struct.pack(">hhhhh", len(dots), min(xs), min(ys), max(xs), max(ys))
        + struct.pack(f">{len(dots)}H", *(8 * number + 7 for number in range(len(dots))))
        + struct.pack(">H", 0)
        + b"\x01" * len(points)  # every point is on the curve, every coordinate has two bytes
        + b"".join(_deltas(values) for values in (xs, ys))
    )
    return body + b"\0" * (-len(body) % 4)


def _deltas(values: Sequence[int]) -> bytes:
    steps = [value - before for value, before in zip(values, [0, *values[:-1]], strict=True)]
    return struct.pack(f">{len(steps)}h", *steps)


def _cmap() -> bytes:
    """Character to glyph: format 4, one segment per character."""
    numbers = {ord(character): number for number, character in enumerate(GRIDS, start=1)}
    numbers |= {ord(character.lower()): numbers[ord(character)] for character in GRIDS if character.isalpha()}
    codes = [*sorted(numbers), 0xFFFF]
    count = len(codes)
    power = 1 << (count.bit_length() - 1)
    deltas = [(numbers.get(code, 0) - code) % 0x10000 for code in codes[:-1]] + [1]
    table = (
        struct.pack(">HHHH", count * 2, power * 2, power.bit_length() - 1, (count - power) * 2)
        + struct.pack(f">{count}H", *codes)
        + struct.pack(">H", 0)
        + struct.pack(f">{count}H", *codes)
        + struct.pack(f">{count}H", *deltas)
        + struct.pack(f">{count}H", *[0] * count)
    )
    return struct.pack(">HHHHI", 0, 1, 3, 1, 12) + struct.pack(">HHH", 4, len(table) + 6, 0) + table


def _head() -> bytes:
    return struct.pack(
        ">IIIIHHqqhhhhHHhhh",
        0x10000, 0x10000, 0, 0x5F0F3CF5, 3, UNITS, 0, 0, 0, 0, ADVANCE, ROWS * PITCH, 0, 8, 2, 1, 0,
    )  # fmt: skip


def _hhea(count: int) -> bytes:
    return struct.pack(
        ">IhhhH11hH", 0x10000, 900, -100, 0, ADVANCE, 0, 0, ADVANCE, 1, 0, 0, 0, 0, 0, 0, 0, count
    )  # fmt: skip


def _os2() -> bytes:
    return struct.pack(
        ">HhHHH10hh10s4I4sHHHhhhHH",
        3, ADVANCE, 700, 5, 0, *[0] * 10, 0, b"\0" * 10, 1, 0, 0, 0, b"KILN",
        0x40, 0x20, 0xFFE5, 900, -100, 0, 900, 100,
    ) + struct.pack(">IIhhHHH", 1, 0, 500, 840, 0, 32, 0)  # fmt: skip


def _name() -> bytes:
    texts = {1: "Kiln Dots", 2: "Regular", 3: "Kiln Dots", 4: "Kiln Dots", 5: "Version 1.0", 6: "KilnDots"}
    records, storage = b"", b""
    for number, text in texts.items():
        encoded = text.encode("utf-16-be")
        records += struct.pack(">HHHHHH", 3, 1, 0x409, number, len(encoded), len(storage))
        storage += encoded
    return struct.pack(">HHH", 0, len(texts), 6 + len(records)) + records + storage


def _font_file(tables: Mapping[bytes, bytes]) -> bytes:
    """The tables behind their directory; the whole sums up to the constant that `head` promises."""
    power = 1 << (len(tables).bit_length() - 1)
    start = 12 + 16 * len(tables)
    directory = struct.pack(
        ">IHHHH", 0x10000, len(tables), power * 16, power.bit_length() - 1, (len(tables) - power) * 16
    )
    body, head_at = b"", 0
    for tag, table in tables.items():
        if tag == b"head":
            head_at = start + len(body)
        directory += struct.pack(">4sIII", tag, _checksum(table), start + len(body), len(table))
        body += table + b"\0" * (-len(table) % 4)
    font = bytearray(directory + body)
    font[head_at + 8 : head_at + 12] = struct.pack(">I", (0xB1B0AFBA - _checksum(font)) % 2**32)
    return bytes(font)


def _checksum(table: bytes | bytearray) -> int:
    padded = bytes(table) + b"\0" * (-len(table) % 4)
    words: tuple[int, ...] = struct.unpack(f">{len(padded) // 4}I", padded)
    return sum(words) % 2**32
