"""The demo: serves the shop and runs its manifests, in one process."""

import asyncio
import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pageslots.api import load_manifests
from pageslots.demo.examples import write_examples
from pageslots.demo.shop import PORT_BASE, ShopSite
from pageslots.local.inputs import UnusableInputError
from pageslots.local.session import RunOptions, RunResult, RunView, run_local

OTHER_PORTS = range(PORT_BASE + 100, PORT_BASE + 1100, 100)
"""Tried in turn when the usual ports are taken and none were asked for."""


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What the command line says about the demo. `port_base` None: the usual ports, or others that are free."""

    output: Path
    failures: bool = False
    port_base: int | None = None
    chromium: str = ""


async def run_demo(options: DemoOptions, view: RunView) -> RunResult:
    """Serve the shop, crawl it from a fresh start, stop serving. Raises UnusableInputError."""
    async with _shop(options.port_base) as (shop, port_base):
        try:
            written = write_examples(options.output / "manifests", port_base=port_base)
        except OSError as error:
            raise UnusableInputError(
                [f"{error.filename}: {error.strerror}: choose another folder with --output"]
            ) from None
        wanted = ("pool.yaml", "failures.yaml" if options.failures else "shop.yaml")
        files = [path for path in written if path.name in wanted]
        view.notice(f"serving a shop for SG, DE and JP at {', '.join(map(shop.url, ('SG', 'DE', 'JP')))}")
        view.notice(f"running {' and '.join(path.name for path in files)} of {options.output / 'manifests'}")
        run = RunOptions(options.output, output_given=True, fresh=True, chromium=options.chromium)
        return await run_local(load_manifests(files), run, view)


@asynccontextmanager
async def _shop(port_base: int | None) -> AsyncIterator[tuple[ShopSite, int]]:
    """The shop on the ports asked for, or on the first free ones."""
    for base in [PORT_BASE, *OTHER_PORTS] if port_base is None else [port_base]:
        shop = ShopSite(port_base=base)
        try:
            await shop.__aenter__()
        except OSError as error:
            if error.errno == errno.EADDRINUSE and port_base is None:
                continue
            raise UnusableInputError([f"{error.strerror}: choose other ports with --port-base"]) from None
        try:
            yield shop, base
        finally:
            await asyncio.shield(shop.__aexit__(None, None, None))
        return
    raise UnusableInputError(
        [f"ports {PORT_BASE} to {OTHER_PORTS[-1]} are taken: choose others with --port-base"]
    )
