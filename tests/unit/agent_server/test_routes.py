"""The agent's routes, on a slot without a browser."""

import contextlib

import pytest
from tests.fakes.vtime import run, until
from tests.unit.agent_server.slots import a_drain, a_slot, a_spec, a_stop, started

from pageslots.wire import (
    AgentStatus,
    AttemptReport,
    AttemptState,
    Phase,
    Refusal,
    RefusalCode,
    StopReason,
)
from pageslots_agent.http11 import Request
from pageslots_agent.metrics import exposition
from pageslots_agent.ports import LoadFault, PageUnreadableError
from pageslots_agent.server import Routes


@contextlib.asynccontextmanager
async def routes_of_a_slot(**config):
    async with a_slot(**config) as world:

        def metrics():
            return exposition(
                world.slot.status(),
                country="SG",
                outcomes=world.slot.outcomes,
                bytes_sent=10,
                bytes_received=20,
                browser_starts=1,
            )

        yield world, Routes(world.slot, token="secret", metrics=metrics)


async def ask(routes, method, target, body=b"", *, token="secret"):
    path, _, query = target.partition("?")
    parameters = dict(part.split("=") for part in query.split("&") if part)
    headers = {"x-pageslots-token": token} if token is not None else {}
    return await routes.handle(Request(method, path, parameters, headers, body))


@pytest.mark.parametrize("token", [None, "", "Secret", "secret ", "ünrecht"])
def test_nothing_is_told_without_the_token(token):
    async def scenario():
        async with routes_of_a_slot() as (world, routes):
            for method, path in [
                ("GET", "/v1/status"),
                ("PUT", "/v1/attempts/a"),
                ("POST", "/v1/drain"),
                ("GET", "/v1/screenshot"),
                ("GET", "/nowhere"),
            ]:
                answer = await ask(routes, method, path, a_spec("a").to_json(), token=token)
                assert answer.status == 401
                assert Refusal.from_json(answer.body).code is RefusalCode.UNAUTHORISED
            assert world.slot.phase is Phase.READY

    run(scenario())


def test_an_agent_without_a_token_lets_nobody_in():
    async def scenario():
        async with a_slot() as world:
            routes = Routes(world.slot, token="", metrics=bytes)
            assert (await ask(routes, "GET", "/v1/status", token="")).status == 401

    run(scenario())


def test_probes_and_metrics_need_no_token():
    async def scenario():
        async with routes_of_a_slot() as (world, routes):
            for path in ("/livez", "/readyz", "/metrics"):
                assert (await ask(routes, "GET", path, token=None)).status == 200
            world.browser.is_alive = False
            assert (await ask(routes, "GET", "/livez", token=None)).status == 503
            world.slot.admit(a_spec())
            answer = await ask(routes, "GET", "/readyz", token=None)
            assert (answer.status, answer.body) == (503, b"the slot is Running")

    run(scenario())


def test_an_attempt_over_http():
    async def scenario():
        async with routes_of_a_slot() as (world, routes):
            answer = await ask(routes, "PUT", "/v1/attempts/a", a_spec("a").to_json())
            assert AttemptReport.from_json(answer.body).state is AttemptState.RUNNING
            attempt = await started(world)
            assert (await ask(routes, "DELETE", "/v1/attempts/a")).status == 409
            assert (await ask(routes, "GET", "/v1/attempts/b")).status == 404
            answer = await ask(routes, "POST", "/v1/attempts/a/stop", a_stop(StopReason.DEADLINE).to_json())
            assert answer.status == 200
            assert attempt.stops[0][0] is StopReason.DEADLINE
            await until(lambda: world.slot.phase is Phase.READY)
            answer = await ask(routes, "GET", "/v1/attempts/a/records?offset=2")
            assert (answer.status, answer.body) == (200, b"2\n")
            assert (await ask(routes, "DELETE", "/v1/attempts/a")).status == 204
            assert (await ask(routes, "GET", "/v1/attempts/a/records?offset=0")).status == 404

    run(scenario())


def test_the_status_is_a_long_poll():
    async def scenario():
        async with routes_of_a_slot() as (_, routes):
            status = AgentStatus.from_json((await ask(routes, "GET", "/v1/status")).body)
            later = await ask(routes, "GET", f"/v1/status?after={status.rev}&wait=25")
            assert AgentStatus.from_json(later.body) == status

    run(scenario())


def test_a_drain_over_http():
    async def scenario():
        async with routes_of_a_slot() as (_, routes):
            answer = await ask(routes, "POST", "/v1/drain", a_drain(pod_uid="other").to_json())
            assert (answer.status, Refusal.from_json(answer.body).code) == (409, RefusalCode.OTHER_POD)
            answer = await ask(routes, "POST", "/v1/drain", a_drain().to_json())
            assert AgentStatus.from_json(answer.body).phase is Phase.DRAINED
            answer = await ask(routes, "PUT", "/v1/attempts/a", a_spec("a").to_json())
            assert (answer.status, Refusal.from_json(answer.body).code) == (410, RefusalCode.DRAINED)

    run(scenario())


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "says"),
    [
        ("PUT", "/v1/attempts/a", b"{", 422, "not JSON"),
        ("PUT", "/v1/attempts/a", b"{}", 422, "AttemptSpec"),
        ("PUT", "/v1/attempts/b", a_spec("a").to_json(), 422, "not the id in the path"),
        ("POST", "/v1/drain", b'{"epoch": "x", "pod_uid": "p"}', 422, "DrainOrder.epoch"),
        ("GET", "/v1/status?after=x", b"", 422, "after"),
        ("GET", "/v1/status?after=nan", b"", 422, "after"),
        ("GET", "/v1/attempts/a/records?offset=1e99", b"", 422, "offset"),
        ("GET", "/v1/attempts/../../etc", b"", 404, "no route"),
        ("POST", "/v1/attempts/a", b"", 405, "not for"),
        ("GET", "/v2/status", b"", 404, "no route"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(method, path, body, status, says):
    async def scenario():
        async with routes_of_a_slot() as (_, routes):
            answer = await ask(routes, method, path, body)
            assert answer.status == status
            assert says in Refusal.from_json(answer.body).message

    run(scenario())


def test_a_picture_or_why_there_is_none():
    async def scenario():
        async with routes_of_a_slot() as (world, routes):
            assert (await ask(routes, "GET", "/v1/screenshot")).body == b"PNG"

            async def fails():
                raise PageUnreadableError(LoadFault.BROWSER_GONE, "there is no page now")

            world.browser.screenshot = fails
            answer = await ask(routes, "GET", "/v1/screenshot")
            assert (answer.status, Refusal.from_json(answer.body).message) == (409, "there is no page now")

    run(scenario())


def test_a_fault_of_ours_is_a_500_and_not_the_end(caplog):
    async def scenario():
        async with routes_of_a_slot() as (world, routes):

            async def fails():
                raise ZeroDivisionError

            world.browser.screenshot = fails
            assert (await ask(routes, "GET", "/v1/screenshot")).status == 500
            assert (await ask(routes, "GET", "/v1/status")).status == 200

    run(scenario())
    assert "http.failed" in caplog.text


def test_metrics_name_phase_outcomes_and_bytes():
    async def scenario():
        async with routes_of_a_slot() as (world, routes):
            world.slot.admit(a_spec("a"))
            (await started(world)).end()
            await until(lambda: world.slot.phase is Phase.READY)
            lines = (await ask(routes, "GET", "/metrics")).body.decode().splitlines()
            assert 'pageslots_agent_phase{country="SG",phase="Ready"} 1' in lines
            assert 'pageslots_agent_attempts_total{country="SG",outcome="Ok"} 1' in lines
            assert 'pageslots_agent_bytes_total{country="SG",direction="received"} 20' in lines
            assert "shop" not in "".join(lines)  # no sites or request names

    run(scenario())
