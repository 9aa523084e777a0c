"""The demo's manifests, as files for a shop on given ports.

The folder `manifests` beside this module is their only source; `examples/` of the repository is a copy for
reading (`python -m pageslots.demo.examples examples`), which a test compares.
"""

import re
import sys
from importlib import resources
from pathlib import Path

from pageslots.demo.shop import PORT_BASE

NAMES = ("pool.yaml", "shop.yaml", "failures.yaml", "products.csv")


def write_examples(folder: Path, *, port_base: int = PORT_BASE) -> list[Path]:
    """Write the manifests, and the CSV file that one of them reads, into `folder`, which is made if need be.

    URLs get the ports `port_base`, + 1 and + 2. Returns the paths in the order of `NAMES`; files of these
    names are overwritten.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in NAMES:
        path = folder / name
        path.write_text(example(name, port_base=port_base), encoding="utf-8")
        written.append(path)
    return written


def example(name: str, *, port_base: int = PORT_BASE) -> str:
    """The text of one file, with the shop's ports filled in."""
    source = (resources.files("pageslots.demo") / "manifests" / name).read_text(encoding="utf-8")
    return re.sub(
        r"(?<=127\.0\.0\.1:)180(8[123])\b",
        lambda found: str(port_base + int(found[1]) - 81),
        source,
    )


if __name__ == "__main__":
    write_examples(Path(sys.argv[1]))
