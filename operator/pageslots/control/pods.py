"""A slot's pod: created on its permit's name, adopted, drained, deleted.

The name is the cap (DESIGN section 7): whatever this process believes, the runtime holds one pod of a name.
"""

import asyncio
from dataclasses import replace

from pageslots.control.context import Context
from pageslots.control.names import Key, browser_name, permit_name, uid_of
from pageslots.control.orders import pod_order
from pageslots.control.ports import (
    AgentRefusedError,
    AgentUnreachableError,
    AlreadyExistsError,
    ConflictError,
    Kind,
    NotFoundError,
    PodView,
)
from pageslots.core import actions
from pageslots.core.index import Index
from pageslots.core.model import SlotUid
from pageslots.wire import DrainOrder, RefusalCode

DRAIN_RETRY_MS = 500
_DISOWNED = frozenset({"Ownerless", "NoPermit"})


class Pods:
    """The pods of one pool."""

    def __init__(self, context: Context, pool: Key, index: Index) -> None:
        self._context = context
        self._pool = pool
        self._index = index

    async def create(self, deed: actions.CreatePod) -> None:
        """Create the pod of a held permit; one that is there already is adopted, deleted or left alone."""
        context = self._context
        slot = self._index.slots.get(deed.slot)
        pool = context.pool(self._pool)
        if slot is None or pool is None:
            return
        order = pod_order(context, pool, slot, number=deed.number, prepare_for=deed.prepare_for)
        context.leadership.check()
        try:
            pod = await context.runtime.create(order)
        except AlreadyExistsError:
            await self._judge(order.name, number=deed.number, slot_uid=slot.uid, pool_uid=order.pool_uid)
            return
        context.intake.pod_seen(pod)

    async def _judge(self, name: str, *, number: int, slot_uid: str, pool_uid: str) -> None:
        """Something of that name is there: ours and the holder's, ours of another time, or foreign."""
        context = self._context
        pod = await context.runtime.get(self._pool.namespace, name)
        context.intake.pod_seen(pod)
        if pod.owner_uid is None:
            permit = self._index.permits.get(number)
            if permit is not None and not permit.poisoned:
                context.recorder.event(
                    "warning", "permit.poisoned", pod=name, pool=str(self._pool), permit=number
                )
                self._index.put_permit(replace(permit, poisoned=True))
        elif pod.owner_uid != slot_uid or pod.pool_uid != pool_uid:
            await self._begin_end(pod, "NoPermit", "its permit belongs to another page slot")

    async def look(self, name: str) -> None:
        """Read the pod live; what is found, or not, becomes a fact."""
        context = self._context
        try:
            context.intake.pod_seen(await context.runtime.get(self._pool.namespace, name))
        except NotFoundError:
            number = int(name.rpartition("-")[2])
            known = self._index.pods.get(number)
            if known is not None:
                self._index.drop_pod(number, known.uid, terminated=context.runtime.absence_is_end)

    async def close(self, deed: actions.CloseSlot) -> None:
        """Drain the agent, then delete the pod. A busy agent is not closed; one out of reach waits its time."""
        context = self._context
        try:
            pod = await context.runtime.get(self._pool.namespace, browser_name(self._pool.name, deed.number))
        except NotFoundError:
            await self.look(browser_name(self._pool.name, deed.number))
            return
        if pod.uid != deed.pod:
            context.intake.pod_seen(pod)
            return
        if deed.force:
            await self._begin_end(
                pod, "Unreachable", f"to be closed ({deed.reason}); its agent does not answer"
            )
        elif not pod.reachable or await self._drained(pod):
            await self._begin_end(pod, deed.reason)

    async def _drained(self, pod: PodView) -> bool:
        """Whether the slot is drained, or may be taken for dead: nobody runs on it and nobody answers."""
        context = self._context
        agent = context.runtime.agent(pod)
        deadline_ms = context.clock.now_ms() + self._index.settings.dispatch_ms
        order = DrainOrder(epoch=context.leadership.epoch(), pod_uid=pod.uid)
        while True:
            context.leadership.check()
            try:
                context.intake.agent_said(pod, await agent.drain(order))
            except AgentRefusedError as refused:
                if refused.refusal.code is RefusalCode.DRAINED:
                    return True
                if refused.refusal.code is RefusalCode.BUSY:
                    context.intake.agent_said(pod, await agent.status(after=-1, wait_seconds=0))
                return False
            except AgentUnreachableError:
                if context.clock.now_ms() >= deadline_ms:
                    return not self._is_named(pod.uid)
                await asyncio.sleep(DRAIN_RETRY_MS / 1_000)
            else:
                return True

    def _is_named(self, pod_uid: str) -> bool:
        """Whether a Running request names the pod: then only staleSeconds may end it."""
        return any(r.attempt is not None and r.attempt.pod == pod_uid for r in self._index.running_requests())

    async def delete(self, deed: actions.DeletePod) -> None:
        """Begin the end of exactly this pod."""
        context, name = self._context, browser_name(self._pool.name, deed.number)
        try:
            pod = await context.runtime.get(self._pool.namespace, name)
        except NotFoundError:
            await self.look(name)
            return
        if pod.uid != deed.pod:
            context.intake.pod_seen(pod)
            return
        if deed.reason in _DISOWNED and not await self._is_disowned(pod):
            return
        await self._begin_end(pod, deed.reason, deed.message)

    async def _is_disowned(self, pod: PodView) -> bool:
        """Whether the pod's slot is gone, or holds another permit: by live answers, never by what a list lacks."""
        if not await self._is_there(Kind.SLOT, pod.owner_name, pod.owner_uid):
            return True
        if not await self._is_there(Kind.LEASE, permit_name(self._pool.name, pod.number), None):
            return True
        permit = self._index.permits.get(pod.number)
        held = permit is not None and permit.holder == pod.owner_uid
        return not (held and self._index.gather.number_of(SlotUid(pod.owner_uid or "")) == pod.number)

    async def _is_there(self, kind: Kind, name: str, uid: str | None) -> bool:
        """A live look at an object; what is found, or not, becomes a fact."""
        context, key = self._context, Key(self._pool.namespace, name)
        try:
            found = await context.api.get(kind, key.namespace, key.name)
        except NotFoundError:
            known = context.cache.get(kind, key)
            if known is not None:
                context.intake.forget(kind, known)
            return False
        context.intake.observe(kind, found)
        return uid is None or uid_of(found) == uid

    async def _begin_end(self, pod: PodView, reason: str, message: str = "") -> None:
        context = self._context
        context.leadership.check()
        context.recorder.event(
            "info",
            "pod.delete",
            pod=pod.name,
            uid=pod.uid,
            pool=str(self._pool),
            reason=reason,
            message=message,
        )
        try:
            await context.runtime.delete(
                pod.namespace, pod.name, uid=pod.uid, grace_ms=self._index.settings.grace_ms
            )
        except NotFoundError:
            context.intake.pod_gone(pod)
        except ConflictError:
            await self.look(pod.name)
        else:
            await self.look(pod.name)
