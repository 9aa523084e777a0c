"""The run as people see it: from the controller's indexes and the requests' objects to a `Snapshot`."""

from collections import deque

from pageslots.api import CrawlRequest, PageSlotPool
from pageslots.api.reasons import RequestState
from pageslots.control import request_status
from pageslots.control.controller import Controller
from pageslots.control.instants import instant
from pageslots.control.names import Key
from pageslots.control.ports import Clock, Kind
from pageslots.control.summaries import waiting_reason
from pageslots.core.counting import counts
from pageslots.core.model import Country, Instant, RequestUid, SlotState
from pageslots.local.inputs import Adopted, Inputs
from pageslots.local.runtime import ProcessRuntime
from pageslots.local.snapshot import CountryRow, RequestRow, Snapshot

RATE_WINDOW_MS = 10_000


class Summary:
    """Makes snapshots of one run."""

    def __init__(
        self, controller: Controller, clock: Clock, inputs: Inputs, adopted: Adopted, runtime: ProcessRuntime
    ) -> None:
        self._controller = controller
        self._clock = clock
        self._inputs = inputs
        self._skipped = adopted.finished
        self._runtime = runtime
        self._begun = clock.now_ms()
        self._pages_before: int | None = None
        self._recent: deque[tuple[int, int]] = deque()

    def why(self, request: CrawlRequest) -> str:
        """Why a queued request waits, as a condition reason."""
        pool = self._controller.pools.get(Key(request.metadata.namespace, request.spec.pool_name))
        fact = None if pool is None else pool.index.requests.get(RequestUid(request.metadata.uid))
        if pool is None or fact is None:
            condition = request_status.condition_of(request, "Finished")
            return "Suspended" if request.spec.suspend else str(condition.reason if condition else "")
        return waiting_reason(pool.index, fact, Instant(self._clock.now_ms()))[0]

    def snapshot(self, *, stopping: bool) -> Snapshot:
        """The run as of now."""
        now = self._clock.now_ms()
        requests = tuple(self._request_row(request, now) for request in self._inputs.requests)
        pages = sum(row.pages_done for row in requests)
        if self._pages_before is None and all(map(self._known, self._inputs.requests)):
            self._pages_before = pages  # not sooner: until control has listed them, nothing seems to be done
        pages -= self._pages_before or 0
        countries = tuple(row for pool in self._inputs.pools for row in self._country_rows(pool))
        pools = self._controller.pools.values()
        return Snapshot(
            now_ms=now,
            seconds=(now - self._begun) / 1_000,
            countries=countries,
            requests=requests,
            permits_held=sum(p.holder is not None for pool in pools for p in pool.index.permits.values()),
            permits_max=sum(pool.spec.max_concurrent for pool in self._inputs.pools),
            browsers=sum(len(pool.index.pods) for pool in pools),
            pages=pages,
            pages_per_second=self._rate(now, pages),
            bytes=sum(report.bytes for report in self._controller.context.reports.values()),
            stopping=stopping,
        )

    def _rate(self, now: int, pages: int) -> float:
        self._recent.append((now, pages))
        while self._recent[0][0] < now - RATE_WINDOW_MS:
            self._recent.popleft()
        then, before = self._recent[0]
        return (pages - before) * 1_000 / (now - then) if now > then else 0.0

    def _country_rows(self, pool: PageSlotPool) -> list[CountryRow]:
        loop = self._controller.pools.get(Key(pool.metadata.namespace, pool.name))
        if loop is None:
            return []
        index = loop.index
        rows = []
        figures = counts(index, Instant(self._clock.now_ms()))
        states: dict[str, list[SlotState]] = {}
        for uid, slot in index.slots.items():
            states.setdefault(slot.country, []).append(index.slot_state(uid))
        finished: dict[str, int] = {}
        for request in self._inputs.requests:
            known = self._known(request)
            if known is not None and known.status.is_finished and known.spec.pool_name == pool.name:
                finished[known.spec.country] = finished.get(known.spec.country, 0) + 1
        for country in pool.spec.countries:
            count = figures.get(Country(country.code))
            of = states.get(country.code, [])
            rows.append(
                CountryRow(
                    pool=pool.name,
                    country=country.code,
                    allocated=count.allocated if count else 0,
                    slots=len(of),
                    preparing=of.count(SlotState.PREPARING),
                    ready=of.count(SlotState.READY),
                    running=of.count(SlotState.RUNNING),
                    closing=of.count(SlotState.CLOSING),
                    queued=count.queued if count else 0,
                    finished=finished.get(country.code, 0),
                    direct=country.direct,
                )
            )
        return rows

    def _known(self, request: CrawlRequest) -> CrawlRequest | None:
        key = Key(request.metadata.namespace, request.name)
        obj = self._controller.context.cache.get(Kind.REQUEST, key)
        return None if obj is None else CrawlRequest.model_validate(obj)

    def _request_row(self, asked: CrawlRequest, now: int) -> RequestRow:
        request = self._known(asked) or asked
        status = request.status
        condition = request_status.condition_of(request, "Finished")
        reason = str(condition.reason) if condition else ""
        message = str(condition.message) if condition else ""
        if status.state is RequestState.QUEUED:
            reason, message = self.why(request), ""
        pages, records = status.pages, 0 if status.result is None else status.result.records
        report = None if status.attempt is None else self._controller.context.reports.get(status.attempt.id)
        done, failed, discovered = pages.done, pages.failed, pages.discovered
        if report is not None and status.state is RequestState.RUNNING:
            done, failed, discovered = report.pages.done, report.pages.failed, report.pages.discovered
            records = report.records
        begun = instant(status.first_start_time)
        ended = instant(status.finish_time) or Instant(now)
        return RequestRow(
            name=request.name,
            country=request.spec.country,
            state=status.state.value,
            reason=reason,
            message=message,
            pages_done=done,
            pages_failed=failed,
            pages_discovered=discovered,
            attempts=0 if status.attempt is None else status.attempt.number,
            records=records,
            result="" if status.result is None else status.result.uri or "",
            seconds=0.0 if begun is None else (ended - begun) / 1_000,
            skipped=request.name in self._skipped,
        )
