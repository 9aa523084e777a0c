"""The command line's entry: finds the command, and turns what goes wrong into a sentence and an exit code.

0 all succeeded · 1 some did not · 2 unusable input, nothing was started · 70 a fault of this program ·
130 interrupted · 141 nobody reads the output any more.
"""

import importlib
import os
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType

import click

import pageslots
from pageslots.cli.problems import UsageProblem

USAGE, FAULT, INTERRUPTED, PIPE_CLOSED = 2, 70, 130, 141
COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        "run": "Run manifests on this machine.",
        "crawl": "Crawl URLs without writing a manifest.",
        "check": "Check manifests: every error at once.",
        "results": "Show what a request has found.",
        "simulate": "Ask how many slots and browsers a workload needs.",
        "demo": "Serve a small shop on this machine and crawl it.",
        "crds": "Print the definitions of the kinds for a cluster.",
        "browser": "Say which browser would be used.",
    }
)
"""Each one is the function of its name in the module of its name, imported when it is asked for."""
WINDOWS = "pageslots needs Linux or macOS: on Windows, run it inside WSL2 (wsl --install)."


class Commands(click.Group):
    """The commands, imported one at a time: `--help` takes no second."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """In the order in which people meet them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one."""
        if cmd_name not in COMMANDS:
            return None
        found = getattr(importlib.import_module(f"pageslots.cli.{cmd_name}"), cmd_name)
        assert isinstance(found, click.Command)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Say what was probably meant."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            close = get_close_matches(args[0], COMMANDS, n=1)
            hint = f'did you mean "{close[0]}"?' if close else f"there are {', '.join(COMMANDS)}."
            raise click.UsageError(f'no command "{args[0]}"; {hint}', ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The list of commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


HELP = """Crawl with a pool of web browsers: fair between countries, polite to sites, never over its cap.

\b
First steps:
  pageslots demo                                  a shop on this machine, crawled
  pageslots crawl https://example.com --extract title=h1
  pageslots run pool.yaml requests.yaml           what the manifests say
"""


@click.group(cls=Commands, help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(pageslots.__version__, prog_name="pageslots", message="%(prog)s %(version)s")
def commands() -> None:
    """The group itself does nothing."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    if os.name == "nt":
        print(WINDOWS, file=sys.stderr)
        return USAGE
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without UTF-8 shows "?", and nothing fails
    try:
        code = commands.main(args=arguments, prog_name="pageslots", standalone_mode=False)
        sys.stdout.flush()
    except SystemExit:  # click's answer to a closed pipe, and to nothing else in this mode
        return PIPE_CLOSED
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last one who can tell
        return _told(error)
    return code if isinstance(code, int) else 0


def _told(error: BaseException) -> int:
    """Say what went wrong, in words for whom it concerns; returns the exit code."""
    code = FAULT
    match error:
        case click.ClickException():
            error.show()
            code = error.exit_code
        case UsageProblem():
            print(*error.sentences, sep="\n", file=sys.stderr)
            code = USAGE
        case KeyboardInterrupt() | click.Abort():
            code = INTERRUPTED
        case BrokenPipeError():
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the interpreter's last flush
            code = PIPE_CLOSED
        case _:
            print(_fault(error), file=sys.stderr)
    return code


def _fault(error: BaseException) -> str:
    """Keep the traceback in a file; a sentence says where."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    first = (str(error).splitlines() or [""])[0][:300]
    with tempfile.NamedTemporaryFile(
        "w", prefix="pageslots-fault-", suffix=".log", delete=False, encoding="utf-8"
    ) as log:
        log.write(f"pageslots {pageslots.__version__}, Python {sys.version}\n{' '.join(sys.argv)}\n\n")
        traceback.print_exception(error, file=log)
    return f"pageslots failed unexpectedly: {type(error).__name__}: {first}. The traceback is in {log.name}"
