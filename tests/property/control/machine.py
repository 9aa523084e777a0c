"""The whole of control in a world where everything goes wrong, judged after every step.

Virtual time: a step is a fault, a user's act, or time that passes. At the end everything is healed, and the world
has to settle. Steps are few kinds of calls with small numbers, so that a failing sequence shrinks to a readable one.
"""

from collections import Counter
from contextlib import suppress
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.fakes.faults import MENU, Fault, Faults
from tests.fakes.pool_world import NAMESPACE, PoolWorld, a_pool, a_request
from tests.judging import FINISHED, Judge, unsettled
from tests.property.control.fate import ATTEMPT_MOODS, POD_MOODS, Fate

from pageslots.control.names import permit_name
from pageslots.control.ports import JsonObject, Kind, NotFoundError, PodPhase
from pageslots.simulate.world import What

COUNTRIES = ("SG", "MY", "TH")
SITES = ("one.example", "two.example", "three.example")
SPEC: JsonObject = {
    "maxPageSlots": 6,
    "maxConcurrent": 3,
    "allocation": {"intervalSeconds": 15, "starvationSeconds": 10, "windowSeconds": 60},
    "preparation": {"idleSeconds": 10},
    "dispatch": {"maxPerSite": 2, "siteCooldownSeconds": 1},
    "deadlines": {
        "startSeconds": 10,
        "preparationSeconds": 5,
        "attemptSeconds": 60,
        "staleSeconds": 15,
        "unschedulableSeconds": 10,
        "stuckTerminatingSeconds": 20,
        "dispatchSeconds": 2,
    },
    "podTemplate": {"terminationGracePeriodSeconds": 5},
}
STALENESS_MS = 20_000
"""How late an operator may hear of a change: a silent watch, a gap with a late list, a slow event."""
SETTLE_SECONDS = 2_400
"""Back-offs of 600 s twice, deadlines, and some room."""
QUIET_SECONDS = 120

small = st.integers(0, 3)
verbs = st.sampled_from(sorted(set(MENU) - {"list", "pod.list", "agent.records", "agent.acknowledge"}))


class Drive(RuleBasedStateMachine):
    """See the module. `reached` counts what happened, over all examples of a run."""

    reached: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.fate = Fate()
        self.faults = Faults(slow_seconds=1.0, hang_seconds=4.0)
        self.world = PoolWorld(script=self.fate, faults=self.faults)
        self.judge = Judge(staleness_ms=STALENESS_MS, delay_ms=2_000)
        self.world.recording.listener = self.judge.take
        self.made = 0
        self.foreign: list[str] = []

    @initialize(
        seed=st.integers(0, 1_000),
        most=st.integers(1, 4),
        slots=st.integers(1, 7),
        min_ready=st.sampled_from((0, 0, 1)),
        per_slot=st.sampled_from(("1/3", 1, 2)),
    )
    def begin(self, seed: int, most: int, slots: int, min_ready: int, per_slot: Any) -> None:
        self.fate.seed = seed
        self.fate.__post_init__()
        self.spec = SPEC | {"maxConcurrent": most, "maxPageSlots": slots}
        self.spec["preparation"] = {"idleSeconds": 10, "minRequestsPerSlot": per_slot}
        self.countries: list[Any] = [{"code": "SG", "minReady": min_ready}, "MY", "TH"]
        self.put_pool()
        self.world.start()
        for country in COUNTRIES[: 1 + seed % 3]:
            self.ask(country, SITES[seed % 2], 2 + seed % 4)
        self.world.advance(seed % 5)

    def put_pool(self) -> None:
        self.world.put(a_pool(countries=self.countries, **self.spec))

    @invariant()
    def nothing_was_violated(self) -> None:
        assert not self.judge.found, "\n".join([*map(str, self.judge.found), self.world.picture()])

    def reach(self, what: str) -> None:
        type(self).reached[what] += 1

    # --- users

    @rule(
        country=st.sampled_from(COUNTRIES), site=st.sampled_from(SITES), count=st.sampled_from((1, 1, 3, 8))
    )
    def ask(self, country: str, site: str, count: int) -> None:
        for _ in range(count):
            self.made += 1
            self.world.put(
                a_request(f"r{self.made}", country, site=site, retries={"slotLost": 50, "crash": 50})
            )

    @rule(country=st.sampled_from(COUNTRIES), priority=st.sampled_from((-100, 100)))
    def ask_with_more(self, country: str, priority: int) -> None:
        self.made += 1
        more = {"priority": priority, "deadlineSeconds": 120, "queueTimeoutSeconds": 60}
        self.world.put(a_request(f"r{self.made}", country, **more))

    @rule(country=st.sampled_from(COUNTRIES), children=st.integers(2, 3))
    def ask_in_parallel(self, country: str, children: int) -> None:
        self.made += 1
        urls = [f"https://p{self.made}-{i}.example/" for i in range(children)]
        self.world.put(a_request(f"r{self.made}", country, parallelism=children, startUrls=urls))

    @precondition(lambda self: self.made)
    @rule(which=st.integers(0, 5), what=st.sampled_from(("stop", "suspend", "resume", "delete", "priority")))
    def change_request(self, which: int, what: str) -> None:
        names = [o["metadata"]["name"] for o in self.world.all(Kind.REQUEST) if _state(o) not in FINISHED]
        if not names:
            return
        name = names[which % len(names)]
        self.reach(f"{what} while {self.world.state(name)}")
        match what:
            case "delete":
                self.world.remove(Kind.REQUEST, name)
            case "priority":
                self._edit(name, {"priority": 10})
            case "stop":
                self._edit(name, {"stop": True})
            case _:
                self._edit(name, {"suspend": what == "suspend"})

    def _edit(self, name: str, spec: JsonObject) -> None:
        with suppress(NotFoundError):  # gone a moment ago
            self.world.edit(Kind.REQUEST, name, {"spec": spec})

    @rule(most=st.integers(0, 5))
    def change_max_concurrent(self, most: int) -> None:
        if len(self.world.held()) > most:
            self.reach("a cap below what is held")
        self.spec = self.spec | {"maxConcurrent": most}
        self.put_pool()

    @rule(slots=st.integers(1, 7))
    def change_max_page_slots(self, slots: int) -> None:
        self.spec = self.spec | {"maxPageSlots": slots}
        self.put_pool()

    @rule(count=st.integers(1, 3))
    def change_countries(self, count: int) -> None:
        self.countries = list(COUNTRIES[:count])
        self.put_pool()

    @rule(mib=st.sampled_from((1024, 2048)))
    def roll_out(self, mib: int) -> None:
        self.spec = self.spec | {"podTemplate": {"terminationGracePeriodSeconds": 5, "memoryMiB": mib}}
        self.put_pool()

    @rule(suspend=st.booleans())
    def suspend_pool(self, suspend: bool) -> None:
        self.spec = self.spec | {"suspend": suspend}
        self.put_pool()

    @rule()
    def delete_pool(self) -> None:
        self.reach("a deleted pool" if self.world.live_pods() else "a deleted empty pool")
        self.world.remove(Kind.POOL, "default")

    @rule()
    def make_pool_again(self) -> None:
        self.put_pool()

    # --- time

    @rule(seconds=st.sampled_from((0.003, 0.05, 0.4, 1.5, 4.0, 12.0, 40.0)))
    def wait(self, seconds: float) -> None:
        self.world.advance(seconds)

    @rule(seconds=st.sampled_from((0.05, 1.5, 4.0)))
    def wait_more(self, seconds: float) -> None:
        self.world.advance(seconds)

    # --- the operator

    @rule()
    def crash(self) -> None:
        self.world.operator.life.die()
        self.world.start()

    @rule(calls=st.integers(0, 40), seconds=st.sampled_from((0.05, 1.5, 12.0)))
    def crash_in_a_call(self, calls: int, seconds: float) -> None:
        """Dies before or after a call; the next one starts some time later."""
        operator = self.world.operator
        operator.life.dies_after(calls)
        self.world.advance(seconds)
        if operator.life.dead:
            self.reach(f"died {operator.life.died_in}")
        operator.life.die()
        self.world.start()

    @rule(before=st.sampled_from((0.02, 0.4)), paused=st.sampled_from((0.4, 4.0, 12.0)))
    def take_over_from_a_paused_leader(self, before: float, paused: float) -> None:
        """Case P4: its calls stand still, another one leads, then they land."""
        old = self.world.operator
        old.life.pause()
        self.world.advance(before)
        self.world.start()
        self.world.advance(paused)
        self.world.depose(old)
        old.life.resume()
        self.world.advance(0.05)
        old.life.die()
        self.reach("a take-over")

    # --- faults of the API, the kubelet and the agents

    @rule(verb=verbs, which=st.integers(0, 4), times=st.sampled_from((1, 1, 2, 5)))
    def fail_next(self, verb: str, which: int, times: int) -> None:
        menu = MENU[verb]
        self.faults.on(verb, menu[which % len(menu)], times=times)

    @rule(verb=st.sampled_from(("sync", "pod.sync")))
    def lists_are_empty(self, verb: str) -> None:
        """Case P3: the next complete lists lack everything."""
        self.faults.on(verb, Fault.EMPTY, times=2)
        self.world.store._feeds[Kind.SLOT].interrupt()
        self.world.store._feeds[Kind.REQUEST].interrupt()
        self.world.pods.interrupt_watches()

    @rule(verb=st.sampled_from(("agent.drain", "agent.put_attempt", "agent.stop")), times=st.integers(1, 3))
    def agent_refuses(self, verb: str, times: int) -> None:
        self.faults.on(verb, Fault.REFUSED, times=times)

    @rule(times=st.integers(1, 3))
    def agent_lies(self, times: int) -> None:
        self.faults.on("agent.status", Fault.LIE, times=times)

    @rule(times=st.integers(1, 3))
    def quota(self, times: int) -> None:
        """Case P12."""
        self.faults.on("pod.create", Fault.FORBIDDEN, times=times)

    @rule()
    def heal_faults(self) -> None:
        self.faults.heal()

    @rule(mood=st.sampled_from(POD_MOODS), left=st.integers(1, 3))
    def pods_will(self, mood: str, left: int) -> None:
        self.fate.pods, self.fate.pods_left = mood, left

    @rule(mood=st.sampled_from(ATTEMPT_MOODS), left=st.integers(1, 3))
    def attempts_will(self, mood: str, left: int) -> None:
        self.fate.attempts, self.fate.attempts_left = mood, left

    # --- pods, permits and slots

    @precondition(lambda self: self.world.live_pods())
    @rule(which=small, what=st.sampled_from(("crash", "vanish", "stick", "browser", "disown")))
    def happen_to_pod(self, which: int, what: str) -> None:
        views = list(self.world.live_pods().values())
        view = views[which % len(views)]
        pod = self.world.pods._pods[f"{NAMESPACE}/{view.name}"]
        self.reach(f"{what} of a {'busy' if pod.agent and pod.agent._run else 'free'} pod")
        self.world.do(self._happen(view.name, what))

    async def _happen(self, name: str, what: str) -> None:
        pods = self.world.pods
        match what:
            case "crash":
                pods.crash(NAMESPACE, name, message="Evicted")
            case "vanish":
                pods.vanish(NAMESPACE, name)
            case "stick":
                pods.stuck.add(f"{NAMESPACE}/{name}")
            case "browser":
                agent = pods._pods[f"{NAMESPACE}/{name}"].agent
                if agent is not None and agent.alive and agent._run is None:
                    agent.lose_browser()
            case _:
                if not self.foreign and pods._pods[f"{NAMESPACE}/{name}"].agent is None:
                    pods.alter(NAMESPACE, name, owner_uid=None)  # case P10: somebody else's
                    self.foreign.append(name)
                    self._spare(name)

    def _spare(self, name: str) -> None:
        """What was made somebody else's is not the operator's fault."""
        number = int(name.rpartition("-")[2])
        self.judge._pods[(NAMESPACE, name)].late = True
        self.judge._touched.add((self.judge._pods[(NAMESPACE, name)].pool, number))

    @rule()
    def nodes_return(self) -> None:
        self.world.do(self._unstick())

    async def _unstick(self) -> None:
        pods = self.world.pods
        for name in sorted(pods.stuck):
            pods.stuck.discard(name)
            pod = pods._pods.get(name)
            if pod is not None and pod.view.deleting is not None:
                pods._finish(pod)

    async def _give_room(self) -> None:
        """Nodes come: what waits for one is scheduled."""
        pods = self.world.pods
        for pod in pods._pods.values():
            if (
                pod.view.phase is PodPhase.PENDING
                and pod.course.schedule_ms is None
                and pod.view.deleting is None
            ):
                pods._schedule(pod)

    @rule(number=small, how=st.sampled_from(("clear", "other", "unreadable", "delete")))
    def touch_permit(self, number: int, how: str) -> None:
        """Case P9: somebody edits or deletes a permit by hand."""
        name = permit_name("default", number)
        values = {"clear": None, "other": "nobody-we-know", "unreadable": {"who": "knows"}}
        if how == "delete":
            self.world.remove(Kind.LEASE, name, by="hand")
            return
        with suppress(NotFoundError):
            self.world.edit(Kind.LEASE, name, {"spec": {"holderIdentity": values[how]}}, by="hand")
            self.reach(f"permit by hand: {how}")

    @precondition(lambda self: self.world.all(Kind.SLOT))
    @rule(which=st.integers(0, 6))
    def delete_slot(self, which: int) -> None:
        slots = self.world.all(Kind.SLOT)
        self.world.remove(Kind.SLOT, slots[which % len(slots)]["metadata"]["name"], by="hand")

    # --- the end

    def teardown(self) -> None:
        try:
            if hasattr(self, "spec") and not self.judge.found:
                self.settle()
        finally:
            self.reached.update(self.judge.reached)
            self.reached["pods"] += self.world.happened(What.CREATED)
            self.reached["attempts"] += self.world.happened(What.ATTEMPT_STARTED)
            self.world.close()

    def settle(self) -> None:
        """Heal everything; then every request ends or says why not, and permits are what pods are (I7, I11, D13)."""
        world = self.world
        self.faults.heal()
        self.fate.calm()
        world.do(self._unstick())
        world.do(self._give_room())
        world.do(self._remove_foreign())
        if not world.operator.alive:
            world.start()
        for obj in world.all(Kind.LEASE):
            holder = (obj.get("spec") or {}).get("holderIdentity")
            if holder == "nobody-we-know" or not isinstance(holder, str | None):
                world.edit(Kind.LEASE, obj["metadata"]["name"], {"spec": {"holderIdentity": None}}, by="hand")
        self.countries = list(COUNTRIES)
        self.spec = self.spec | {"suspend": False, "maxConcurrent": max(1, self.spec["maxConcurrent"])}
        self.put_pool()
        for obj in world.all(Kind.REQUEST):
            if obj["spec"].get("suspend") and _state(obj) not in FINISHED:
                world.edit(Kind.REQUEST, obj["metadata"]["name"], {"spec": {"suspend": False}})
        world.until(world.all_finished, within_seconds=SETTLE_SECONDS)
        self.nothing_was_violated()
        world.advance(QUIET_SECONDS)
        self.nothing_was_violated()
        left = unsettled({kind: world.all(kind) for kind in Kind}, world.live_pods())
        assert not left, "\n".join([*left, world.picture()])
        before = len(world.recording.events)
        world.advance(QUIET_SECONDS)
        news = [str(e)[:200] for e in world.recording.events[before:]]
        assert not news, "\n".join(["written though nothing changed (D13):", *news[:20]])

    async def _remove_foreign(self) -> None:
        for name in self.foreign:
            pod = self.world.pods._pods.get(f"{NAMESPACE}/{name}")
            if pod is not None and pod.view.owner_uid is None:
                await self.world.pods.delete(NAMESPACE, name, uid=pod.view.uid, grace_ms=0)


def _state(obj: JsonObject) -> str:
    return str((obj.get("status") or {}).get("state", "Queued"))
