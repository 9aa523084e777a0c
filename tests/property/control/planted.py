"""Bugs that the stateful test has to find: one or more for each invariant, as patches of single functions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from pageslots.control import attempts, controller, permits, pods, retention, status
from pageslots.control.ports import Kind
from pageslots.core import derived, model, moving, numbers, queues, runs, slots, sweeps
from pageslots.core import index as core_index
from pageslots.core.slots import Role
from pageslots_agent import arbiter

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True, slots=True)
class Bug:
    """What is wrong, which of these words a report of it must contain, and how it is planted.

    `rare`: it shows only in a constellation that the short run does not reach; the long one looks for it.
    """

    name: str
    caught_by: tuple[str, ...]
    plant: Plant
    rare: bool = False


def _one_permit_too_many(patch: pytest.MonkeyPatch) -> None:
    def free(self: numbers.Numbers) -> Iterator[int]:
        return (n for n in range(self._settings.max_concurrent + 1) if n not in self.occupied)

    usable = numbers.Numbers.usable
    patch.setattr(numbers.Numbers, "free", free)
    patch.setattr(numbers.Numbers, "usable", lambda self, limit: 1 + usable(self, limit))


async def _nothing_is_left(*_: object) -> bool:
    return False


def _no_look_at_the_pods_name(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(permits.Permits, "_pod_is_left", _nothing_is_left)


def _no_last_words(patch: pytest.MonkeyPatch) -> None:
    def at_once(gone_at: model.Instant, **_: object) -> model.Instant:
        return gone_at

    patch.setattr(sweeps, "end_of", at_once)
    patch.setattr(runs, "end_of", at_once)


def _silence_is_loss(patch: pytest.MonkeyPatch) -> None:
    look = runs.look_at_running

    def hasty(facts: runs.RunFacts, *rest: Any) -> runs.Outlook:
        if facts.agent is None and facts.pod is not None and not facts.starting:
            lost = runs.lost(facts.request, rest[-1], out_of_memory=False, message="nobody answers")
            return runs.Outlook(lost)
        return look(facts, *rest)

    patch.setattr(derived, "look_at_running", hasty)


def _any_epoch_will_do(patch: pytest.MonkeyPatch) -> None:
    check = arbiter.Arbiter._check_sender

    def without_epoch(self: arbiter.Arbiter, pod_uid: str, epoch: int) -> None:
        del epoch
        check(self, pod_uid, self.epoch)

    patch.setattr(arbiter.Arbiter, "_check_sender", without_epoch)


def _writes_without_a_version(patch: pytest.MonkeyPatch) -> None:
    write = attempts.Attempts._write

    async def blind(self: Any, request: Any, body: Any, *, version: str) -> None:
        del version
        await write(self, request, body, version=None)  # type: ignore[arg-type]

    patch.setattr(attempts.Attempts, "_write", blind)


def _one_slot_too_many(patch: pytest.MonkeyPatch) -> None:
    def numbers_from_anywhere(draft: Any) -> Iterator[int]:
        used = {slot.number for slot in draft.index.slots.values()}
        return (n for n in range(9, 1_000) if n not in used)

    patch.setattr(moving, "_free_numbers", numbers_from_anywhere)


def _busy_slots_look_free(patch: pytest.MonkeyPatch) -> None:
    async def drained(*_: object) -> bool:
        return True

    role = slots._role

    def wrong(facts: Any, state: Any, doomed: Any) -> Role:
        true = role(facts, state, doomed)
        return Role.FREE if true is Role.BUSY and facts.agent is not None else true

    patch.setattr(slots, "_role", wrong)
    patch.setattr(pods.Pods, "_drained", drained)


def _no_cooldown(patch: pytest.MonkeyPatch) -> None:
    limits = queues.Queues.limits

    def without(self: queues.Queues, site: Any) -> tuple[int, int, bool]:
        most, _, suspended = limits(self, site)
        return most, 0, suspended

    patch.setattr(queues.Queues, "limits", without)


def _no_limit_per_site(patch: pytest.MonkeyPatch) -> None:
    limits = queues.Queues.limits

    def without(self: queues.Queues, site: Any) -> tuple[int, int, bool]:
        return (1_000, *limits(self, site)[1:])

    patch.setattr(queues.Queues, "limits", without)


def _what_a_list_lacks_is_gone(patch: pytest.MonkeyPatch) -> None:
    async def forget(self: controller.Controller, kind: Kind, known: Any) -> None:
        self.forget(kind, known)

    async def disowned(*_: object) -> bool:
        return True

    patch.setattr(controller.Controller, "_look_for", forget)
    patch.setattr(pods.Pods, "_is_disowned", disowned)


def _pods_are_not_adopted(patch: pytest.MonkeyPatch) -> None:
    async def replace_it(self: pods.Pods, name: str, **_: object) -> None:
        pod = await self._context.runtime.get(self._pool.namespace, name)
        self._context.intake.pod_seen(pod)
        await self._begin_end(pod, "NoPermit")

    patch.setattr(pods.Pods, "_judge", replace_it)


def _finished_requests_go_at_once(patch: pytest.MonkeyPatch) -> None:
    observe = retention.Retention.observe

    def impatient(self: retention.Retention, request: Any) -> None:
        spec = request.spec.model_copy(update={"ttl_seconds_after_finished": 0})
        observe(self, request.model_copy(update={"spec": spec}))

    async def delete(self: retention.Retention, uid: str, now: int) -> None:
        del now
        obj = self._context.cache.by_uid(uid)
        if obj is not None:
            metadata = obj["metadata"]
            await self._context.api.delete(Kind.REQUEST, metadata["namespace"], metadata["name"], uid=uid)

    patch.setattr(retention.Retention, "observe", impatient)
    patch.setattr(retention.Retention, "_delete", delete)


def _permits_are_kept(patch: pytest.MonkeyPatch) -> None:
    async def keep(*_: object) -> None:
        return

    patch.setattr(permits.Permits, "free", keep)


def _statuses_never_rest(patch: pytest.MonkeyPatch) -> None:
    real = status.pool_status

    def restless(index: Any, obj: Any, now: Any) -> Any:
        return real(index, obj, now) | {"observedGeneration": now % 1_000}

    patch.setattr(status, "pool_status", restless)


def _waiting_is_not_explained(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(status.StatusWriter, "waits", lambda *_: None)


def _a_drain_is_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(core_index.Index, "_forget_drain_of_page", lambda *_: None)


BUGS = (
    Bug("a permit beyond maxConcurrent is granted", ("I1",), _one_permit_too_many),
    Bug("permits move without a look at the pod's name", ("I2",), _no_look_at_the_pods_name, rare=True),
    Bug("a vanished pod's permit is freed at once", ("I2", "I3"), _no_last_words),
    Bug("an agent that nobody has heard yet counts as lost", ("I3",), _silence_is_loss),
    Bug("agents obey leaders of any epoch", ("I3", "I4"), _any_epoch_will_do, rare=True),
    Bug("writes carry no version", ("I4", "I3"), _writes_without_a_version),
    Bug("slots are numbered beyond maxPageSlots", ("I5",), _one_slot_too_many),
    Bug("busy slots look free", ("I6", "not within"), _busy_slots_look_free),
    Bug("sites have no cooldown", ("I8",), _no_cooldown, rare=True),
    Bug("sites have no limit", ("I8",), _no_limit_per_site),
    Bug("what a list lacks is gone", ("I9",), _what_a_list_lacks_is_gone),
    Bug("a pod that is there already is replaced", ("I9", "I6"), _pods_are_not_adopted, rare=True),
    Bug("finished requests are deleted at once", ("I10",), _finished_requests_go_at_once),
    Bug("permits are never freed", ("permits held", "not within"), _permits_are_kept),
    Bug("a status changes on every pass", ("D13",), _statuses_never_rest, rare=True),
    Bug("a slot without a page drains for ever", ("not within",), _a_drain_is_for_ever, rare=True),
)
