"""Which calls go wrong, and how: told one by one, or drawn from a seed. The same seed, the same faults."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random


class Fault(StrEnum):
    """Ways for a call, a watch event or a complete list to go wrong."""

    ERROR = "error"  # no answer, nothing done
    LOST = "lost"  # done, and the answer is lost
    SLOW = "slow"  # done late
    SLOW_ANSWER = "slow-answer"  # done at once, answered late
    THROTTLED = "throttled"  # 429
    FORBIDDEN = "forbidden"  # 403: a quota
    CONFLICT = "conflict"  # 409 though nothing changed
    STALE = "stale"  # a list as it was at the call before
    EMPTY = "empty"  # a list without anything, called complete
    GAP = "gap"  # watch: this and the next events are lost, then everything is listed anew
    SILENCE = "silence"  # watch: this and all later events never come, until healed
    LIE = "lie"  # agent status: free and ready, whatever is true
    REFUSED = "refused"  # agent: Busy, whatever is true
    HANG = "hang"  # agent: no answer for a long time, then unreachable; nothing done


WRITE = (Fault.ERROR, Fault.LOST, Fault.SLOW, Fault.SLOW_ANSWER, Fault.THROTTLED)
MENU: Mapping[str, Sequence[Fault]] = {
    "get": (Fault.ERROR, Fault.SLOW_ANSWER, Fault.THROTTLED),
    "list": (Fault.ERROR, Fault.STALE, Fault.SLOW_ANSWER, Fault.THROTTLED),
    "create": (*WRITE, Fault.FORBIDDEN),
    "patch": (*WRITE, Fault.CONFLICT),
    "delete": WRITE,
    "event": (Fault.GAP, Fault.SLOW),
    "sync": (Fault.STALE,),
    "pod.get": (Fault.ERROR, Fault.SLOW_ANSWER),
    "pod.list": (Fault.ERROR, Fault.STALE),
    "pod.create": (*WRITE, Fault.FORBIDDEN),
    "pod.delete": WRITE,
    "pod.event": (Fault.GAP, Fault.SLOW),
    "pod.sync": (Fault.STALE,),
    "agent.status": (Fault.ERROR, Fault.HANG, Fault.SLOW_ANSWER),
    "agent.put_attempt": (Fault.ERROR, Fault.LOST, Fault.HANG, Fault.SLOW, Fault.SLOW_ANSWER),
    "agent.acknowledge": (Fault.ERROR, Fault.LOST),
    "agent.stop": (Fault.ERROR, Fault.LOST, Fault.HANG),
    "agent.drain": (Fault.ERROR, Fault.LOST, Fault.HANG),
    "agent.records": (Fault.ERROR,),
}
"""What can happen to which verb in a world that is merely unreliable: it delays, loses and repeats, but says
nothing untrue except in late lists. EMPTY, SILENCE, LIE and REFUSED are asked for by name."""


@dataclass(frozen=True, slots=True)
class Injected:
    """A fault that was put into effect."""

    verb: str
    name: str
    fault: Fault


@dataclass(slots=True)
class _Told:
    verb: str
    fault: Fault
    name: str | None
    left: int | None  # None: until healed


class Faults:
    """Decides for each call. `rate`: share of calls that go wrong by chance, of those in `menu`."""

    def __init__(
        self,
        *,
        seed: int = 0,
        rate: float = 0.0,
        menu: Mapping[str, Sequence[Fault]] = MENU,
        slow_seconds: float = 1.0,
        hang_seconds: float = 30.0,
    ) -> None:
        self.slow_seconds = slow_seconds
        self.hang_seconds = hang_seconds
        self.calls: Counter[str] = Counter()  # verb -> calls so far, faulty or not
        self.injected: list[Injected] = []
        self._random = Random(seed)
        self._rate = rate
        self._menu = menu
        self._told: list[_Told] = []

    def on(self, verb: str, fault: Fault, *, name: str | None = None, times: int | None = 1) -> None:
        """The next `times` calls of `verb` (None: all until healed), of this name (None: any), go wrong so.

        `name` is the object's or the pod's, for lists and watches the kind (`Lease`; pods: "").
        """
        self._told.append(_Told(verb, fault, name, times))

    def heal(self) -> None:
        """From here on all goes well."""
        self._told.clear()
        self._rate = 0.0

    def next(self, verb: str, name: str) -> Fault | None:
        """What happens to this call."""
        self.calls[verb] += 1
        fault = self._from_told(verb, name)
        if (
            fault is None
            and self._rate
            and self._random.random() < self._rate
            and (menu := self._menu.get(verb))
        ):
            fault = self._random.choice(menu)
        if fault is not None:
            self.injected.append(Injected(verb, name, fault))
        return fault

    def _from_told(self, verb: str, name: str) -> Fault | None:
        for told in self._told:
            if told.verb == verb and told.name in (None, name):
                if told.left is not None:
                    told.left -= 1
                    if told.left == 0:
                        self._told.remove(told)
                return told.fault
        return None
