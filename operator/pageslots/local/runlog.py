"""The run's log: one JSON line per decision, for whoever wants to know later why something happened."""

from collections.abc import Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import Self

import structlog

MAX_BYTES = 16 * 1024 * 1024
"""A log that is longer when a run begins is put aside as `<name>.1`."""


class RunLog:
    """An open log file."""

    def __init__(self, file: TextIOWrapper) -> None:
        self._file = file
        self._logger = structlog.wrap_logger(
            structlog.WriteLogger(file),
            processors=[
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(default=str),
            ],
            wrapper_class=structlog.BoundLogger,
        )

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open for appending; OSError when that is impossible."""
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > MAX_BYTES:
            path.replace(path.with_name(path.name + ".1"))
        return cls(path.open("a", encoding="utf-8"))

    def write(self, level: str, name: str, fields: Mapping[str, object]) -> None:
        """One line."""
        self._logger.msg(
            name, level=level, **{key: value for key, value in fields.items() if value not in (None, "")}
        )

    def close(self) -> None:
        """Let the file go."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
