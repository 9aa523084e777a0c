"""`pageslots demo`."""

from collections.abc import Sequence
from pathlib import Path

import click

from pageslots.cli.attending import attend
from pageslots.cli.ending import Ending
from pageslots.cli.options import CHROMIUM, PATH, PLAIN, check_writable
from pageslots.demo.command import DemoOptions, run_demo

DEFAULT_OUTPUT = Path("pageslots-demo")

HELP = """Serve a small shop with three country sites on this machine, and crawl it.

Nothing leaves the machine. The manifests are written into the output, to read and to change. Each
demo starts over.

\b
Examples:
  pageslots demo
  pageslots demo --failures     ten requests that fail, each in its own way
  pageslots results sg-today --output pageslots-demo
"""


@click.command(help=HELP)
@click.option("--failures", is_flag=True, help="Crawl pages that go wrong, to see what is said then.")
@click.option(
    "--port-base",
    type=click.IntRange(1, 65_533),
    metavar="N",
    help="Port of the first site; the others follow [default: 18081, or others that are free].",
)
@click.option(
    "--output", "-o", type=PATH, default=DEFAULT_OUTPUT, metavar="DIR", help="[default: ./pageslots-demo]"
)
@CHROMIUM
@PLAIN
def demo(
    failures: bool,  # noqa: FBT001 - click's way of calling
    port_base: int | None,
    output: Path,
    chromium: str,
    plain: bool | None,  # noqa: FBT001
) -> int:
    """Serve the shop and crawl it."""
    check_writable(output, None)
    options = DemoOptions(output, failures=failures, port_base=port_base, chromium=chromium)
    again: Sequence[str] = ()  # it would start over
    return attend(lambda view: run_demo(options, view), Ending(output, again), plain=plain)
