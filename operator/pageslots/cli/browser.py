"""`pageslots browser`."""

import asyncio

import click

from pageslots.cli.problems import UsageProblem
from pageslots.local.browser import NoBrowserError, find_browser

HELP = """Say which browser would be used, or how to get one.

Looked for in this order: --chromium, PAGESLOTS_CHROMIUM, Playwright's own headless
shell, Debian's chromium-headless-shell, Chromium, Google Chrome.

\b
Examples:
  pageslots browser
  pageslots browser --chromium /opt/chrome/chrome
"""


@click.command(help=HELP)
@click.option("--chromium", default="", metavar="PATH", help="Try this one and no other.")
def browser(chromium: str) -> None:
    """Say which browser would be used, or how to get one."""
    try:
        found = asyncio.run(find_browser(chromium))
    except NoBrowserError as error:
        raise UsageProblem(str(error)) from None
    click.echo(f"{found.path}  {found.kind} {found.version}")
