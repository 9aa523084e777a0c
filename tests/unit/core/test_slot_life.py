"""A slot's life by plans: created, granted, started, prepared, used, closed, freed; and what goes wrong on the way."""

from dataclasses import replace

import pytest
from tests.world import S, Said, World, a_pool, empty, granted, idle, preparing, running

from pageslots.core.actions import (
    CloseSlot,
    CreatePod,
    CreateSlot,
    DeletePod,
    DeleteSlot,
    FinishRequest,
    FreePermit,
    NoteUnschedulable,
    RequeueRequest,
    SendAttempt,
    StopAttempt,
    TakePermit,
)
from pageslots.core.model import (
    AgentPhase,
    AttemptId,
    Country,
    Instant,
    Outcome,
    Permit,
    Pod,
    PodPhase,
    PodUid,
    Report,
    RequestState,
    RequestUid,
    Slot,
    SlotState,
    SlotUid,
    Version,
)
from pageslots.core.slots import Role


def kinds(said: Said) -> list[str]:
    return [type(a).__name__ for a in said.actions if not type(a).__name__.startswith("Note")]


def test_a_first_request_of_a_country_without_a_slot_gets_one_at_once():
    world = a_pool("SG", "MY").with_allocation(SG=0, MY=0)
    world.index.memory.allocation = replace(world.index.memory.allocation, considered=frozenset())
    world.with_queued("SG", 1)

    assert world.plan().created == {Country("SG"): 20}


def test_allocation_is_computed_anew_every_interval_only():
    world = a_pool("SG", interval_ms=60 * S, starvation_ms=600 * S).with_queued("SG").allocated_as_is()

    assert world.plan().created == {}
    assert world.later(59_999).plan().created == {}
    assert world.later(1).plan().created == {Country("SG"): 20}


def test_a_granted_slot_gets_its_pod():
    """Case P1: also when the operator died between permit and pod."""
    world = a_pool("SG").with_slots(granted("SG")).allocated_as_is()

    assert world.accept().of(CreatePod) == [CreatePod(0, world.slot("SG"), None)]
    assert kinds(world.plan()) == []


def test_a_page_is_prepared_for_the_request_that_needs_it():
    world = a_pool("SG").with_slots(empty("SG"), empty("SG"))
    world.with_queued("SG", 1).allocated_as_is()
    [request] = world.queued()

    assert [grant.prepare_for for grant in world.plan().of(TakePermit)] == [request.uid, None]


def test_permits_go_to_the_lowest_free_numbers_and_carry_what_was_read():
    world = a_pool("SG").with_slots(idle("SG"), empty("SG"), empty("SG")).with_queued("SG", 3)
    world.index.put_permit(Permit(2, Version("9")))
    world.allocated_as_is()

    grants = world.plan().of(TakePermit)
    assert [(grant.number, grant.seen) for grant in grants] == [(1, None), (2, Version("9"))]


def test_a_number_whose_pod_still_exists_is_not_granted():
    """Invariant I2; the pod itself is removed on sight (case P4)."""
    world = a_pool("SG", max_concurrent=1).with_slots(empty("SG")).with_queued("SG").allocated_as_is()
    world.index.put_pod(Pod(0, PodUid("late"), world.slot("SG"), PodPhase.RUNNING, world.now))

    said = world.plan()
    assert said.granted == []
    assert said.killed == [(PodUid("late"), "NoPermit")]


def test_a_foreign_pod_is_never_touched_and_lowers_what_can_be_granted():
    """Case P10."""
    world = a_pool("SG", max_concurrent=1).with_slots(empty("SG")).with_queued("SG").allocated_as_is()
    world.index.put_pod(Pod(0, PodUid("foreign"), None, PodPhase.RUNNING, world.now))

    assert kinds(world.plan()) == []


def test_a_poisoned_permit_is_left_alone():
    """Case P9."""
    world = a_pool("SG", max_concurrent=1).with_slots(empty("SG")).with_queued("SG").allocated_as_is()
    world.index.put_permit(Permit(0, Version("1"), SlotUid("???"), poisoned=True))

    assert kinds(world.plan()) == []


def test_the_permit_of_a_missing_holder_is_a_candidate():
    world = a_pool("SG").allocated_as_is()
    world.index.put_permit(Permit(3, Version("5"), SlotUid("long gone")))

    assert world.accept().of(FreePermit) == [FreePermit(3, Version("5"))]
    assert kinds(world.plan()) == []


def test_a_slot_that_holds_two_permits_answers_for_one():
    world = a_pool("SG").with_slots(idle("SG")).allocated_as_is()
    world.index.put_permit(Permit(5, Version("5"), world.slot("SG")))

    assert world.plan().of(FreePermit) == [FreePermit(5, Version("5"))]


def test_a_terminated_pod_is_deleted_at_once_and_its_permit_freed_when_it_is_gone():
    """Case P5."""
    world = a_pool("SG").with_slots(idle("SG")).allocated_as_is()
    pod = world.pod_of(world.slot("SG"))
    world.index.put_pod(replace(pod, phase=PodPhase.TERMINATED, message="Evicted"))

    assert world.accept().of(DeletePod) == [DeletePod(0, pod.uid, "Terminated", "Evicted")]
    assert world.plan().of(FreePermit) == []
    world.index.drop_pod(0, pod.uid)
    assert world.plan().of(FreePermit) == [FreePermit(0, Version("1"))]


def test_the_permit_of_a_pod_that_vanished_unseen_is_held_for_its_last_words():
    """Invariant I2: grace and 5 s after nobody has seen its containers end."""
    world = a_pool("SG", grace_ms=10 * S).with_slots(idle("SG")).allocated_as_is()
    world.index.drop_pod(0, world.pod_of(world.slot("SG")).uid)

    world.accept()
    assert world.later(14_999).plan().of(FreePermit) == []
    assert world.later(1).plan().of(FreePermit) == [FreePermit(0, Version("1"))]


def test_no_pod_is_created_on_a_permit_whose_pod_has_gone():
    world = a_pool("SG").with_slots(idle("SG")).with_queued("SG").allocated_as_is()
    world.index.drop_pod(0, world.pod_of(world.slot("SG")).uid, terminated=True)

    said = world.plan()
    assert (said.of(CreatePod), len(said.of(FreePermit))) == ([], 1)


def test_a_pod_of_the_same_name_is_another_pod():
    """Case D12: the attempt is lost, never credited to the new pod."""
    world = a_pool("SG").with_slots(running("SG")).allocated_as_is()
    slot = world.slot("SG")
    request, old = world.request_on(slot), world.pod_of(slot)
    world.index.put_pod(replace(old, uid=PodUid("another"), created=world.now))
    world.accept()

    assert world.plan().of(RequeueRequest) == []
    [verdict] = world.later(15 * S).plan().of(RequeueRequest)
    assert (verdict.request, verdict.outcome) == (request.uid, Outcome.SLOT_LOST)


def test_a_lost_attempt_waits_until_nothing_of_it_can_run():
    """Invariant I3."""
    world = a_pool("SG", grace_ms=10 * S).with_slots(running("SG")).allocated_as_is()
    pod = world.pod_of(world.slot("SG"))
    world.index.drop_pod(0, pod.uid)
    world.accept()

    assert world.later(14_999).plan().of(RequeueRequest) == []
    assert len(world.later(1).plan().of(RequeueRequest)) == 1


def test_an_attempt_is_lost_at_once_when_its_containers_have_ended():
    world = a_pool("SG").with_slots(running("SG")).allocated_as_is()
    pod = world.pod_of(world.slot("SG"))
    world.index.put_pod(replace(pod, phase=PodPhase.TERMINATED, out_of_memory=True))

    [verdict] = world.plan().of(RequeueRequest)
    assert verdict.outcome is Outcome.OUT_OF_MEMORY


def test_what_the_agent_said_last_counts_although_its_pod_is_gone():
    """Case D11: it ended well, then its node went."""
    world = a_pool("SG").with_slots(running("SG")).allocated_as_is()
    slot = world.slot("SG")
    pod = world.pod_of(slot)
    world.end(slot)
    world.index.drop_agent(pod.uid)
    world.index.drop_pod(0, pod.uid)

    [verdict] = world.plan().of(FinishRequest)
    assert verdict.state is RequestState.SUCCEEDED


def test_after_a_restart_an_attempt_without_a_pod_is_lost_only_after_the_grace_period():
    world = a_pool("SG").with_slots(running("SG")).allocated_as_is()
    world.index.records.set_pod(0, None)
    world.index.memory.since = None
    world.index.drop_agent(PodUid("pod-0-1"))
    world.index.put_request(replace(world.request_on(world.slot("SG")), seen=Version("2")))
    world.accept()

    said = world.later(14 * S).plan()
    assert (said.of(RequeueRequest), said.of(CreatePod), said.of(FreePermit)) == ([], [], [])
    said = world.later(1 * S).plan()
    assert (len(said.of(RequeueRequest)), len(said.of(FreePermit))) == (1, 1)


def test_an_attempt_that_the_agent_does_not_have_is_sent_again():
    """Half-done things first: the operator died between writing Running and giving it to the agent."""
    world = a_pool("SG").with_slots(running("SG")).allocated_as_is()
    slot = world.slot("SG")
    attempt = world.request_on(slot).attempt
    world.index.put_agent(replace(world.agent_of(slot), phase=AgentPhase.READY, report=None))

    [deed] = world.accept().of(SendAttempt)
    assert deed.attempt == attempt.id
    world.index.settle(deed)
    assert world.later(9 * S).plan().of(SendAttempt) == []
    assert world.later(1 * S).plan().of(SendAttempt) == [deed]


def test_an_attempt_that_a_drained_agent_never_took_costs_nothing():
    world = a_pool("SG").with_slots(running("SG")).allocated_as_is()
    slot = world.slot("SG")
    world.index.put_agent(replace(world.agent_of(slot), phase=AgentPhase.DRAINED, report=None))

    [verdict] = world.plan().of(RequeueRequest)
    assert (verdict.outcome, verdict.next_attempt) == (None, None)


def test_an_attempt_that_no_request_names_is_stopped_and_its_slot_not_free_before():
    """Case D25: the request was deleted while the operator was down."""
    world = a_pool("SG").with_slots(running("SG")).with_queued("SG").allocated_as_is()
    slot = world.slot("SG")
    world.index.drop_request(world.request_on(slot).uid)

    said = world.accept()
    assert said.of(StopAttempt) == [StopAttempt(AttemptId("r0-1"), slot, PodUid("pod-0-1"), "Stopped")]
    assert said.starts == []
    report = Report(AttemptId("r0-1"), RequestUid("r0"), ended=True, outcome=Outcome.STOPPED)
    world.index.put_agent(replace(world.agent_of(slot), phase=AgentPhase.READY, report=report))
    assert len(world.plan().starts) == 1


def test_a_drained_agent_s_pod_is_deleted_without_further_tries():
    """Case D25: the operator died after the agent had accepted the drain."""
    world = a_pool("SG").with_slots(idle("SG")).with_queued("SG").allocated_as_is()
    slot = world.slot("SG")
    world.index.put_agent(replace(world.agent_of(slot), phase=AgentPhase.DRAINED))

    said = world.accept()
    assert (len(said.of(DeletePod)), said.starts) == (1, [])
    assert kinds(world.plan()) == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"stop": True}, "Stopped"), ({"suspended": True}, "Suspended"), ({"deleted": True}, "Stopped")],
)
def test_a_running_request_is_stopped_as_asked(change, reason):
    world = a_pool("SG").with_slots(running("SG")).allocated_as_is()
    world.index.put_request(replace(world.request_on(world.slot("SG")), **change))

    assert [deed.reason for deed in world.plan().of(StopAttempt)] == [reason]


def test_a_stop_is_repeated_when_nothing_comes_of_it():
    world = a_pool("SG").with_slots(running("SG", request={"stop": True})).allocated_as_is()
    [deed] = world.accept().of(StopAttempt)
    world.index.settle(deed)

    assert world.later(9_999).plan().of(StopAttempt) == []
    assert world.later(1).plan().of(StopAttempt) == [deed]


def test_a_queued_request_ends_by_stop_by_timeout_and_by_deadline():
    world = a_pool("SG").allocated_as_is()
    world.add_queued("SG", stop=True)
    world.add_queued("SG", waiting=1 * S, queue_timeout_ms=30 * S)
    world.add_queued("SG", first_started=Instant(world.now - 1 * S), deadline_ms=60 * S)

    assert [v.reason for v in world.plan().of(FinishRequest)] == ["Stopped"]
    assert world.plan().next_wake <= world.now + 29 * S
    assert [v.reason for v in world.later(29 * S).plan().of(FinishRequest)] == ["Stopped", "QueueTimeout"]
    assert [v.reason for v in world.later(30 * S).plan().of(FinishRequest)][2:] == ["DeadlineExceeded"]


def test_a_pod_without_progress_is_deleted_with_a_warning():
    world = a_pool("SG", stale_ms=600 * S).with_slots(running("SG")).allocated_as_is()

    assert world.later(599 * S).plan().killed == []
    assert world.later(1 * S).plan().killed == [(PodUid("pod-0-1"), "Stale")]


def test_staleness_is_counted_anew_from_the_operator_s_start():
    world = a_pool("SG", stale_ms=600 * S).with_slots(running("SG", ago=5_000 * S)).allocated_as_is()
    world.index.memory.since = None
    world.index.drop_agent(PodUid("pod-0-1"))
    world.accept()

    assert world.later(599 * S).plan().killed == []
    assert world.later(1 * S).plan().killed == [(PodUid("pod-0-1"), "Stale")]


def test_a_pod_that_does_not_start_in_time_is_deleted():
    world = a_pool("SG", start_ms=300 * S).allocated_as_is()
    world.with_slots(preparing("SG"))
    pod = world.pod_of(world.slot("SG"))
    world.index.put_pod(replace(pod, phase=PodPhase.STARTING, scheduled=world.now))

    assert world.later(299 * S).plan().killed == []
    assert world.later(1 * S).plan().killed == [(pod.uid, "StartTimeout")]


def test_a_page_that_is_not_ready_in_time_is_closed():
    world = a_pool("SG", start_ms=300 * S, preparation_ms=120 * S, interval_ms=3_600 * S)
    world.with_slots(preparing("SG", ago=0)).allocated_as_is()

    assert world.later(419 * S).plan().of(CloseSlot) == []
    [deed] = world.later(1 * S).plan().of(CloseSlot)
    assert deed.reason == "PreparationTimeout"


def test_a_drain_that_nobody_answers_is_forced_after_dispatch_seconds():
    world = a_pool("SG", dispatch_ms=10 * S, idle_ms=60 * S).with_slots(idle("SG", ago=60 * S))
    world.allocated_as_is()
    [deed] = world.accept().of(CloseSlot)
    world.index.settle(deed)

    assert world.index.slot_view(deed.slot).role is Role.LEAVING
    assert world.later(9_999).plan().of(CloseSlot) == []
    assert world.later(1).plan().of(CloseSlot) == [replace(deed, reason="Closing", force=True)]


def test_a_refused_drain_leaves_the_slot_in_use():
    """Case D2: dispatch won; the agent is busy."""
    world = a_pool("SG", idle_ms=60 * S).with_slots(idle("SG", ago=60 * S)).allocated_as_is()
    [deed] = world.accept().of(CloseSlot)
    world.later(1)
    world.index.put_agent(replace(world.agent_of(deed.slot), contact=world.now, idle_since=world.now))
    world.index.settle(deed)

    assert world.index.slot_view(deed.slot).role is Role.FREE


def test_unschedulable_pods_leave_one_that_tries_for_all():
    """Case P11."""
    world = a_pool("SG", unschedulable_ms=300 * S).with_slots(idle("SG"), *[preparing("SG")] * 3)
    world.with_queued("SG", 9).allocated_as_is()
    for number in (1, 2, 3):
        pod = world.index.pods[number]
        world.index.drop_agent(pod.uid)
        world.index.put_pod(
            replace(pod, phase=PodPhase.PENDING, scheduled=None, created=Instant(world.now - number))
        )
    assert world.later(299_000).plan().of(NoteUnschedulable) == []

    said = world.later(1_000).accept()

    assert [pod for pod, reason in said.killed if reason == "Unschedulable"] == ["pod-2-1", "pod-1-1"]
    assert said.of(NoteUnschedulable) == [NoteUnschedulable(2)]
    for number in (1, 2):
        world.index.drop_pod(number, world.index.pods[number].uid)
        world.index.put_permit(Permit(number, Version("2")))
    assert world.plan().granted == []
    world.index.put_pod(replace(world.index.pods[3], phase=PodPhase.STARTING, scheduled=world.now))
    assert world.plan().of(NoteUnschedulable) == [NoteUnschedulable(None)]


def test_a_pod_stuck_terminating_is_never_forced_and_counts_for_no_country():
    """Case P6: it stays, its request stays Running, and P is one less."""
    world = a_pool("SG", max_concurrent=2, stuck_terminating_ms=300 * S, grace_ms=10 * S)
    world.with_slots(running("SG"), empty("SG")).with_queued("SG", 2).allocated_as_is()
    pod = world.pod_of(world.slot("SG"))
    world.index.put_pod(replace(pod, deleting=world.now))
    world.accept()
    assert world.index.numbers.usable(None) == 2

    said = world.later(310 * S).accept()

    assert world.index.numbers.usable(None) == 1
    assert (said.killed, said.closed, said.of(RequeueRequest)) == ([], [], [])
    assert world.index.numbers.stuck == {0}


def gone(world: World) -> World:
    return world.change(deleted=True)


def test_a_deleted_pool_drains_everything():
    """Case U6: running attempts end and go back, browsers close, slots and Leases go."""
    world = a_pool("SG").with_slots(running("SG"), idle("SG"), empty("SG")).with_queued("SG")
    world.index.put_permit(Permit(5, Version("5")))
    world.allocated_as_is()

    said = gone(world).plan()

    assert [deed.reason for deed in said.of(StopAttempt)] == ["Shutdown"]
    assert said.closed == [world.slot("SG", 1)]
    assert said.of(DeleteSlot) == [DeleteSlot(world.slot("SG", 2), Version("1"))]
    assert said.of(FreePermit) == [FreePermit(5, Version("5"), remove=True)]
    assert (said.starts, said.granted, said.created) == ([], [], {})


def test_a_country_that_the_pool_has_no_more_loses_its_slots_when_they_are_idle():
    world = a_pool("SG", "MY").with_slots(running("SG"), idle("SG"), empty("SG")).allocated_as_is()
    world.change(countries={Country("MY"): world.settings.countries[Country("MY")]})

    said = world.plan()

    assert said.closed == [world.slot("SG", 1)]
    assert said.deleted == [world.slot("SG", 2)]
    assert said.of(StopAttempt) == []


def test_slots_are_named_by_the_lowest_free_numbers():
    world = a_pool("SG", max_slots=4).with_slots(empty("SG"), empty("SG"), empty("SG"))
    world.index.drop_slot(world.slot("SG", 1))
    world.with_queued("SG")

    assert [deed.number for deed in world.plan().of(CreateSlot)] == [1, 3]


def test_slots_beyond_a_lowered_maximum_go_when_idle():
    """Invariant I5."""
    world = a_pool("SG", max_slots=3).with_slots(idle("SG"), running("SG"), idle("SG")).with_queued("SG")
    world.allocated_as_is().change(max_page_slots=1)

    said = world.plan()

    assert world.slot("SG", 2) in said.closed
    assert world.slot("SG", 1) not in said.closed


def test_a_finished_request_stays_finished_whatever_comes_later():
    """Invariant I4, case D17."""
    world = a_pool("SG").with_slots(idle("SG")).allocated_as_is()
    request = world.add_queued("SG", state=RequestState.FAILED, finished=Instant(0))

    world.index.put_request(replace(request, state=RequestState.QUEUED, finished=None))

    assert world.plan().starts == []
    assert world.index.requests[request.uid].state is RequestState.FAILED


def test_a_recycled_slot_closes_when_it_is_free():
    world = a_pool("SG").with_slots(idle("SG")).with_queued("SG").allocated_as_is()
    slot = world.slot("SG")
    world.index.put_agent(replace(world.agent_of(slot), recycle_due=True))

    said = world.plan()
    assert (said.closed, said.starts) == ([slot], [])


def test_nothing_is_asked_for_twice_at_once():
    world = a_pool("SG").with_slots(empty("SG"), idle("SG"), granted("SG")).with_queued("SG", 3)

    first = world.accept()

    assert len(kinds(first)) > 3
    assert kinds(world.plan()) == []


def test_a_slot_object_that_is_being_deleted_takes_nothing_more():
    world = a_pool("SG").with_slots(idle("SG")).with_queued("SG").allocated_as_is()
    slot = world.index.slots[world.slot("SG")]
    world.index.put_slot(replace(slot, deleted=True))

    said = world.plan()
    assert (said.closed, said.starts) == ([slot.uid], [])


def test_slots_of_unknown_pods_have_no_page():
    world = a_pool("SG").with_slots(empty("SG"))
    world.index.put_slot(Slot(SlotUid("x"), "pool-slot-9", 9, Country("SG"), Version("1")))

    assert world.index.slot_state(SlotUid("x")) is SlotState.NO_PAGE
    assert world.index.slot_state(SlotUid("nowhere")) is SlotState.NO_PAGE


def test_an_attempt_without_a_request_still_counts_at_its_site():
    """Invariant I8: its request was deleted, but the site bears it until it has ended (case D8)."""
    world = a_pool("SG", max_per_site=1, cooldown_ms=0).with_slots(
        running("SG", site="shop.example"), idle("SG")
    )
    world.with_queued("SG", site="shop.example").allocated_as_is()
    slot = world.slot("SG")
    world.index.drop_request(world.request_on(slot).uid)

    assert world.plan().starts == []
    report = Report(AttemptId("r0-1"), RequestUid("r0"), ended=True, outcome=Outcome.STOPPED)
    world.index.put_agent(replace(world.agent_of(slot), phase=AgentPhase.READY, report=report))
    assert len(world.plan().starts) == 1
