"""`pageslots crawl`."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console

from pageslots.cli.attending import attend, run_manifests
from pageslots.cli.ending import Ending
from pageslots.cli.making import Wanted, as_yaml, load_made
from pageslots.cli.options import CHROMIUM, DEFAULT_OUTPUT, FRESH, OUTPUT, PLAIN, check_writable
from pageslots.cli.reading import open_results, results_in
from pageslots.cli.results import show
from pageslots.local.session import RunOptions, RunResult

SHOWN_RECORDS = 10

HELP = """Crawl URLs without writing a manifest: it is made from the options, and run.

Fields are extracted by CSS selectors (--extract) or XPath (--xpath), written name=selector; with
name@attribute=selector the attribute is taken and not the text. --print shows the manifests: the
next step from here.

\b
Examples:
  pageslots crawl https://example.com --extract title=h1
  pageslots crawl https://example.com/shop --follow prefix --max-pages 200 \\
      --extract name=h1 --extract image@src='img.main' --country SG
  pageslots crawl http://127.0.0.1:8000/ --allow-private --capture text
  pageslots crawl https://example.com --follow host --print > crawl.yaml
"""


@click.command(help=HELP)
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@click.option(
    "--country",
    "countries",
    multiple=True,
    metavar="SG",
    help="Locale and time zone of this country [default: your locale's]. Several: the same crawl for each.",
)
@click.option("--extract", "css", multiple=True, metavar="NAME=CSS", help="A field of each record.")
@click.option("--xpath", multiple=True, metavar="NAME=XPATH", help="A field of each record.")
@click.option(
    "--follow",
    type=click.Choice(["page", "prefix", "host", "domain"]),
    help="Follow links below the start URL's folder, on its host, or on its domain [default: none].",
)
@click.option(
    "--include", multiple=True, metavar="PATTERN", help="Follow only links like this: '*/product/*'."
)
@click.option("--max-pages", type=click.IntRange(1), metavar="N", help="[default: 1000 with --follow]")
@click.option(
    "--capture",
    multiple=True,
    type=click.Choice(["text", "html", "links", "screenshot"]),
    help="Keep this of each page, too; may be repeated.",
)
@click.option("--wait-for", metavar="CSS", help="Read a page only when this is on it (10 s at most).")
@click.option(
    "--parallel",
    type=click.IntRange(1, 1000),
    default=1,
    metavar="N",
    help="Browsers for each country [default: 1].",
)
@click.option("--allow-private", is_flag=True, help="Pages of private and loopback addresses may be loaded.")
@click.option(
    "--name", default="", metavar="NAME", help="The request's name [default: from host and options]."
)
@click.option("--print", "only_print", is_flag=True, help="Print the manifests; crawl nothing.")
@OUTPUT
@FRESH
@CHROMIUM
@PLAIN
def crawl(
    urls: Sequence[str],
    countries: Sequence[str],
    css: Sequence[str],
    xpath: Sequence[str],
    follow: str | None,
    include: Sequence[str],
    max_pages: int | None,
    capture: Sequence[str],
    wait_for: str | None,
    parallel: int,
    allow_private: bool,  # noqa: FBT001 - click's way of calling
    name: str,
    only_print: bool,  # noqa: FBT001
    output: Path | None,
    fresh: bool,  # noqa: FBT001
    chromium: str,
    plain: bool | None,  # noqa: FBT001
) -> int:
    """Crawl URLs without writing a manifest."""
    wanted = Wanted(
        urls=[url if "://" in url else f"https://{url}" for url in urls],
        countries=countries,
        css=css,
        xpath=xpath,
        follow=follow,
        include=include,
        max_pages=max_pages,
        capture=capture,
        wait_for=wait_for,
        parallel=parallel,
        allow_private=allow_private,
        name=name,
    )
    loaded = load_made(wanted)
    if only_print:
        click.echo(as_yaml(wanted), nl=False)
        return 0
    options = RunOptions(
        output=output or DEFAULT_OUTPUT, output_given=output is not None, fresh=fresh, chromium=chromium
    )
    check_writable(options.output, None)
    again = ["pageslots", *(word for word in sys.argv[1:] if word != "--fresh")]
    ending = _EndingWithRecords(options.output, again)
    return attend(run_manifests(loaded, options), ending, plain=plain)


@dataclass(frozen=True, slots=True)
class _EndingWithRecords(Ending):
    """The first records, then what is said after every run."""

    def tell(self, result: RunResult, console: Console) -> None:
        """Write it."""
        for row in result.requests:
            folder = self.output / row.name
            if row.records and results_in(folder):
                console.print()
                show(open_results(folder), console, most=SHOWN_RECORDS)
        Ending.tell(self, result, console)
