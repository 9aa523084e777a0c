"""How pods and attempts go in the stateful test: by a seed and by moods that rules set."""

from dataclasses import dataclass, field
from random import Random

from pageslots.control.ports import PodOrder
from pageslots.simulate.courses import AttemptCourse, PodCourse
from pageslots.wire import AttemptSpec, Outcome

FOR_EVER_MS = 10_000_000
POD_MOODS = ("fine", "no room", "slow", "gives up", "never starts")
ATTEMPT_MOODS = ("fine", "hangs", "dies", "runs out of memory", "fails", "is long")
FAILURES = (
    Outcome.BLOCKED,
    Outcome.PROXY_ERROR,
    Outcome.SITE_ERROR,
    Outcome.BROWSER_CRASH,
    Outcome.NOT_FOUND,
    Outcome.BAD_REQUEST,
)


@dataclass(slots=True)
class Fate:
    """A `Script`. A mood lasts for the next `left` pods or attempts, then all is fine again."""

    seed: int = 0
    pods: str = "fine"
    pods_left: int = 0
    attempts: str = "fine"
    attempts_left: int = 0
    _random: Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)

    def calm(self) -> None:
        """From here on all goes well."""
        self.pods = self.attempts = "fine"

    def pod(self, order: PodOrder) -> PodCourse:
        """See `Script`."""
        del order
        self.pods_left -= 1
        draw = self._random
        match self.pods if self.pods_left >= 0 else "fine":
            case "no room":
                return PodCourse(schedule_ms=None, message="0/3 nodes have room")
            case "slow":
                return PodCourse(schedule_ms=draw.randint(0, 8_000), start_ms=draw.randint(0, 6_000))
            case "gives up":
                return PodCourse(failure=draw.choice((Outcome.PROXY_ERROR, Outcome.BROWSER_CRASH)))
            case "never starts":
                return PodCourse(start_ms=FOR_EVER_MS)
            case _:
                return PodCourse(
                    start_ms=draw.randint(0, 800),
                    prepare_ms=draw.randint(0, 1_500),
                    end_ms=draw.randint(0, 1_000),
                )

    def attempt(self, order: PodOrder, spec: AttemptSpec) -> AttemptCourse:
        """See `Script`."""
        del order, spec
        self.attempts_left -= 1
        draw = self._random
        duration_ms = draw.choice((0, 200, 1_000, 3_000, 8_000))
        match self.attempts if self.attempts_left >= 0 else "fine":
            case "hangs":
                return AttemptCourse(duration_ms=FOR_EVER_MS, progresses=False)
            case "dies":
                return AttemptCourse(duration_ms=duration_ms, pod_dies=True, message="Evicted")
            case "runs out of memory":
                return AttemptCourse(duration_ms=duration_ms, pod_dies=True, out_of_memory=True)
            case "fails":
                return AttemptCourse.failing(draw.choice(FAILURES), duration_ms=duration_ms)
            case "is long":
                return AttemptCourse(duration_ms=draw.choice((20_000, 40_000, 90_000)))
            case _:
                return AttemptCourse(duration_ms=duration_ms)
