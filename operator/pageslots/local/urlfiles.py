"""A look into a `urlsFrom` file: its first URL (for the site) and how many rows it has (for parallel requests).

The agent is the one that reads such a file whole; here a few rows are enough.
"""

import csv
import json
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from urllib.parse import unquote, urlsplit


def path_of(uri: str) -> Path:
    """The file that a path or a file: URI names; ValueError for another scheme."""
    parts = urlsplit(uri)
    if parts.scheme in ("", "file"):
        return Path(unquote(parts.path) if parts.scheme else uri)
    raise ValueError(f"{uri}: only files can be read on one machine, not {parts.scheme}:")


def _rows(path: Path) -> Iterator[str]:
    """The `url` of every row of a CSV or JSON Lines file; rows without one are left out."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        if path.suffix.lower() == ".csv":
            for row in csv.DictReader(file):
                yield (row.get("url") or "").strip()
            return
        for line in file:
            try:
                decoded = json.loads(line) if line.strip() else {}
            except ValueError:
                continue  # the agent records the bad row
            yield str(decoded.get("url") or "") if isinstance(decoded, dict) else ""


@lru_cache(maxsize=1_000)
def first_url(uri: str) -> str | None:
    """The first URL of the file; None when there is none to be read."""
    try:
        return next((url for url in _rows(path_of(uri)) if url), None)
    except (OSError, ValueError):
        return None


def row_count(uri: str, limit: int) -> int | None:
    """How many rows have a URL, counted up to `limit`; None when the file can't be read."""
    try:
        return sum(1 for _ in islice((url for url in _rows(path_of(uri)) if url), limit))
    except (OSError, ValueError):
        return None
