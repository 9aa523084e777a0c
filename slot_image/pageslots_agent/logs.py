"""One log line per decision: an event's stable name, then its fields (`slot.ready country=SG seconds=1.4`).

Standard library only: the idle agent pays for every import with memory that all slots of a node need.
"""

import logging
import re
import sys
import time

_NAME = "pageslots_agent"
_PLAIN = re.compile(r"[^\s\"=\\]+\Z")
_MAX_VALUE = 500


def event(
    name: str, *, level: int = logging.INFO, exc_info: bool | BaseException = False, **fields: object
) -> None:
    """Write one line. Values with blanks or quotes are quoted; `None` is left out; long ones are cut."""
    logger = logging.getLogger(_NAME)
    if not logger.isEnabledFor(level):
        return
    words = [name, *(f"{key}={_shown(value)}" for key, value in fields.items() if value is not None)]
    logger.log(level, "%s", " ".join(words), exc_info=exc_info)


def warn(name: str, *, exc_info: bool | BaseException = False, **fields: object) -> None:
    """An event that a person should look at."""
    event(name, level=logging.WARNING, exc_info=exc_info, **fields)


def set_up(*, country: str, slot: str) -> None:
    """Send events to stderr, stamped with time (UTC), level and the slot they are about."""
    handler = logging.StreamHandler(sys.stderr)
    formatter = _UtcFormatter(
        f"%(asctime)s.%(msecs)03dZ %(levelname)s %(message)s country={_shown(country)} slot={_shown(slot)}",
        datefmt="%Y-%m-%dT%H:%M:%S",
    )
    handler.setFormatter(formatter)
    logger = logging.getLogger(_NAME)
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False


class _UtcFormatter(logging.Formatter):
    converter = staticmethod(time.gmtime)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    text = str(value)
    if len(text) > _MAX_VALUE:
        text = text[: _MAX_VALUE - 1] + "…"
    if _PLAIN.match(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
