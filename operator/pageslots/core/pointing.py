"""Which request a new page is prepared for: its origin is loaded when the pool has no targetUrl."""

from collections.abc import Iterator

from pageslots.core.backoff import holds_back
from pageslots.core.draft import Draft
from pageslots.core.model import Country, GrantedFor, RequestUid
from pageslots.core.slots import SlotView


class Pointer:
    """Deals the next requests of each country out, one to each new page."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._lines: dict[Country, Iterator[RequestUid]] = {}

    def next(self, view: SlotView) -> RequestUid | None:
        """For the pod of a slot that holds its permit: what it was granted for tells."""
        return self.of(view.country, view.facts.granted_for)

    def of(self, country: Country, granted_for: GrantedFor) -> RequestUid | None:
        """For a slot of the country; None: spare pages and probes are prepared for nobody."""
        if granted_for is GrantedFor.SPARE or holds_back(self._draft.backoff(country, None)):
            return None
        line = self._lines.get(country)
        if line is None:
            line = self._lines[country] = self._line(country)
        return next(line, None)

    def _line(self, country: Country) -> Iterator[RequestUid]:
        queues = self._draft.index.queues.countries.get(country)
        if queues is None:
            return
        for _, queue in queues.in_line():
            for waiter, _ in zip(queue.heads(), range(queue.dispatchable), strict=False):
                if waiter.uid not in self._draft.ended:
                    yield waiter.uid


def prepare_for(draft: Draft) -> Pointer:
    """A pointer of its own for this plan."""
    return Pointer(draft)
