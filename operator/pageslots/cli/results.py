"""`pageslots results`."""

import sys
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from pageslots.cli.options import DEFAULT_OUTPUT, PATH
from pageslots.cli.problems import UsageProblem
from pageslots.cli.reading import Results, UnreadableError, names, open_results, results_in
from pageslots.cli.tabling import Columns, csv_lines, drawn
from pageslots.cli.words import count, harmless
from pageslots.local.peek import peek_requests, told_state

STATE = Path(".pageslots") / "state.sqlite"
TABLE_RECORDS = 1_000
"""A table's column widths need all of its rows at once; more than this nobody reads on a screen."""

HELP = """Show what a request has found.

NAME is a request of an earlier `pageslots run`, or a folder of results; without it, the requests
that have results are listed. Of a request that isn't finished, the records that are safe are shown.

\b
Examples:
  pageslots results
  pageslots results shop-sg
  pageslots results shop-sg --output results --format csv > shop-sg.csv
  pageslots results shop-sg --format jsonl | jq .data.price
"""


@click.command(help=HELP)
@click.argument("name", required=False, metavar="[NAME]")
@click.option(
    "--output",
    "-o",
    type=PATH,
    default=DEFAULT_OUTPUT,
    metavar="DIR",
    help="Where the run wrote to [default: ./pageslots-output].",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "jsonl"]),
    default="table",
    show_default=True,
    help="A table to look at, CSV, or the records as they are.",
)
def results(name: str | None, output: Path, form: str) -> None:
    """Show what a request has found."""
    try:
        if name is None:
            _list(output)
            return
        found = open_results(_folder(name, output))
        match form:
            case "jsonl":
                for line in found.lines():
                    sys.stdout.buffer.write(line)
            case "csv":
                for text in csv_lines(found.rows(), Columns.of(found.rows())):
                    click.echo(text, nl=False)
            case _:
                show(found, Console(highlight=False), most=TABLE_RECORDS)
    except UnreadableError as error:
        raise UsageProblem(str(error)) from None
    except FileNotFoundError as error:  # a run with --fresh at this moment
        raise UsageProblem(f"{error.filename} is gone: the results are being written anew") from None
    if remark := _remark(found):
        click.echo(remark, err=True)


def show(found: Results, console: Console, *, most: int) -> None:
    """Draw the first `most` records."""
    records = list(islice(found.rows(), most))
    if not records:
        console.print(Text(f"{found.name} has no records."))
        return
    console.print(drawn(records, Columns.of(records), console))
    if found.records > len(records):
        console.print(Text(f"and {found.records - len(records):,} more (--format csv or jsonl has them all)"))


def _folder(name: str, output: Path) -> Path:
    """The folder that was meant: a request, a child of one (`parent/child` or its name alone), or a path."""
    parents = [path for path in output.iterdir() if path.is_dir()] if output.is_dir() else []
    for path in (output / name, *(parent / name for parent in parents), Path(name)):
        if results_in(path):
            return path
    known = names(output)
    close = get_close_matches(name, known, n=3, cutoff=0.5)
    if close:
        raise UsageProblem(f'no results of "{name}" in {output}; did you mean {" or ".join(close)}?')
    if known:
        raise UsageProblem(f'no results of "{name}" in {output}; there are {", ".join(known[:20])}')
    raise UsageProblem(f"no results in {output}: give the folder of the run with --output")


def _remark(found: Results) -> str:
    """What a reader of these records should know about the request: that more may come, or that it failed."""
    parent = found.path.parent
    request = peek_requests(parent / STATE).get(found.name) or peek_requests(parent.parent / STATE).get(
        found.name
    )
    if request is None:
        return (
            ""
            if found.is_finished
            else f"{found.name} is not finished: {count(found.records, 'record')} so far"
        )
    if request.status.state.value == "Succeeded":
        return ""
    if not request.status.is_finished:
        return (
            f"{found.name} is not finished ({told_state(request)}): {count(found.records, 'record')} so far"
        )
    remark = f"{found.name} {harmless(told_state(request))}"
    captures = found.path / "captures"
    return f"{remark}\nPictures and texts of its pages are in {captures}" if captures.is_dir() else remark


def _list(output: Path) -> None:
    known = names(output)
    if not known:
        raise UsageProblem(f"no results in {output}: give the folder of the run with --output")
    wide = max(map(len, known))
    requests = peek_requests(output / STATE)
    for name in known:
        found = open_results(output / name)
        state = "Succeeded" if found.is_finished else "not finished"
        if name in requests:
            state = requests[name].status.state.value
        click.echo(f"{name:<{wide}}  {state:<12}  {count(found.records, 'record')}")
