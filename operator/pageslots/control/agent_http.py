"""`AgentClient` over HTTP: the routes of wire.py, one client per pod.

Every call has a deadline and a bound on the size of its answer, and every failure is one of the two errors
that `AgentClient` names. An answer that is not this pod's (its port was reused, its UID is another) counts as
no answer: nothing that another pod says may be credited to this one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import aiohttp

from pageslots.control.ports import AgentRefusedError, AgentUnreachableError
from pageslots.wire import (
    MAX_BODY_BYTES,
    TOKEN_HEADER,
    AgentStatus,
    AttemptReport,
    AttemptSpec,
    DrainOrder,
    Message,
    Refusal,
    RefusalCode,
    StopOrder,
    WireError,
)

CALL_SECONDS = 10.0
"""Deadline of a call; a long poll has this on top of its wait."""

_CHUNK = 64 * 1024
AnswerT = TypeVar("AnswerT", bound=Message)


def agent_session() -> aiohttp.ClientSession:
    """One session for all agents: no cookies, no proxies from the environment. Close it when done."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=0, use_dns_cache=False),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
    )


class HttpAgentClient:
    """Talks to the agent of one pod.

    `address` gives `http://host:port`, or None while it is not known; it is asked before every call. `pod`
    names the pod in messages.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        *,
        pod: str,
        pod_uid: str,
        token: str,
        address: Callable[[], str | None],
        headers: Mapping[str, str] | None = None,
        call_seconds: float = CALL_SECONDS,
    ) -> None:
        self._session = session
        self._pod = pod
        self._pod_uid = pod_uid
        self._address = address
        self._headers = {**(headers or {}), TOKEN_HEADER: token}
        self._call_seconds = call_seconds

    async def status(self, *, after: int, wait_seconds: float) -> AgentStatus:
        """The status once its revision is above `after`, or after `wait_seconds`."""
        path = f"/v1/status?after={after}&wait={wait_seconds:g}"
        return self._own(await self._ask(AgentStatus, "GET", path, seconds=wait_seconds + self._call_seconds))

    async def put_attempt(self, spec: AttemptSpec) -> AttemptReport:
        """Start it, or learn how the attempt of this id stands."""
        return await self._about_attempt(spec.id, "PUT", f"/v1/attempts/{spec.id}", spec, spec.pod_uid)

    async def acknowledge(self, attempt_id: str) -> None:
        """The end of the attempt has been recorded; unknown ids are fine."""
        try:
            await self._call("DELETE", f"/v1/attempts/{attempt_id}", None, self._call_seconds, _whole_body)
        except AgentRefusedError as refused:
            if refused.refusal.code is not RefusalCode.NO_SUCH_ATTEMPT:
                raise

    async def stop(self, attempt_id: str, order: StopOrder) -> AttemptReport:
        """End the attempt early."""
        path = f"/v1/attempts/{attempt_id}/stop"
        return await self._about_attempt(attempt_id, "POST", path, order, order.pod_uid)

    async def drain(self, order: DrainOrder) -> AgentStatus:
        """From now on nothing; refused while busy."""
        return self._own(await self._ask(AgentStatus, "POST", "/v1/drain", order, pod_uid=order.pod_uid))

    async def records(self, attempt_id: str, *, offset: int) -> bytes:
        """JSON Lines from record `offset` on: whole lines, as many as fit into the bound of a message."""
        path = f"/v1/attempts/{attempt_id}/records?offset={offset}"
        return await self._call("GET", path, None, self._call_seconds, _whole_lines)

    async def _about_attempt(
        self, attempt_id: str, method: str, path: str, message: Message, pod_uid: str
    ) -> AttemptReport:
        report = await self._ask(AttemptReport, method, path, message, pod_uid=pod_uid)
        if report.id != attempt_id:
            raise self._unreachable(f"answers about attempt {report.id} when asked about {attempt_id}")
        return report

    async def _ask(
        self,
        answer: type[AnswerT],
        method: str,
        path: str,
        message: Message | None = None,
        *,
        pod_uid: str | None = None,
        seconds: float | None = None,
    ) -> AnswerT:
        """One call whose answer is a message. `pod_uid`: whom the message is meant for, if it says so."""
        try:
            body = await self._call(method, path, message, seconds or self._call_seconds, _whole_body)
        except AgentRefusedError as refused:
            if refused.refusal.code is RefusalCode.OTHER_POD and pod_uid == self._pod_uid:
                raise self._unreachable("another pod listens at its address") from None
            raise
        try:
            return answer.from_json(body)
        except WireError as error:
            raise self._unreachable(f"unreadable answer to {method} {path}: {error}") from None

    def _own(self, status: AgentStatus) -> AgentStatus:
        if status.pod_uid != self._pod_uid:
            raise self._unreachable(f"another pod ({status.pod_uid}) listens at its address")
        return status

    async def _call(
        self,
        method: str,
        path: str,
        message: Message | None,
        seconds: float,
        read: Callable[[aiohttp.ClientResponse], Awaitable[bytes]],
    ) -> bytes:
        address = self._address()
        if address is None:
            raise self._unreachable("its address is not known (yet, or any more)")
        try:
            async with asyncio.timeout(seconds):
                async with self._session.request(
                    method,
                    address + path,
                    data=None if message is None else message.to_json(),
                    headers=self._headers | ({} if message is None else {"Content-Type": "application/json"}),
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(total=None),  # the deadline is the one above
                ) as response:
                    if 200 <= response.status < 300:
                        return await read(response)
                    raise self._refused(response.status, await _whole_body(response))
        except TimeoutError:
            raise self._unreachable(f"no answer to {method} {path} within {seconds:g} s") from None
        except (aiohttp.ClientError, OSError, _TooLargeError) as error:
            raise self._unreachable(f"{method} {path}: {str(error) or type(error).__name__}") from None

    def _refused(self, status: int, body: bytes) -> AgentRefusedError | AgentUnreachableError:
        """What an answer that is no success means; without a refusal in it, it is not an agent's word."""
        try:
            refusal = Refusal.from_json(body)
        except WireError:
            return self._unreachable(f"answered {status} without saying why")
        if refusal.code is RefusalCode.UNAUTHORISED:
            return self._unreachable("does not know our token: another pod's agent, or an old one")
        return AgentRefusedError(refusal)

    def _unreachable(self, why: str) -> AgentUnreachableError:
        return AgentUnreachableError(f"agent of {self._pod}: {why}")


class _TooLargeError(Exception):
    """An answer above the bound of wire.py."""


async def _read_bounded(response: aiohttp.ClientResponse) -> tuple[bytes, bool]:
    """The body, at most MAX_BODY_BYTES of it, and whether that is all."""
    body = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK):
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            return bytes(body[:MAX_BODY_BYTES]), False
    return bytes(body), True


async def _whole_body(response: aiohttp.ClientResponse) -> bytes:
    body, complete = await _read_bounded(response)
    if not complete:
        raise _TooLargeError(f"an answer of more than {MAX_BODY_BYTES} bytes")
    return body


async def _whole_lines(response: aiohttp.ClientResponse) -> bytes:
    body, complete = await _read_bounded(response)
    return body if complete else body[: body.rfind(b"\n") + 1]
