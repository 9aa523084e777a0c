"""The invariants of DESIGN section 3, held against a recording event by event.

    judge = Judge(); recording.listener = judge.take; … ; assert not judge.found

I1 to I6 and I8 to I10 are judged at every event, I7 by `starvation`, I11 by `unsettled`. What a process can't know
yet is allowed for by `staleness_ms` (how late it may hear of a changed spec) and `delay_ms` (how long a call to an
agent may be under way); what somebody did by hand is not held against the operator.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tests.recording import Event, Led, ObjectEvent, PodEvent, Recording, Told

from pageslots.api import CrawlRequest, PageSlotPool
from pageslots.control.instants import instant
from pageslots.control.names import Key, key_of, permit_of, slot_of
from pageslots.control.ports import JsonObject, Kind
from pageslots.simulate.world import What

LAST_WORDS_MS = 5_000
FINISHED = ("Succeeded", "Failed", "Stopped")
NEVER_ON_BUSY = frozenset(
    {"YieldPermit", "Allocation", "Shrink", "Rollout", "Recycle", "Idle", "PoolGone", "Failed", "Closing"}
    | {"PreparationFailed", "PreparationTimeout", "Unschedulable", "StartTimeout"}
)
"""Reasons for which a slot may be closed only when it is free (I6), or that can't be true of a busy one."""


@dataclass(frozen=True, slots=True)
class Found:
    """An invariant that did not hold, and when."""

    invariant: str
    at_ms: int
    text: str

    def __str__(self) -> str:
        return f"{self.invariant} at {self.at_ms}: {self.text}"


@dataclass(slots=True)
class PodTruth:
    """A pod as it is. `late`: created by somebody who led no more, or on a permit touched by hand."""

    uid: str
    number: int
    pool: Key
    owner: str
    late: bool
    leader: str
    terminated: bool = False
    gone_ms: int | None = None
    attempt: str = ""  # the one that it runs


@dataclass(slots=True)
class AttemptTruth:
    """An attempt that an agent has taken."""

    id: str
    request: str
    pod: PodTruth
    country: str
    site: str
    started_ms: int


@dataclass(slots=True)
class Judge:
    """See the module. `found` holds what did not hold."""

    staleness_ms: int = 0
    delay_ms: int = 0
    found: list[Found] = field(default_factory=list)
    leader: str = "operator"
    reached: Counter[str] = field(default_factory=Counter)
    _objects: dict[Kind, dict[Key, JsonObject]] = field(default_factory=lambda: {kind: {} for kind in Kind})
    _specs: dict[Key, list[tuple[int, PageSlotPool]]] = field(default_factory=lambda: defaultdict(list))
    _pods: dict[tuple[str, str], PodTruth] = field(default_factory=dict)  # namespace/name -> the living one
    _by_uid: dict[str, PodTruth] = field(default_factory=dict)
    _running: dict[str, AttemptTruth] = field(default_factory=dict)
    _phantoms: list[tuple[int, AttemptTruth]] = field(default_factory=list)  # until when they may still run
    _vanished: dict[tuple[Key, int], PodTruth] = field(default_factory=dict)
    _starts: dict[tuple[Key, str, str], int] = field(default_factory=dict)
    _touched: set[tuple[Key, int]] = field(default_factory=set)  # permits that somebody edited by hand
    _reasons: dict[str, str] = field(default_factory=dict)
    _verdicts: dict[str, JsonObject] = field(default_factory=dict)
    _by_user: set[str] = field(default_factory=set)  # slots that somebody deleted
    _now: int = 0

    def take(self, event: Event) -> None:
        """Judge one event."""
        self._now = event.at_ms
        match event:
            case ObjectEvent():
                self._take_object(event)
            case PodEvent():
                self._take_pod(event)
            case Told():
                if event.name == "pod.delete":
                    self._reasons[str(event.fields["uid"])] = str(event.fields["reason"])
            case Led():
                self.leader = event.by

    def _say(self, invariant: str, text: str) -> None:
        self.found.append(Found(invariant, self._now, text))

    def _check(self, held: object, invariant: str, text: str) -> None:
        if not held:
            self._say(invariant, text)

    # --- pools

    def _pool_settings(self, pool: Key) -> Iterator[PageSlotPool]:
        """The specs that somebody may act on now: the latest, and those within the staleness."""
        specs = self._specs[pool]
        for index in range(len(specs) - 1, -1, -1):
            yield specs[index][1]
            if specs[index][0] <= self._now - self.staleness_ms:
                return

    def _most(self, pool: Key, what: str) -> int:
        return max((getattr(p.spec, what) for p in self._pool_settings(pool)), default=0)

    def _grace_ms(self, pool: Key) -> int:
        grace = [p.spec.pod_template.termination_grace_period_seconds for p in self._pool_settings(pool)]
        return 1_000 * min(grace, default=10)

    def _site_rules(self, pool: Key, site: str) -> tuple[int, int]:
        """maxPerSite and cooldown in ms: the most generous of what may be known."""
        most, cooldown = 0, 1 << 60
        for known in self._pool_settings(pool):
            rules = next((s for s in known.spec.sites if s.name == site), None)
            own = None if rules is None else rules.max_per_site
            wait = None if rules is None else rules.cooldown_seconds
            most = max(most, known.spec.dispatch.max_per_site if own is None else own)
            seconds = known.spec.dispatch.site_cooldown_seconds if wait is None else wait
            cooldown = min(cooldown, 1_000 * seconds)
        return most, cooldown

    # --- objects

    def _take_object(self, event: ObjectEvent) -> None:
        key = key_of(event.object)
        before = self._objects[event.kind].get(key)
        if event.gone:
            self._objects[event.kind].pop(key, None)
        else:
            self._objects[event.kind][key] = event.object
        after = None if event.gone else event.object
        match event.kind:
            case Kind.POOL:
                self._take_pool(key, before, after)
            case Kind.LEASE:
                self._take_lease(event, key, before, after)
            case Kind.SLOT:
                self._take_slot(event, key, before, after)
            case Kind.REQUEST:
                self._take_request(event, key, before, after)

    def _take_pool(self, key: Key, before: JsonObject | None, after: JsonObject | None) -> None:
        if after is None:
            return
        pool = PageSlotPool.model_validate(after)
        if before is None or before["spec"] != after["spec"]:
            self._specs[key].append((self._now, pool))
        allocated = sum(c.allocated for c in pool.status.countries)
        most = self._most(key, "max_page_slots")
        self._check(allocated <= most, "I5", f"{allocated} slots allocated, maxPageSlots {most}")

    def _take_lease(
        self, event: ObjectEvent, key: Key, before: JsonObject | None, after: JsonObject | None
    ) -> None:
        named = permit_of(key.name)
        if named is None:
            return
        pool, number = Key(key.namespace, named[0]), named[1]
        was, is_ = _holder(before), _holder(after)
        if not event.by.startswith("operator"):
            self._touched.add((pool, number))
            return
        if was == is_:
            return
        pod = self._pods.get((key.namespace, f"{named[0]}-browser-{number}"))
        if pod is not None and not self._is_spared(pod):
            verb = "taken" if is_ else "freed"
            self._say("I2", f"permit {number} {verb} while its pod {pod.uid} exists")
        if was and not is_:
            self._freed(pool, number, was)
        if is_ and not was:
            self._taken(pool, number)

    def _freed(self, pool: Key, number: int, holder: str) -> None:
        vanished = self._vanished.pop((pool, number), None)
        if vanished is None or vanished.owner != holder or vanished.leader != self.leader:
            return
        assert vanished.gone_ms is not None
        until = vanished.gone_ms + self._grace_ms(pool) + LAST_WORDS_MS
        self._check(self._now >= until, "I2", f"permit {number} freed {until - self._now} ms too early")

    def _taken(self, pool: Key, number: int) -> None:
        self._touched.discard((pool, number))
        most = self._most(pool, "max_concurrent")
        self._check(number < most, "I1", f"permit {number} taken, maxConcurrent {most}")
        held = sum(
            bool(_holder(obj))
            for key, obj in self._objects[Kind.LEASE].items()
            if (named := permit_of(key.name)) is not None
            and Key(key.namespace, named[0]) == pool
            and (pool, named[1]) not in self._touched
        )
        self._check(held <= most, "I1", f"{held} permits held, maxConcurrent {most}")

    def _take_slot(
        self, event: ObjectEvent, key: Key, before: JsonObject | None, after: JsonObject | None
    ) -> None:
        numbered = slot_of(key.name)
        if numbered is None:
            return
        pool = Key(key.namespace, numbered[0])
        if before is None and after is not None and event.by.startswith("operator"):
            most = self._most(pool, "max_page_slots")
            self._check(numbered[1] < most, "I5", f"{key.name} created, maxPageSlots {most}")
        if after is None and before is not None:
            uid = before["metadata"]["uid"]
            if not event.by.startswith("operator"):
                self._by_user.add(uid)
                return
            pods = [p for p in self._pods.values() if p.owner == uid and not self._is_spared(p)]
            self._check(not pods, "I6", f"{key.name} deleted while its pod exists")

    def _take_request(
        self, event: ObjectEvent, key: Key, before: JsonObject | None, after: JsonObject | None
    ) -> None:
        if after is None:
            self._request_gone(event, key, before)
            return
        status, uid = after.get("status") or {}, after["metadata"]["uid"]
        verdict = self._verdicts.get(uid)
        if verdict is not None:
            self._check(_verdict(status) == verdict, "I4", f"{key.name}: its verdict was overwritten")
        elif status.get("state") in FINISHED:
            self._verdicts[uid] = _verdict(status)
        was = ((before or {}).get("status") or {}).get("state", "Queued")
        if was == "Running" and status.get("state") != "Running":
            self._ended(key, before or {})
        if status.get("state") == "Running" and "attempt" in status:
            self._named(key, after)

    def _request_gone(self, event: ObjectEvent, key: Key, before: JsonObject | None) -> None:
        if before is None or not event.by.startswith("operator"):
            return
        request = CrawlRequest.model_validate(before)
        owned = bool(before["metadata"].get("ownerReferences"))
        finished = instant(request.status.finish_time)
        due = finished is not None and self._now >= finished + 1_000 * request.spec.ttl_seconds_after_finished
        self._check(owned or due, "I10", f"{key.name} was deleted before its time")

    def _ended(self, key: Key, before: JsonObject) -> None:
        """An attempt is over for the API: nothing of it may run any more (I3)."""
        id_ = before["status"].get("attempt", {}).get("id", "")
        self._check(id_ not in self._running, "I3", f"{key.name}: {id_} still runs, and was written off")
        phantom = next((until for until, a in self._phantoms if a.id == id_ and until > self._now), None)
        if phantom is not None and self._running_pod_leader(id_) == self.leader:
            self._say("I3", f"{key.name}: {id_} was written off {phantom - self._now} ms too early")

    def _running_pod_leader(self, id_: str) -> str:
        return next((a.pod.leader for _, a in self._phantoms if a.id == id_), "")

    def _named(self, key: Key, after: JsonObject) -> None:
        """Two Running requests never name one pod."""
        pod = after["status"]["attempt"]["podUID"]
        for other, obj in self._objects[Kind.REQUEST].items():
            status = obj.get("status") or {}
            if other != key and status.get("state") == "Running" and "children" not in status:
                named = status.get("attempt", {}).get("podUID")
                self._check(named != pod, "I3", f"{key.name} and {other.name} both run on pod {pod}")

    # --- pods and attempts

    def _take_pod(self, event: PodEvent) -> None:
        namespace, _, name = event.pod.partition("/")
        if event.what is What.CREATED:
            self._created(event, namespace, name)
            return
        pod = self._by_uid.get(event.uid)
        if pod is None:
            return
        match event.what:
            case What.DELETING:
                self._deleting(event, pod)
            case What.TERMINATED:
                pod.terminated = True
                self._end_attempts(pod)
            case What.GONE:
                self._gone(pod, namespace, name)
            case What.ATTEMPT_STARTED:
                self._started(event, pod)
            case What.ATTEMPT_ENDED:
                self._running.pop(event.attempt, None)
                pod.attempt = ""
            case _:
                pass

    def _created(self, event: PodEvent, namespace: str, name: str) -> None:
        pool = Key(namespace, event.pool)
        late = event.by.startswith("operator-") and event.by != self.leader
        late = late or not event.by.startswith("operator") or (pool, event.number) in self._touched
        pod = PodTruth(event.uid, event.number, pool, event.owner, late, self.leader)
        self._check((namespace, name) not in self._pods, "I1", f"two pods named {name}")
        self._pods[(namespace, name)] = self._by_uid[event.uid] = pod
        self._vanished.pop((pool, event.number), None)
        if late:
            self.reached["a late or foreign pod"] += 1
            return
        holder = _holder(self._objects[Kind.LEASE].get(Key(namespace, f"{event.pool}-permit-{event.number}")))
        self._check(
            not event.owner or holder == event.owner,
            "I2",
            f"{name} created for {event.owner}, its permit is held by {holder or 'nobody'}",
        )

    def _deleting(self, event: PodEvent, pod: PodTruth) -> None:
        if not event.by.startswith("operator"):
            return
        reason = self._reasons.get(pod.uid, "")
        free = self._is_spared(pod)
        if pod.attempt and reason in NEVER_ON_BUSY and not free:
            self._say("I6", f"busy pod {event.pod} closed for {reason}")
        owner = self._slot(pod.owner)
        if reason == "Ownerless":
            self._check(owner is None, "I9", f"{event.pod} was deleted as ownerless, its slot exists")
        if reason == "NoPermit" and not free:
            lease = self._objects[Kind.LEASE].get(
                Key(pod.pool.namespace, f"{pod.pool.name}-permit-{pod.number}")
            )
            held = _holder(lease) == pod.owner
            two = sum(_holder(o) == pod.owner for o in self._objects[Kind.LEASE].values()) > 1
            self._check(two or not held, "I9", f"{event.pod} was deleted for want of the permit that it has")

    def _is_spared(self, pod: PodTruth) -> bool:
        """What is not as it should be for reasons that are not the operator's."""
        return pod.late or (pod.pool, pod.number) in self._touched

    def _slot(self, uid: str) -> JsonObject | None:
        return next((o for o in self._objects[Kind.SLOT].values() if o["metadata"]["uid"] == uid), None)

    def _gone(self, pod: PodTruth, namespace: str, name: str) -> None:
        del self._pods[(namespace, name)]
        pod.gone_ms, pod.leader = self._now, self.leader
        if not pod.terminated:
            self.reached["a pod that vanished"] += 1
            self._vanished[(pod.pool, pod.number)] = pod
            until = self._now + self._grace_ms(pod.pool) + LAST_WORDS_MS
            self._phantoms = [(at, a) for at, a in self._phantoms if at > self._now]
            self._phantoms.extend((until, a) for a in self._running.values() if a.pod is pod)
        self._end_attempts(pod)

    def _end_attempts(self, pod: PodTruth) -> None:
        pod.attempt = ""
        for id_ in [a.id for a in self._running.values() if a.pod is pod]:
            del self._running[id_]

    def _started(self, event: PodEvent, pod: PodTruth) -> None:
        new = AttemptTruth(event.attempt, event.request_uid, pod, event.country, event.site, self._now)
        possible = [*self._running.values()]
        possible += [a for until, a in self._phantoms if until > self._now and a.pod.leader == self.leader]
        for other in possible:
            if other.request == new.request:
                self._say("I3", f"{new.id} starts while {other.id} runs")
            if other.pod.owner == pod.owner or other.pod is pod:
                self._say("I3", f"{new.id} starts on a slot that runs {other.id}")
        self._check(new.request not in self._verdicts, "I4", f"{new.id} starts after its request's end")
        most, cooldown = self._site_rules(pod.pool, event.site)
        key = (pod.pool, event.country, event.site)
        together = sum(a.country == event.country and a.site == event.site for a in self._running.values())
        self._check(
            together < most, "I8", f"{new.id}: {together + 1} attempts at {event.site}, at most {most}"
        )
        last = self._starts.get(key)
        early = 0 if last is None else last + cooldown - self.delay_ms - self._now
        self._check(early <= 0, "I8", f"{new.id}: {event.site} is visited {early} ms too early")
        self._starts[key] = self._now
        self._running[event.attempt] = new
        pod.attempt = event.attempt


def _holder(lease: JsonObject | None) -> str:
    return str(((lease or {}).get("spec") or {}).get("holderIdentity") or "")


def _verdict(status: Mapping[str, object]) -> JsonObject:
    conditions = status.get("conditions")
    assert isinstance(conditions, list | tuple)
    ends = {c["type"]: (c["status"], c["reason"], c["message"]) for c in conditions if c["type"] in _ENDS}
    return {"state": status["state"], "finishTime": status.get("finishTime"), **ends}


_ENDS = ("Finished", "Succeeded")


def judge(events: Iterable[Event], *, staleness_ms: int = 0, delay_ms: int = 0) -> list[Found]:
    """Everything that did not hold in a recording."""
    judging = Judge(staleness_ms, delay_ms)
    for event in events:
        judging.take(event)
    return judging.found


def starvation(recording: Recording, *, bound_ms: int) -> list[Found]:
    """I7 in a world in which every queued request could start: per country, how long one waited at most.

    Waited counts from the later of the request's creation and the country's last start.
    """
    queued: dict[str, dict[str, int]] = defaultdict(dict)
    last: dict[str, int] = defaultdict(int)
    found: list[Found] = []
    for event in recording.events:
        if not isinstance(event, ObjectEvent) or event.kind is not Kind.REQUEST:
            continue
        uid, country = event.object["metadata"]["uid"], event.object["spec"]["country"]
        state = (event.object.get("status") or {}).get("state", "Queued")
        waiting = queued[country]
        if state == "Queued" and not event.gone:
            waiting.setdefault(uid, event.at_ms)
            continue
        own = waiting.pop(uid, None)
        if own is not None and state == "Running":
            since = max(min([own, *waiting.values()]), last[country])
            if event.at_ms - since > bound_ms:
                found.append(Found("I7", event.at_ms, f"{country} waited {event.at_ms - since} ms"))
            last[country] = event.at_ms
    return found


def unsettled(objects: Mapping[Kind, Iterable[JsonObject]], pods: Iterable[str]) -> list[str]:
    """I11, once everything has settled: what is left hanging. `pods`: names of those that exist."""
    holders = {o["metadata"]["name"]: _holder(o) for o in objects[Kind.LEASE]}
    held = {name.replace("-permit-", "-browser-") for name, holder in holders.items() if holder}
    wrong = [f"permits held {sorted(held)}, live pods {sorted(pods)}"] if held != set(pods) else []
    for obj in objects[Kind.REQUEST]:
        status = obj.get("status") or {}
        if status.get("state") in FINISHED:
            continue
        reasons = [c["reason"] for c in status.get("conditions", ()) if c["type"] == "Finished"]
        if not reasons:
            wrong.append(
                f"request {obj['metadata']['name']} ({status.get('state')}) does not say why it waits"
            )
    return wrong
