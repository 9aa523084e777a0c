"""The states of a run's requests, read beside the run itself or after it."""

import sqlite3
from contextlib import closing
from pathlib import Path

from pageslots.api import CrawlRequest
from pageslots.control import request_status
from pageslots.control.ports import Kind
from pageslots.local.storefile import APPLICATION_ID, FORMAT

WAIT_SECONDS = 5.0


def peek_requests(state_file: Path) -> dict[str, CrawlRequest]:
    """The requests that the store knows, by name; none when there is no readable store of this version.

    Takes no lock and writes nothing: what is read is what the last transaction left.
    """
    if not state_file.is_file():
        return {}
    uri = f"{state_file.resolve().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=WAIT_SECONDS)) as connection:
            [[application]] = connection.execute("PRAGMA application_id")
            [[version]] = connection.execute("PRAGMA user_version")
            if (application, version) != (APPLICATION_ID, FORMAT):
                return {}
            rows = connection.execute(
                "SELECT body FROM objects WHERE kind = ?", (Kind.REQUEST.value,)
            ).fetchall()
    except sqlite3.Error:  # damaged, or in a folder of somebody else: `run` is who complains about that
        return {}
    requests = (CrawlRequest.model_validate_json(body) for [body] in rows)
    return {request.name: request for request in requests}


def told_state(request: CrawlRequest) -> str:
    """`Failed: Blocked: HTTP 403 …`, `Queued`, `Succeeded`."""
    status = request.status
    condition = request_status.condition_of(request, "Finished")
    if condition is None or not status.is_finished or status.state.value == "Succeeded":
        return status.state.value
    return ": ".join(part for part in (status.state.value, str(condition.reason), condition.message) if part)
