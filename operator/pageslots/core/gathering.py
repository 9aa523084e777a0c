"""Collects what is known about one slot, one number or one running request, for the rules that look at it."""

from pageslots.core.memory import Memory
from pageslots.core.model import (
    Agent,
    AttemptId,
    GrantedFor,
    Instant,
    Pod,
    Request,
    RequestState,
    RequestUid,
    SlotUid,
)
from pageslots.core.numbers import NumberFacts
from pageslots.core.pending import Pending
from pageslots.core.records import Records
from pageslots.core.runs import RunFacts
from pageslots.core.slots import SlotFacts


class Gatherer:
    """Reads records, memory and pending deeds; changes nothing."""

    def __init__(self, records: Records, memory: Memory, pending: Pending) -> None:
        self._records = records
        self._memory = memory
        self._pending = pending

    def number_of(self, slot: SlotUid) -> int | None:
        """The permit that the slot holds or is about to get."""
        number = self._records.main_number(slot)
        if number is None and slot in self._pending.taking:
            return self._pending.taking[slot].number
        return number

    def slot_facts(self, uid: SlotUid, stuck: set[int]) -> SlotFacts | None:
        """All about a slot; None: it is no more."""
        records, memory, pending = self._records, self._memory, self._pending
        slot = records.slots.get(uid)
        if slot is None:
            return None
        number = self.number_of(uid)
        permit = None if number is None else records.permits.get(number)
        if permit is not None and permit.holder != uid:
            permit = None  # still the empty Lease that is being taken
        pod = None if number is None else records.pods.get(number)
        if pod is not None and pod.owner != uid:
            pod = None
        agent = None if pod is None else records.agents.get(pod.uid)
        named, since = self._named(uid)
        taking = pending.taking.get(uid)
        granted_for = permit.granted_for if permit is not None else GrantedFor.SPARE
        if permit is None and taking is not None:
            granted_for = taking.granted_for
        drain = memory.drains.get(uid)
        if drain is not None and drain.pod is not None and (pod is None or pod.uid != drain.pod):
            drain = None
        gone_pod = None if number is None or permit is None else memory.gone_at.get(number)
        return SlotFacts(
            slot=slot,
            number=number,
            permit=permit,
            pod=pod,
            agent=agent,
            gone=None if gone_pod is None else memory.gone[gone_pod],
            drain=drain,
            named=named,
            named_since=since,
            granted_for=granted_for,
            closing=pod is not None and pending.ends(pod.uid),
            deleting=uid in pending.deleting,
            closed_at=None if pod is None else memory.closings.get(pod.uid),
            stuck=number in stuck,
            orphan=self._orphan(uid, agent),
        )

    def _named(self, slot: SlotUid) -> tuple[RequestUid | None, Instant | None]:
        """The request that runs, or is being started, on the slot, and since when."""
        records = self._records
        uids = records.named_slot.of(slot)
        if uids:
            uid = min(uids)
            attempt = records.running[uid].attempt
            return uid, None if attempt is None else attempt.started
        start = self._pending.starting.get(slot)
        return (None, None) if start is None else (start.request, self._pending.started[start.request])

    def _orphan(self, slot: SlotUid, agent: Agent | None) -> AttemptId | None:
        """The attempt that the agent runs although no request names it (case D25)."""
        if agent is None or agent.report is None or agent.report.ended or slot in self._pending.starting:
            return None
        request = self._records.running.get(agent.report.request)
        if request is not None and request.attempt is not None and request.attempt.id == agent.report.id:
            return None
        return agent.report.id

    def number_facts(self, number: int) -> NumberFacts:
        """All about a number."""
        records, pending = self._records, self._pending
        permit = records.permits.get(number)
        pod = records.pods.get(number)
        holder = None if permit is None else permit.holder
        slot = holder if pod is None else pod.owner
        return NumberFacts(
            permit=permit,
            pod=pod,
            gone=None
            if number not in self._memory.gone_at
            else self._memory.gone[self._memory.gone_at[number]],
            taking=pending.get("TakePermit", number) is not None,
            freeing=pending.get("FreePermit", number) is not None,
            holder_known=holder is not None and holder in records.slots,
            owner_known=pod is not None and pod.owner in records.slots,
            is_main=slot is not None and self.number_of(slot) == number,
        )

    def run_facts(self, request: Request) -> RunFacts:
        """All about a Running request."""
        records, memory = self._records, self._memory
        attempt = request.attempt
        pod: Pod | None = None
        agent: Agent | None = None
        gone = last_words = None
        if attempt is not None:
            pod = records.pod(attempt.pod)
            agent = records.agents.get(attempt.pod)
            gone = memory.gone.get(attempt.pod)
            last_words = memory.last_words.get(attempt.id)
        return RunFacts(
            request=request,
            pod=pod,
            gone=gone,
            agent=agent,
            last_words=last_words,
            starting=self.is_starting(request.uid),
        )

    def is_starting(self, request: RequestUid) -> bool:
        """Whether a start of the request is under way."""
        return request in self._pending.started

    def runs(self, request: Request) -> bool:
        """Whether the request counts as running: it is, or is being started."""
        if request.state is RequestState.RUNNING:
            return True
        return request.state is RequestState.QUEUED and self.is_starting(request.uid)
