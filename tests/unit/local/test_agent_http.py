"""The agent's client: two kinds of error, bounded in time and size, and no word of another pod."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from aiohttp import web

from pageslots.control.agent_http import HttpAgentClient, agent_session
from pageslots.control.ports import AgentRefusedError, AgentUnreachableError
from pageslots.wire import (
    MAX_BODY_BYTES,
    TOKEN_HEADER,
    AgentStatus,
    AttemptReport,
    AttemptSpec,
    AttemptState,
    DrainOrder,
    Phase,
    Refusal,
    RefusalCode,
    StopOrder,
    StopReason,
)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
STATUS = AgentStatus(rev=7, pod_uid="pod-1", phase=Phase.READY)
REPORT = AttemptReport(id="r-1", request_uid="r", state=AttemptState.RUNNING)
SPEC = AttemptSpec(
    id="r-1",
    number=1,
    request="default/crawl",
    request_uid="r",
    pod_uid="pod-1",
    epoch=3,
    country="SG",
    site="shop.example",
)


def answers(body: bytes, status: int = 200) -> Handler:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(body=body, status=status)

    return handler


def refuses(code: RefusalCode, status: int = 409) -> Handler:
    return answers(Refusal(code, "no").to_json(), status)


def ask(
    handler: Handler,
    call: Callable[[HttpAgentClient], Awaitable[object]],
    *,
    pod_uid: str = "pod-1",
    call_seconds: float = 10,
) -> object:
    """What `call` gives when the agent answers with `handler`."""

    async def main() -> object:
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_route("*", "/{path:.*}", handler)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        try:
            async with agent_session() as session:
                client = HttpAgentClient(
                    session,
                    pod="default/shop-browser-0",
                    pod_uid=pod_uid,
                    token="secret",
                    address=lambda: f"http://{host}:{port}",
                    call_seconds=call_seconds,
                )
                return await call(client)
        finally:
            await runner.cleanup()

    return asyncio.run(main())


def status(client: HttpAgentClient) -> Awaitable[AgentStatus]:
    return client.status(after=3, wait_seconds=0.5)


def test_every_call_uses_its_route_and_carries_the_token():
    seen: list[tuple[str, str, str]] = []

    async def agent(request: web.Request) -> web.Response:
        assert request.headers[TOKEN_HEADER] == "secret"
        seen.append((request.method, request.path_qs, (await request.read()).decode()))
        if request.path.endswith("/records"):
            return web.Response(body=b'{"a":1}\n')
        if request.method == "DELETE":
            return web.Response(status=204)
        body = REPORT if "/attempts/" in request.path else STATUS
        return web.Response(body=body.to_json())

    stop = StopOrder(reason=StopReason.STOPPED, epoch=3, pod_uid="pod-1")
    drain = DrainOrder(epoch=3, pod_uid="pod-1")

    async def all_calls(client: HttpAgentClient) -> list[object]:
        return [
            await client.status(after=3, wait_seconds=0.5),
            await client.put_attempt(SPEC),
            await client.acknowledge("r-1"),
            await client.stop("r-1", stop),
            await client.drain(drain),
            await client.records("r-1", offset=4),
        ]

    assert ask(agent, all_calls) == [STATUS, REPORT, None, REPORT, STATUS, b'{"a":1}\n']
    assert seen == [
        ("GET", "/v1/status?after=3&wait=0.5", ""),
        ("PUT", "/v1/attempts/r-1", SPEC.to_json().decode()),
        ("DELETE", "/v1/attempts/r-1", ""),
        ("POST", "/v1/attempts/r-1/stop", stop.to_json().decode()),
        ("POST", "/v1/drain", drain.to_json().decode()),
        ("GET", "/v1/attempts/r-1/records?offset=4", ""),
    ]


@pytest.mark.parametrize(
    ("code", "http"),
    [
        (RefusalCode.BUSY, 409),
        (RefusalCode.OLD_EPOCH, 409),
        (RefusalCode.NOT_READY, 409),
        (RefusalCode.DRAINED, 410),
        (RefusalCode.BAD_REQUEST, 422),
        (RefusalCode.NO_SUCH_ATTEMPT, 404),
    ],
)
def test_a_refusal_keeps_its_code(code: RefusalCode, http: int):
    with pytest.raises(AgentRefusedError) as refused:
        ask(refuses(code, http), lambda client: client.put_attempt(SPEC))
    assert refused.value.refusal.code is code


def test_acknowledging_an_unknown_attempt_is_fine():
    assert ask(refuses(RefusalCode.NO_SUCH_ATTEMPT, 404), lambda client: client.acknowledge("x")) is None
    with pytest.raises(AgentRefusedError):
        ask(refuses(RefusalCode.BUSY), lambda client: client.acknowledge("x"))


def test_what_another_pod_says_is_no_answer():
    """Case D12: the port, or the pod's name, belongs to another pod by now."""
    other = replace(STATUS, pod_uid="pod-2").to_json()
    for handler, call in (
        (answers(other), status),
        (answers(other), lambda client: client.drain(DrainOrder(epoch=1, pod_uid="pod-1"))),
        (refuses(RefusalCode.OTHER_POD), lambda client: client.put_attempt(SPEC)),
        (refuses(RefusalCode.UNAUTHORISED, 401), status),
        (answers(replace(REPORT, id="r-2").to_json()), lambda client: client.put_attempt(SPEC)),
    ):
        with pytest.raises(AgentUnreachableError, match="agent of default/shop-browser-0"):
            ask(handler, call)


def test_a_call_meant_for_another_pod_is_refused_and_not_called_unreachable():
    """Then it is the caller who mixes pods up."""
    with pytest.raises(AgentRefusedError):
        ask(refuses(RefusalCode.OTHER_POD), lambda client: client.put_attempt(SPEC), pod_uid="pod-9")


@pytest.mark.parametrize(
    "handler",
    [
        answers(b"<html>", 200),
        answers(b'{"rev": "seven"}', 200),
        answers(b"oops", 500),
        answers(b'{"code":"Weird","message":""}', 409),
        answers(b"", 302),
        answers(b"x" * (MAX_BODY_BYTES + 1), 200),
    ],
    ids=["no JSON", "wrong type", "500", "unknown refusal", "redirect", "too large"],
)
def test_an_answer_that_makes_no_sense_is_no_answer(handler: Handler):
    with pytest.raises(AgentUnreachableError):
        ask(handler, status)


def test_an_agent_that_never_answers_costs_the_deadline_and_no_more():
    async def never(_: web.Request) -> web.Response:
        await asyncio.sleep(3600)
        raise AssertionError

    with pytest.raises(AgentUnreachableError, match=r"no answer to POST /v1/drain within 0\.2 s"):
        ask(never, lambda client: client.drain(DrainOrder(epoch=1, pod_uid="pod-1")), call_seconds=0.2)


def test_an_answer_that_drips_for_ever_costs_the_deadline_and_no_more():
    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.05)

    with pytest.raises(AgentUnreachableError, match="within"):
        ask(drip, lambda client: client.records("r-1", offset=0), call_seconds=0.3)


def test_a_long_poll_may_take_its_wait_and_the_deadline():
    async def late(_: web.Request) -> web.Response:
        await asyncio.sleep(0.4)
        return web.Response(body=STATUS.to_json())

    assert ask(late, status, call_seconds=0.3) == STATUS
    with pytest.raises(AgentUnreachableError):
        ask(late, lambda client: client.status(after=0, wait_seconds=0), call_seconds=0.3)


def test_records_beyond_the_bound_are_cut_at_a_whole_line():
    line = json.dumps({"text": "x" * 1000}).encode() + b"\n"
    body = ask(answers(line * 9_000), lambda client: client.records("r-1", offset=0))

    assert isinstance(body, bytes)
    assert MAX_BODY_BYTES - len(line) < len(body) <= MAX_BODY_BYTES
    assert body == line * (len(body) // len(line))


def test_nobody_listening_is_no_answer():
    async def main() -> None:
        async with agent_session() as session:
            for address in ("http://127.0.0.1:9", None):
                client = HttpAgentClient(
                    session, pod="p", pod_uid="u", token="t", address=lambda address=address: address
                )
                with pytest.raises(AgentUnreachableError):
                    await client.status(after=0, wait_seconds=0)

    asyncio.run(main())
