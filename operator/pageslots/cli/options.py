"""Options that several commands share."""

import os
from pathlib import Path

import click

from pageslots.cli.problems import UsageProblem

DEFAULT_OUTPUT = Path("pageslots-output")
PATH = click.Path(path_type=Path)

OUTPUT = click.option(
    "--output",
    "-o",
    type=PATH,
    metavar="DIR",
    help="Folder for results and for the state of the run [default: ./pageslots-output].",
)
FRESH = click.option("--fresh", is_flag=True, help="Start over: forget what earlier runs left in the output.")
CHROMIUM = click.option(
    "--chromium", default="", metavar="PATH", help="The browser to use [default: the first that is found]."
)
SECRETS = click.option(
    "--secrets",
    type=PATH,
    metavar="DIR",
    help="Folder with NAME/username and NAME/password for the proxies [default: ./secrets].",
)
LOG = click.option(
    "--log",
    type=PATH,
    metavar="FILE",
    help="Every decision as a line of JSON [default: .pageslots/run.log in the output].",
)
PLAIN = click.option(
    "--plain/--no-plain",
    default=None,
    help="Plain lines, or a live table [default: the table on a terminal].",
)


def check_writable(output: Path, log: Path | None) -> None:
    """Raise UsageProblem when results or the log can't be written; the folder exists afterwards."""
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageProblem(f"{output}: {error.strerror}: choose another folder with --output") from None
    if not os.access(output, os.W_OK | os.X_OK):
        raise UsageProblem(f"{output} is not writable: choose another folder with --output")
    if log is not None:
        try:
            log.open("a").close()
        except OSError as error:
            raise UsageProblem(f"{log}: {error.strerror}: choose another file with --log") from None


def same_command(name: str, *words: str, **given: object) -> list[str]:
    """The command line that asks for the same again: options that were given, `--fresh` left out."""
    line = ["pageslots", name, *words]
    for option, value in given.items():
        if value is True:
            line.append(f"--{option.replace('_', '-')}")
        elif value:
            line += [f"--{option.replace('_', '-')}", str(value)]
    return line
