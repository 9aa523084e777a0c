"""What should happen now: one pure function over the index.

First what is half done, has ended or is overdue; then requests onto ready slots; then slots to countries; then
permits to slots; then closings. Each part sees what the parts before it have decided.
"""

from pageslots.core.actions import Plan
from pageslots.core.closing import close
from pageslots.core.draft import Draft
from pageslots.core.ending import complete
from pageslots.core.granting import grant, judge_unscheduled, settle_yields, swap_yields
from pageslots.core.index import Index
from pageslots.core.model import Instant
from pageslots.core.moving import move
from pageslots.core.starting import start
from pageslots.core.survey import survey

__all__ = ["Plan", "plan"]


def plan(index: Index, now: Instant) -> Plan:
    """The actions for this instant, and when to look again without news. Changes no fact: twice gives the same."""
    index.refresh(now)
    draft = Draft(index, now)
    complete(draft)
    looked = survey(draft)
    swap_yields(draft, looked)
    start(draft, looked)
    move(draft, looked)
    judge_unscheduled(draft, looked)
    grant(draft, looked)
    settle_yields(draft, looked)
    close(draft, looked)
    return draft.done()
