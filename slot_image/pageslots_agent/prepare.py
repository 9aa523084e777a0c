"""Making a slot ready: browser, exit check, target website; when to reopen and when to give up.

Counted are failures of target, exit check, proxy and browser only; consecutive ones, across preparations and
crashes of attempts. `reopen_after_failures` in a row: browser closed and reopened, by another proxy if that
was to blame; `give_up_after_failures`, or `preparation_ms` over: gave up (DESIGN section 5, back-off).
A SiteError at the origin of the request that the slot is prepared for is the request's own problem: the slot
is ready with about:blank.
"""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Protocol

from pageslots.wire import AgentConfig, ExitCheck, Failure, Outcome
from pageslots_agent.faults import outcome_of
from pageslots_agent.logs import warn
from pageslots_agent.ports import Visit

TRY_SECONDS = 40.0
"""One try at the target or the exit check; a hanging proxy must leave time for another one."""
_PAUSE_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0)

_COUNTRY_KEYS = ("country_code", "countrycode", "country_iso", "country", "cc", "loc")
_TRACE_LINE = re.compile(r"(?im)^(?:country_code|countrycode|country|loc)\s*[=:]\s*([a-z]{2})\s*$")


class PreparationFailedError(Exception):
    """One try failed; `outcome` says whose fault it is."""

    def __init__(self, outcome: Outcome, message: str) -> None:
        super().__init__(message)
        self.outcome = outcome


class Failures:
    """Consecutive failures of one slot, and the last one."""

    def __init__(self, wall_clock: Callable[[], int]) -> None:
        self._wall_clock = wall_clock
        self._preparation = 0
        self._crashes = 0
        self.last: Failure | None = None

    @property
    def consecutive(self) -> int:
        """Since the slot last worked."""
        return self._preparation + self._crashes

    def preparation_failed(self, error: PreparationFailedError) -> None:
        """One more try at preparing failed."""
        self._preparation += 1
        self.note(error.outcome, str(error))

    def prepared(self) -> None:
        """The page is ready; crashes stay counted until an attempt ends without one."""
        self._preparation = 0

    def attempt_ended(self, *, crashed: bool) -> None:
        """An attempt ended, with or without taking the browser along."""
        self._crashes = self._crashes + 1 if crashed else 0

    def note(self, outcome: Outcome, message: str) -> None:
        """Remember what went wrong last."""
        self.last = Failure(outcome, message, self._wall_clock())


class Hands(Protocol):
    """What preparing needs done."""

    async def open(self, *, other_proxy: bool) -> None:
        """Browser and page, if they are not open; raises PreparationFailedError."""
        ...

    async def close_browser(self) -> None:
        """Close or kill it."""
        ...

    async def load(self, url: str, *, seconds: float) -> Visit:
        """Open a URL in the page."""
        ...

    async def body_text(self, *, seconds: float) -> str:
        """The text of what is open; raises PageUnreadableError."""
        ...


class Preparation:
    """Prepares one slot, again and again."""

    def __init__(self, config: AgentConfig, hands: Hands, failures: Failures) -> None:
        self._config = config
        self._hands = hands
        self._failures = failures

    async def run(self) -> bool:
        """Until the page is ready (True) or given up (False, with the browser closed)."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._config.preparation_ms / 1000
        other_proxy = False
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    await self._try(other_proxy=other_proxy)
            except TimeoutError:
                seconds = self._config.preparation_ms / 1000
                error = PreparationFailedError(Outcome.TIMEOUT, f"not prepared within {seconds:.0f} s")
                self._failures.preparation_failed(error)
                await self._hands.close_browser()
                return False
            except PreparationFailedError as failed:
                self._failures.preparation_failed(failed)
                count = self._failures.consecutive
                warn("preparation.failed", outcome=failed.outcome, consecutive=count, message=failed)
                if count >= self._config.give_up_after_failures:
                    await self._hands.close_browser()
                    return False
                other_proxy = failed.outcome is Outcome.PROXY_ERROR
                if count % self._config.reopen_after_failures == 0:
                    await self._hands.close_browser()
                await self._pause(count, deadline)
            else:
                self._failures.prepared()
                return True

    @staticmethod
    async def _pause(count: int, deadline: float) -> None:
        pause = _PAUSE_SECONDS[min(count, len(_PAUSE_SECONDS)) - 1]
        left = deadline - asyncio.get_running_loop().time()
        await asyncio.sleep(max(0.0, min(pause, left)))

    async def _try(self, *, other_proxy: bool) -> None:
        await self._hands.open(other_proxy=other_proxy)
        if self._config.exit_check is not None:
            await self._check_exit(self._config.exit_check)
        if self._config.target_url:
            await self._load_target()

    async def _check_exit(self, check: ExitCheck) -> None:
        visit = await self._hands.load(check.url, seconds=TRY_SECONDS)
        if visit.fault is not None or visit.status != 200:
            why = visit.message or f"status {visit.status}"
            raise PreparationFailedError(Outcome.PROXY_ERROR, f"exit check {check.url}: {why}")
        seen = country_in(await self._hands.body_text(seconds=10))
        if seen != check.country.upper():
            found = f"the site sees {seen}" if seen else "the answer names no country"
            raise PreparationFailedError(
                Outcome.PROXY_ERROR, f"exit check {check.url}: {found}, expected {check.country.upper()}"
            )

    async def _load_target(self) -> None:
        url = self._config.target_url
        visit = await self._hands.load(url, seconds=TRY_SECONDS)
        if visit.fault is None and not visit.is_download and (visit.status or 200) < 400:
            return
        outcome = outcome_of(visit.fault) if visit.fault is not None else Outcome.SITE_ERROR
        if self._config.target_is_request_origin and outcome is Outcome.SITE_ERROR:
            self._failures.note(outcome, f"target {url}: {_why(visit)}; ready with about:blank")
            await self._hands.load("about:blank", seconds=10)
            return
        raise PreparationFailedError(outcome, f"target {url}: {_why(visit)}")


def _why(visit: Visit) -> str:
    if visit.is_download:
        return "is a file, not a page"
    return visit.message or (f"status {visit.status}" if visit.fault is None else str(visit.fault))


def country_in(answer: str) -> str | None:
    """The country code that an exit check's answer names: JSON, `key=value` lines, or the code alone."""
    text = answer.strip()
    if re.fullmatch(r"[A-Za-z]{2}", text):
        return text.upper()
    try:
        decoded = json.loads(text)
    except ValueError:
        found = _TRACE_LINE.search(text)
        return found.group(1).upper() if found else None
    return _code_of(decoded, depth=0)


def _code_of(decoded: object, *, depth: int) -> str | None:
    if not isinstance(decoded, dict) or depth > 3:
        return None
    lower = {str(key).lower().replace("-", "_"): value for key, value in decoded.items()}
    for key in _COUNTRY_KEYS:
        value = lower.get(key)
        if isinstance(value, str) and re.fullmatch(r"[A-Za-z]{2}", value.strip()):
            return value.strip().upper()
    return next((code for v in decoded.values() if (code := _code_of(v, depth=depth + 1))), None)
