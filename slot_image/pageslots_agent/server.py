"""The agent's HTTP routes (DESIGN section 8, `wire`): reads messages, asks the slot, writes messages."""

import hmac
import re
import time
from collections.abc import Callable

from pageslots.wire import (
    TOKEN_HEADER,
    AttemptSpec,
    DrainOrder,
    Message,
    Phase,
    Refusal,
    RefusalCode,
    StopOrder,
    WireError,
)
from pageslots_agent.arbiter import RefusedError
from pageslots_agent.http11 import Request, Response
from pageslots_agent.logs import warn
from pageslots_agent.ports import PageUnreadableError
from pageslots_agent.slot import Slot

MAX_WAIT_SECONDS = 60.0
_OPEN_PATHS = frozenset({"/livez", "/readyz", "/metrics"})
"""A kubelet and a scraper have no token; what these tell is no secret inside the network policy."""

_ATTEMPT = re.compile(r"/v1/attempts/([A-Za-z0-9][A-Za-z0-9._-]{0,127})(/stop|/records)?\Z")


class Routes:
    """`handle` is the HTTP server's handler."""

    def __init__(self, slot: Slot, *, token: str, metrics: Callable[[], bytes]) -> None:
        self._slot = slot
        self._token = token.encode()
        self._metrics = metrics
        self.last_contact = time.monotonic()
        """When somebody with the token last asked: an agent that nobody asks ends (DESIGN section 8)."""

    async def handle(self, request: Request) -> Response:
        """Answer one request; raises nothing but CancelledError."""
        try:
            if request.path not in _OPEN_PATHS:
                self._check_token(request)
            return await self._route(request)
        except RefusedError as refused:
            return _answer(refused.refusal, refused.status)
        except WireError as error:
            return _answer(Refusal(RefusalCode.BAD_REQUEST, str(error)), 422)
        except PageUnreadableError as error:
            return _answer(Refusal(RefusalCode.NOT_READY, str(error)), 409)
        except Exception as error:  # noqa: BLE001 -- one request must not end the agent
            warn("http.failed", exc_info=True, method=request.method, path=request.path)
            message = f"the agent failed: {type(error).__name__}; its log tells more"
            return Response(500, message.encode(), "text/plain")

    def _check_token(self, request: Request) -> None:
        given = request.headers.get(TOKEN_HEADER.lower(), "").encode("latin-1")
        if not self._token or not hmac.compare_digest(given, self._token):
            raise RefusedError(
                401, RefusalCode.UNAUTHORISED, f"the header {TOKEN_HEADER} is missing or wrong"
            )
        self.last_contact = time.monotonic()

    async def _route(self, request: Request) -> Response:
        slot = self._slot
        match request.method, request.path:
            case "GET", "/livez":
                answer = _probe(await slot.alive(), "the browser does not answer")
            case "GET", "/readyz":
                answer = _probe(slot.phase is Phase.READY, f"the slot is {slot.phase}")
            case "GET", "/metrics":
                answer = Response(200, self._metrics(), "text/plain; version=0.0.4")
            case "GET", "/v1/status":
                seconds = max(0.0, min(_number(request, "wait"), MAX_WAIT_SECONDS))
                answer = _answer(await slot.status_after(int(_number(request, "after", -1)), seconds=seconds))
            case "GET", "/v1/screenshot":
                answer = Response(200, await slot.screenshot(), "image/png")
            case "POST", "/v1/drain":
                answer = _answer(slot.drain(DrainOrder.from_json(request.body)))
            case _, path if (found := _ATTEMPT.match(path)) is not None:
                answer = self._attempt(request, found.group(1), found.group(2) or "")
            case method, path:
                answer = _answer(Refusal(RefusalCode.BAD_REQUEST, f"no route {method} {path}"), 404)
        return answer

    def _attempt(self, request: Request, attempt_id: str, action: str) -> Response:
        slot = self._slot
        match request.method, action:
            case "PUT", "":
                spec = AttemptSpec.from_json(request.body)
                if spec.id != attempt_id:
                    raise WireError(f"AttemptSpec.id: {spec.id!r} is not the id in the path, {attempt_id!r}")
                return _answer(slot.admit(spec))
            case "GET", "":
                return _answer(slot.report(attempt_id))
            case "DELETE", "":
                slot.acknowledge(attempt_id)
                return Response(204)
            case "POST", "/stop":
                return _answer(slot.stop(attempt_id, StopOrder.from_json(request.body)))
            case "GET", "/records":
                body = slot.records(attempt_id, int(_number(request, "offset")))
                return Response(200, body, "application/jsonl")
            case _:
                message = f"{request.method} is not for {request.path}"
                return _answer(Refusal(RefusalCode.BAD_REQUEST, message), 405)


def _answer(message: Message, status: int = 200) -> Response:
    return Response(status, message.to_json())


def _probe(ok: bool, why: str) -> Response:  # noqa: FBT001 -- its meaning stands at the call
    return Response(200, b"ok", "text/plain") if ok else Response(503, why.encode(), "text/plain")


def _number(request: Request, name: str, default: float = 0.0) -> float:
    text = request.query.get(name)
    if text is None:
        return default
    try:
        number = float(text)
    except ValueError:
        raise WireError(f"query parameter {name}: {text!r} is not a number") from None
    if not -1 <= number <= 2**53:
        raise WireError(f"query parameter {name}: {text} is out of range")
    return number
