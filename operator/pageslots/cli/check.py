"""`pageslots check`."""

from collections import Counter
from collections.abc import Sequence

import click

from pageslots.api import CrawlRequest, LoadedManifests
from pageslots.cli.manifests import load
from pageslots.cli.words import count

HELP = """Check manifests: every error at once, with file, line and field.

FILE is a manifest in YAML or JSON, a folder of them, or - for standard input.

\b
Examples:
  pageslots check crawl.yaml
  pageslots check manifests/
  kubectl get crawlrequests -o yaml | pageslots check -

Exit codes: 0 usable, 2 not.
"""


@click.command(help=HELP)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
def check(files: Sequence[str]) -> None:
    """Check manifests: every error at once, with file, line and field."""
    click.echo(summary(load(files)))


def summary(loaded: LoadedManifests) -> str:
    """What is in the files, in one line."""
    files = len({entry.file for entry in loaded.objects})
    parts = [f"{count(files, 'file')} in order"]
    if loaded.pools:
        pools = "; ".join(
            f"{pool.name}: {', '.join(country.code for country in pool.spec.countries)}"
            for pool in loaded.pools
        )
        parts.append(f"{count(len(loaded.pools), 'pool')} ({pools})")
    if loaded.requests:
        parts.append(f"{count(len(loaded.requests), 'request')} ({_by_country(loaded.requests)})")
        parts.append(_starts(loaded.requests))
    return ", ".join(parts)


def _by_country(requests: Sequence[CrawlRequest]) -> str:
    numbers = Counter(request.spec.country for request in requests)
    return ", ".join(f"{code} {number}" for code, number in sorted(numbers.items()))


def _starts(requests: Sequence[CrawlRequest]) -> str:
    urls = sum(len(request.spec.start_urls or ()) for request in requests)
    files = sum(request.spec.urls_from is not None for request in requests)
    text = count(urls, "start URL")
    return text + (f" and {count(files, 'file')} of URLs" if files else "")
