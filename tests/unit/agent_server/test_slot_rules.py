"""Laws of a slot under any sequence of calls, ends and failures: a model beside the real thing."""

import asyncio

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.fakes.vtime import VirtualLoop
from tests.unit.agent_server.slots import FakeBrowser, FakeCrawl, a_config, a_drain, a_spec, a_stop, settle

from pageslots.wire import AttemptState, Outcome, Phase, RefusalCode, StopReason
from pageslots_agent.arbiter import RefusedError
from pageslots_agent.slot import Slot

EPOCHS = st.integers(1, 4)
PODS = st.sampled_from(["pod-1", "pod-1", "pod-1", "pod-0"])
NAMES = st.sampled_from(["a", "b", "c", "d"])
REPORTED = [Outcome.OK, Outcome.BLOCKED, Outcome.BROWSER_CRASH, Outcome.SITE_ERROR]


class SlotMachine(RuleBasedStateMachine):
    """What an operator, a browser and a crawl can do to a slot, in any order."""

    def __init__(self):
        super().__init__()
        self.loop = VirtualLoop()
        self.browser, self.crawl = FakeBrowser(), FakeCrawl()
        self.epoch = 0  # the highest accepted
        self.drained = False
        self.ended: dict[str, Outcome] = {}
        self.phases: list[Phase] = []

        async def start():
            slot = Slot(a_config(), self.browser, load_crawl=self.crawl.load, wall_clock=lambda: 1)
            return slot, asyncio.create_task(slot.run())

        self.slot, self.worker = self.loop.run_until_complete(start())
        self.turn()

    def turn(self):
        """Everything that needs no time happens."""
        self.loop.run_until_complete(settle())

    def teardown(self):
        self.worker.cancel()
        self.loop.run_until_complete(asyncio.gather(self.worker, return_exceptions=True))
        self.loop.close()

    def attempt(self, call, *arguments):
        """The call's result, or the code of its refusal."""

        async def make():
            return call(*arguments)

        try:
            return self.loop.run_until_complete(make())
        except RefusedError as refused:
            return refused.refusal.code

    def sender_is_refused(self, pod, epoch, answer):
        """Whether the sender alone was reason enough; then the slot must have said so."""
        if pod != "pod-1":
            assert answer is RefusalCode.OTHER_POD
            return True
        if epoch < self.epoch:
            assert answer is RefusalCode.OLD_EPOCH
            return True
        assert answer not in {RefusalCode.OTHER_POD, RefusalCode.OLD_EPOCH}
        self.epoch = epoch
        return False

    @property
    def running(self):
        return [a for a in self.crawl.attempts if a.is_running]

    @rule(name=NAMES, pod=PODS, epoch=EPOCHS)
    def put(self, name, pod, epoch):
        before, known = self.slot.phase, {a.spec.id for a in self.crawl.attempts}
        answer = self.attempt(self.slot.admit, a_spec(name, pod_uid=pod, epoch=epoch))
        self.turn()
        if self.sender_is_refused(pod, epoch, answer):
            return
        if name in known:
            assert answer.id == name
        elif self.drained:
            assert answer is RefusalCode.DRAINED
        elif before is Phase.RUNNING:
            assert answer is RefusalCode.BUSY
        elif before is not Phase.READY:
            assert answer is RefusalCode.NOT_READY
        else:
            assert answer.state is AttemptState.RUNNING
            assert [a.spec.id for a in self.running] == [name]

    @precondition(lambda self: self.running)
    @rule(outcome=st.sampled_from(REPORTED))
    def end(self, outcome):
        [attempt] = self.running
        attempt.end(outcome)
        self.turn()
        self.ended[attempt.spec.id] = outcome

    @rule(name=NAMES, pod=PODS, epoch=EPOCHS)
    def stop(self, name, pod, epoch):
        running = [a.spec.id for a in self.running]
        answer = self.attempt(self.slot.stop, name, a_stop(StopReason.STOPPED, pod_uid=pod, epoch=epoch))
        self.turn()
        if self.sender_is_refused(pod, epoch, answer):
            return
        if name in running:
            self.ended[name] = Outcome.STOPPED
        elif name in self.ended:
            assert answer.outcome is self.ended[name]
        else:
            assert answer is RefusalCode.NO_SUCH_ATTEMPT

    @rule(name=NAMES)
    def acknowledge(self, name):
        running = [a.spec.id for a in self.running]
        answer = self.attempt(self.slot.acknowledge, name)
        if name in running:
            assert answer is RefusalCode.BUSY
        elif name not in self.ended:
            assert answer is RefusalCode.NO_SUCH_ATTEMPT
        else:
            assert answer is None
            shown = self.slot.status().attempt
            assert shown is None or shown.id != name

    @rule(pod=PODS, epoch=EPOCHS, meant=st.sampled_from([False, False, True]))
    def drain(self, pod, epoch, meant):
        if not meant and not self.running:
            return  # else most sequences would be over after a few calls
        busy = bool(self.running)
        answer = self.attempt(self.slot.drain, a_drain(pod_uid=pod, epoch=epoch))
        self.turn()
        if self.sender_is_refused(pod, epoch, answer):
            return
        if busy:
            assert answer is RefusalCode.BUSY
        else:
            assert answer.phase is Phase.DRAINED
            self.drained = True

    @rule()
    def lose_browser(self):
        async def lose():
            self.slot.browser_lost()

        self.browser.hangs = True
        self.loop.run_until_complete(lose())
        self.turn()

    @precondition(lambda self: self.slot.phase is Phase.PREPARING)
    @rule(works=st.booleans())
    def prepare_again(self, works):
        """The preparation under way is dropped for a new one with this result."""
        self.browser.hangs, self.browser.gives_up = False, not works

        async def wake():
            self.slot._changed()

        self.loop.run_until_complete(wake())
        self.turn()

    @rule(seconds=st.sampled_from([0.5, 11.0, 40.0]))
    def let_time_pass(self, seconds):
        self.loop.run_until_complete(asyncio.sleep(seconds))
        self.turn()

    @invariant()
    def at_most_one_attempt_runs_and_the_phase_says_so(self):
        assert len(self.running) == (1 if self.slot.phase is Phase.RUNNING else 0)

    @invariant()
    def no_attempt_starts_twice(self):
        names = [a.spec.id for a in self.crawl.attempts]
        assert len(names) == len(set(names))

    @invariant()
    def what_has_ended_keeps_its_outcome(self):
        for name, outcome in self.ended.items():
            assert self.slot.report(name).outcome is outcome

    @invariant()
    def the_status_agrees_with_the_model(self):
        status = self.slot.status()
        assert status.epoch == self.epoch
        assert (status.phase is Phase.DRAINED) == self.drained
        if self.running:
            assert status.attempt is not None
            assert status.attempt.id == self.running[0].spec.id

    @invariant()
    def the_phases_move_as_drawn(self):
        phase = self.slot.phase
        if self.phases and phase is not self.phases[-1]:
            before = self.phases[-1]
            assert before is not Phase.DRAINED
            assert before is not Phase.GAVE_UP or phase is Phase.DRAINED
        self.phases.append(phase)


TestSlotMachine = SlotMachine.TestCase
TestSlotMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
