"""Product pictures: flat shapes with printing grain, as PNG files of the weight that shops really send.

Drawn from the shapes below and encoded with zlib alone. The grain is a hash of the name, so that the same
picture has the same bytes everywhere; it also keeps the file from compressing to nothing (about 64 KiB for
560 by 420 pixels, where a flat drawing would have 3).
"""

import hashlib
import math
import struct
import zlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from pageslots.demo.catalogue import COLOURWAYS, PRODUCTS, Colourway

WIDTH, HEIGHT = 560, 420
HERO_WIDTH, HERO_HEIGHT = 1200, 460

Colour = tuple[int, int, int]
"""sRGB, 0 to 255."""
Point = tuple[float, float]
Shape = tuple[Literal["main", "dark", "light", "paper"], tuple[Point, ...]]


def _oval(x: float, y: float, rx: float, ry: float) -> tuple[Point, ...]:
    steps = [math.tau * i / 72 for i in range(72)]
    return tuple((x + rx * math.cos(a), y + ry * math.sin(a)) for a in steps)


def _side(x: float, y: float, rx: float, ry: float, cut: float) -> tuple[Point, ...]:
    """What an oval has to the right of `cut`."""
    return tuple((max(px, cut), py) for px, py in _oval(x, y, rx, ry))


def _between(*sides: tuple[float, float, float]) -> tuple[Point, ...]:
    """A body with a vertical axis: (y, left, right) from top to bottom."""
    return tuple((left, y) for y, left, _ in sides) + tuple((right, y) for y, _, right in reversed(sides))


SHAPES: Mapping[str, tuple[Shape, ...]] = MappingProxyType(
    {
        "mug": (
            ("main", _oval(0.3, -0.42, 0.2, 0.22)),
            ("paper", _oval(0.3, -0.42, 0.12, 0.14)),
            ("main", _between((-0.75, -0.3, 0.3), (-0.08, -0.27, 0.27), (0, -0.2, 0.2))),
            ("dark", _between((-0.75, 0.12, 0.3), (-0.08, 0.1, 0.27), (0, 0.06, 0.2))),
            ("light", _oval(0, -0.75, 0.3, 0.07)),
            ("dark", _oval(0, -0.74, 0.25, 0.045)),
        ),
        "bowl": (
            ("dark", _between((-0.06, -0.18, 0.18), (0, -0.22, 0.22))),
            (
                "main",
                _between((-0.5, -0.5, 0.5), (-0.34, -0.46, 0.46), (-0.18, -0.34, 0.34), (-0.05, -0.16, 0.16)),
            ),
            (
                "dark",
                _between((-0.5, 0.2, 0.5), (-0.34, 0.18, 0.46), (-0.18, 0.12, 0.34), (-0.05, 0.05, 0.16)),
            ),
            ("light", _oval(0, -0.5, 0.5, 0.1)),
            ("dark", _oval(0, -0.49, 0.44, 0.07)),
        ),
        "vase": (
            (
                "main",
                _between(
                    (-1.05, -0.13, 0.13),
                    (-0.85, -0.1, 0.1),
                    (-0.7, -0.2, 0.2),
                    (-0.5, -0.34, 0.34),
                    (-0.32, -0.36, 0.36),
                    (-0.14, -0.28, 0.28),
                    (0, -0.17, 0.17),
                ),
            ),
            (
                "dark",
                _between(
                    (-1.05, 0.05, 0.13),
                    (-0.85, 0.03, 0.1),
                    (-0.7, 0.07, 0.2),
                    (-0.5, 0.14, 0.34),
                    (-0.32, 0.15, 0.36),
                    (-0.14, 0.11, 0.28),
                    (0, 0.06, 0.17),
                ),
            ),
            ("light", _oval(0, -1.05, 0.13, 0.035)),
            ("light", _between((-0.46, -0.345, -0.1), (-0.38, -0.36, -0.08))),
        ),
        "teapot": (
            ("dark", ((-0.3, -0.3), (-0.72, -0.62), (-0.6, -0.66), (-0.25, -0.5))),
            ("main", _oval(0.38, -0.38, 0.24, 0.24)),
            ("paper", _oval(0.38, -0.38, 0.16, 0.16)),
            ("main", _oval(0, -0.33, 0.44, 0.33)),
            ("dark", _side(0, -0.33, 0.44, 0.33, 0.19)),
            ("light", _oval(0, -0.62, 0.22, 0.06)),
            ("dark", _oval(0, -0.7, 0.06, 0.06)),
        ),
        "planter": (
            (
                "dark",
                ((-0.02, -0.5), (-0.24, -0.62), (-0.4, -0.8), (-0.46, -1.02), (-0.26, -0.94), (-0.1, -0.78)),
            ),
            ("dark", ((0.02, -0.5), (0.24, -0.62), (0.4, -0.8), (0.46, -1.02), (0.26, -0.94), (0.1, -0.78))),
            ("light", ((0, -0.5), (-0.12, -0.72), (-0.12, -0.96), (0, -1.18), (0.12, -0.96), (0.12, -0.72))),
            ("main", _between((-0.52, -0.36, 0.36), (0, -0.25, 0.25))),
            ("dark", _between((-0.52, 0.14, 0.36), (0, 0.1, 0.25))),
            ("light", _between((-0.58, -0.39, 0.39), (-0.46, -0.38, 0.38))),
        ),
        "lamp": (
            ("dark", _oval(0, -0.03, 0.24, 0.05)),
            ("dark", _between((-0.62, -0.025, 0.025), (-0.03, -0.025, 0.025))),
            ("light", _oval(0, -0.6, 0.3, 0.07)),
            ("main", _between((-1.05, -0.16, 0.16), (-0.62, -0.38, 0.38))),
            ("dark", _between((-1.05, 0.06, 0.16), (-0.62, 0.15, 0.38))),
        ),
        "clock": (
            ("dark", _oval(0.03, -0.5, 0.46, 0.46)),
            ("main", _oval(0, -0.52, 0.46, 0.46)),
            ("paper", _oval(0, -0.52, 0.38, 0.38)),
            ("dark", ((-0.02, -0.5), (-0.02, -0.8), (0.02, -0.8), (0.02, -0.5))),
            ("dark", ((0, -0.54), (0.22, -0.4), (0.2, -0.36), (-0.02, -0.5))),
            ("main", _oval(0, -0.52, 0.04, 0.04)),
        ),
        "stool": (
            ("dark", ((-0.3, -0.7), (-0.4, 0), (-0.33, 0), (-0.22, -0.7))),
            ("dark", ((0.3, -0.7), (0.4, 0), (0.33, 0), (0.22, -0.7))),
            ("dark", ((-0.04, -0.7), (-0.04, -0.06), (0.04, -0.06), (0.04, -0.7))),
            ("dark", _between((-0.34, -0.34, 0.34), (-0.3, -0.35, 0.35))),
            ("main", _between((-0.78, -0.42, 0.42), (-0.68, -0.4, 0.4))),
            ("light", _oval(0, -0.78, 0.42, 0.07)),
        ),
    }
)
"""What each kind looks like: its foot stands at (0, 0), y grows downwards, 1 is about its height."""


class Picture:
    """A canvas of coloured pixels, filled shape by shape. At most 63 colours, four shades of grain each."""

    def __init__(self, width: int, height: int) -> None:
        self._width = width
        self._rows = [bytearray(width) for _ in range(height)]
        self._colours: list[Colour] = []

    def fill(self, points: Sequence[Point], colour: Colour) -> None:
        """Fill a polygon (even-odd rule), in pixels."""
        number = self._number(colour)
        ys = [y for _, y in points]
        edges = list(zip(points, (*points[1:], points[0]), strict=True))
        for row in range(max(0, math.ceil(min(ys))), min(len(self._rows), math.ceil(max(ys)))):
            cuts = sorted(
                x1 + (row - y1) * (x2 - x1) / (y2 - y1)
                for (x1, y1), (x2, y2) in edges
                if (y1 <= row) != (y2 <= row)
            )
            for left, right in zip(cuts[::2], cuts[1::2], strict=True):
                start, end = max(0, round(left)), min(self._width, round(right))
                if end > start:
                    self._rows[row][start:end] = bytes([number]) * (end - start)

    def place(
        self,
        kind: str,
        colourway: Colourway,
        *,
        x: float,
        y: float,
        size: float,
        wall: Colour,
        ground: Colour,
    ) -> None:
        """Draw a product of `size` pixels with its foot at (x, y), before a wall, on a ground."""
        main = colourway.colour
        tones = {"main": main, "dark": _mix(main, (24, 26, 40), 35), "light": _mix(main, (255, 250, 240), 45)}
        tones["paper"] = wall
        shadow = _oval(x + size * 0.08, y, size * 0.42, size * 0.05)
        self.fill(shadow, _mix(ground, (50, 40, 50), 25))
        for tone, points in SHAPES[kind]:
            self.fill([(x + px * size, y + py * size) for px, py in points], tones[tone])

    def png(self, grain: str) -> bytes:
        """The file. `grain` is the seed of the noise."""
        # Three of five pixels keep their colour; the others are up to three shades darker.
        shades = bytes(0 if i < 156 else 1 if i < 212 else 2 if i < 242 else 3 for i in range(256))
        noise = hashlib.shake_256(grain.encode()).digest(self._width * len(self._rows)).translate(shades)
        fours = bytes(i * 4 % 256 for i in range(256))
        lines = []
        for number, row in enumerate(self._rows):
            own = noise[number * self._width : (number + 1) * self._width]
            # Adding two rows as two big numbers adds every pixel at once: none exceeds 255.
            total = int.from_bytes(row.translate(fours), "big") + int.from_bytes(own, "big")
            lines.append(b"\0" + total.to_bytes(self._width, "big"))
        palette = b"".join(
            bytes(_mix(c, (30, 24, 30), 5 * shade)) for c in self._colours for shade in range(4)
        )
        header = struct.pack(">IIBBBBB", self._width, len(self._rows), 8, 3, 0, 0, 0)
        data = zlib.compress(b"".join(lines), 6)
        return b"\x89PNG\r\n\x1a\n" + b"".join(
            _chunk(*part) for part in ((b"IHDR", header), (b"PLTE", palette), (b"IDAT", data), (b"IEND", b""))
        )

    def _number(self, colour: Colour) -> int:
        if colour not in self._colours:
            self._colours.append(colour)
        number = self._colours.index(colour)
        assert number < 64, "a palette has 256 entries, four per colour"
        return number


def _mix(a: Colour, b: Colour, percent: int) -> Colour:
    red, green, blue = ((x * (100 - percent) + y * percent) // 100 for x, y in zip(a, b, strict=True))
    return red, green, blue


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def product_picture(sku: str) -> bytes:
    """The PNG of one product, 560 by 420, about 64 KiB; raises `KeyError` for an unknown SKU."""
    product = PRODUCTS[sku]
    wall = _mix(product.colourway.colour, (250, 244, 232), 82)
    table = _mix(product.colourway.colour, (240, 228, 208), 66)
    picture = Picture(WIDTH, HEIGHT)
    picture.fill(((0, 0), (WIDTH, 0), (WIDTH, HEIGHT), (0, HEIGHT)), wall)
    picture.fill(((0, HEIGHT * 0.72), (WIDTH, HEIGHT * 0.72), (WIDTH, HEIGHT), (0, HEIGHT)), table)
    sun = _oval(WIDTH * (0.25 + 0.5 * (product.number % 2)), HEIGHT * 0.36, HEIGHT * 0.25, HEIGHT * 0.25)
    picture.fill(sun, _mix(wall, (255, 255, 250), 55))
    picture.place(
        product.kind.key,
        product.colourway,
        x=WIDTH / 2,
        y=HEIGHT * 0.86,
        size=HEIGHT * 0.68,
        wall=wall,
        ground=table,
    )
    return picture.png(sku)


def hero_picture() -> bytes:
    """The PNG on the home page: one of each kind on a shelf, 1200 by 460."""
    wall, shelf = (238, 226, 205), (204, 178, 142)
    picture = Picture(HERO_WIDTH, HERO_HEIGHT)
    picture.fill(((0, 0), (HERO_WIDTH, 0), (HERO_WIDTH, HERO_HEIGHT), (0, HERO_HEIGHT)), wall)
    picture.fill(_oval(HERO_WIDTH * 0.76, 170, 150, 150), (247, 214, 150))
    top = HERO_HEIGHT - 62
    picture.fill(((0, top), (HERO_WIDTH, top), (HERO_WIDTH, HERO_HEIGHT), (0, HERO_HEIGHT)), shelf)
    picture.fill(
        ((0, top + 34), (HERO_WIDTH, top + 34), (HERO_WIDTH, top + 44), (0, top + 44)),
        _mix(shelf, (60, 40, 20), 30),
    )
    for place, (kind, x, size) in enumerate(
        (
            ("planter", 128, 260),
            ("mug", 285, 150),
            ("lamp", 440, 330),
            ("bowl", 615, 180),
            ("vase", 765, 270),
            ("teapot", 940, 190),
            ("clock", 1105, 180),
        )
    ):
        colourway = COLOURWAYS[place * 5 % len(COLOURWAYS)]
        picture.place(kind, colourway, x=x, y=top + 16, size=size, wall=wall, ground=shelf)
    return picture.png("hero")
