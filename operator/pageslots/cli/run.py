"""`pageslots run`."""

from collections.abc import Sequence
from pathlib import Path

import click

from pageslots.cli.attending import attend, run_manifests
from pageslots.cli.ending import Ending
from pageslots.cli.manifests import STDIN, load
from pageslots.cli.options import (
    CHROMIUM,
    DEFAULT_OUTPUT,
    FRESH,
    LOG,
    OUTPUT,
    PLAIN,
    SECRETS,
    check_writable,
    same_command,
)
from pageslots.local.session import RunOptions

HELP = """Run manifests on this machine until no request is unfinished.

FILE is a manifest in YAML or JSON, a folder of them, or - for standard input. Without a
PageSlotPool in the files there is a built-in one, which fetches pages from your own address.

Ctrl-C saves the places of what is running; the same command goes on from there, and skips what
has finished.

\b
Examples:
  pageslots run pool.yaml requests.yaml
  pageslots run manifests/ --output results --fresh
  pageslots run crawl.yaml --plain | tee crawl.txt

Exit codes: 0 all requests succeeded, 1 some did not, 2 unusable input and nothing was started,
130 after Ctrl-C.
"""


@click.command(help=HELP)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@OUTPUT
@FRESH
@CHROMIUM
@SECRETS
@LOG
@PLAIN
def run(
    files: Sequence[str],
    output: Path | None,
    fresh: bool,  # noqa: FBT001 - click's way of calling
    chromium: str,
    secrets: Path | None,
    log: Path | None,
    plain: bool | None,  # noqa: FBT001
) -> int:
    """Run manifests on this machine until no request is unfinished."""
    loaded = load(files)
    options = RunOptions(
        output=output or DEFAULT_OUTPUT,
        output_given=output is not None,
        fresh=fresh,
        chromium=chromium,
        secrets=secrets,
        log=log,
    )
    check_writable(options.output, log)
    again = same_command("run", *files, output=output, chromium=chromium, secrets=secrets, log=log)
    if STDIN in files:
        again = []  # what came through a pipe can't be read again
    return attend(run_manifests(loaded, options), Ending(options.output, again), plain=plain)
