"""`pageslots crds`."""

from pathlib import Path

import click

from pageslots.api import render_crds
from pageslots.cli.options import PATH
from pageslots.cli.problems import UsageProblem

HELP = """Print the CustomResourceDefinitions of the kinds as YAML.

\b
Examples:
  pageslots crds | kubectl apply --server-side -f -
  pageslots crds --output crds
"""


@click.command(help=HELP)
@click.option("--output", "-o", type=PATH, metavar="DIR", help="Write one file for each kind into DIR.")
def crds(output: Path | None) -> None:
    """Print the CustomResourceDefinitions of the kinds as YAML."""
    definitions = render_crds()
    if output is None:
        click.echo("---\n".join(definitions.values()), nl=False)
        return
    try:
        output.mkdir(parents=True, exist_ok=True)
        for name, text in definitions.items():
            (output / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageProblem(f"{error.filename or output}: {error.strerror}") from None
    click.echo(f"wrote {', '.join(definitions)} into {output}")
