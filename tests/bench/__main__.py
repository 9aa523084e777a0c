"""`python -m tests.bench [NAME…] [--json FILE]`: run benchmarks, each in a process of its own.

A name is that of a module `bench_<name>` here; without names all of them run, one after the other. Exit
status: 0 when all ran (a goal that is missed is shown, not punished: the machine may be busy; `--strict`
gives 1 for it), 1 when one did not run, 2 for a name that is not known.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from tests.bench.report import Measured, show, write_json

BENCH_SECONDS = 1_200.0
"""No benchmark takes longer; one that hangs is ended."""
_PREFIX = "bench_"


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for; returns the exit status."""
    known = names()
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measure, beside the goals.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(known)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything there")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a goal is missed")
    parser.add_argument("--child", metavar="FILE", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if unknown := sorted(set(chosen.names) - set(known)):
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    if chosen.child:
        [name] = chosen.names
        Path(chosen.child).write_text(json.dumps(importlib.import_module(_module(name)).main()))
        return 0
    measured = []
    for name in chosen.names or known:
        print(f"{name} …", file=sys.stderr, flush=True)
        measured.append(_measure(name))
        if chosen.json is not None:
            write_json(chosen.json, measured)
    show(Console(width=None if sys.stdout.isatty() else 160), measured)
    missed = any(row["ok"] is False for one in measured for row in one["rows"])
    return 1 if any("error" in one for one in measured) or (chosen.strict and missed) else 0


def names() -> list[str]:
    """The benchmarks there are, in the order in which they run."""
    return sorted(path.stem.removeprefix(_PREFIX) for path in Path(__file__).parent.glob(f"{_PREFIX}*.py"))


def _module(name: str) -> str:
    return f"tests.bench.{_PREFIX}{name}"


def _measure(name: str) -> Measured:
    """Run one in a process of its own, so that none warms up or fills the memory of the next."""
    root = Path(__file__).parents[2]
    before, began = os.getloadavg()[0], time.monotonic()
    with tempfile.TemporaryDirectory(prefix="pageslots-bench-") as folder:
        result = Path(folder) / "rows.json"
        command = [sys.executable, "-m", "tests.bench", name, "--child", str(result)]
        error = ""
        try:
            status = subprocess.run(command, cwd=root, timeout=BENCH_SECONDS, check=False).returncode
            error = f"exit status {status}" if status else ""
        except subprocess.TimeoutExpired:
            error = f"not done within {BENCH_SECONDS:.0f} s"
        rows = [] if error else json.loads(result.read_text())
    seconds, after = time.monotonic() - began, os.getloadavg()[0]
    one: Measured = {"benchmark": name, "rows": rows, "seconds": seconds, "load": (before, after)}
    if error:
        one["error"] = error
    return one


if __name__ == "__main__":
    sys.exit(main())
