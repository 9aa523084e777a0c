"""One long poll per live pod: an attempt's end is known in milliseconds, a lost signal costs one timeout."""

import asyncio
from collections.abc import Callable

from pageslots.control.ports import AgentRefusedError, AgentUnreachableError, PodPhase, PodView, SlotRuntime
from pageslots.wire import AgentStatus

POLL_SECONDS = 25.0
FIRST_PAUSE_MS = 100
LONGEST_PAUSE_MS = 2_000


class AgentWatchers:
    """Follows the agents of all reachable pods; tasks live in the controller's group and end with their pod."""

    def __init__(
        self, runtime: SlotRuntime, tasks: asyncio.TaskGroup, said: Callable[[PodView, AgentStatus], None]
    ) -> None:
        self._runtime = runtime
        self._tasks = tasks
        self._said = said
        self._following: dict[str, asyncio.Task[None]] = {}

    def pod_seen(self, pod: PodView) -> None:
        """Begin to follow a pod that can be reached; stop when its containers have ended."""
        if pod.phase is PodPhase.TERMINATED or pod.owner_uid is None:
            self.pod_gone(pod.uid)
        elif pod.reachable and pod.uid not in self._following:
            task = self._tasks.create_task(self._follow(pod), name=f"follow {pod.name}")
            self._following[pod.uid] = task
            task.add_done_callback(lambda _: self._following.pop(pod.uid, None))

    def pod_gone(self, uid: str) -> None:
        """The pod has ended: nobody will answer."""
        task = self._following.get(uid)
        if task is not None:
            task.cancel()

    async def _follow(self, pod: PodView) -> None:
        agent = self._runtime.agent(pod)
        after, pause_ms = -1, FIRST_PAUSE_MS
        while True:
            try:
                status = await agent.status(after=after, wait_seconds=POLL_SECONDS)
            except (AgentUnreachableError, AgentRefusedError):
                await asyncio.sleep(pause_ms / 1_000)
                pause_ms = min(LONGEST_PAUSE_MS, 2 * pause_ms)
                continue
            after, pause_ms = status.rev, FIRST_PAUSE_MS
            self._said(pod, status)
