"""Changes of objects that must be allowed, and such that must not."""

from tests.contract.objects.table import NOW, Change, a_pool, a_request, a_slot

STARTED = "started: only priority, stop, suspend, ttlSecondsAfterFinished can still change"
FINISHED = "finished: use another name"

WAITING = {"state": "Queued"}
RUNNING = {"state": "Running", "firstStartTime": NOW}
WAITING_AGAIN = {"state": "Queued", "firstStartTime": NOW}
SPLIT = {"state": "Queued", "children": {"total": 4}}
DONE = {"state": "Succeeded", "firstStartTime": NOW}
NEVER_STARTED = {"state": "Stopped"}

OTHER_SPECS = {
    "poolName": "other",
    "country": "MY",
    "startUrls": ["https://other.example/"],
    "parallelism": 2,
    "follow": {},
    "maxPages": 7,
    "extract": [{"name": "title", "css": "h1"}],
    "capture": ["html"],
    "captureOnFailure": ["html"],
    "waitFor": {"selector": "h1"},
    "site": "other.example",
    "deadlineSeconds": 60,
    "pageTimeoutSeconds": 60,
    "pageRetries": 3,
    "queueTimeoutSeconds": 60,
    "failWhen": {"failedPagesPercent": 50},
    "retries": {"blocked": 9},
    "output": {"name": "records"},
}
"""Each frozen field with another value (`urlsFrom` stands in the place of `startUrls`, below)."""

STEERING = {"suspend": True, "stop": True, "priority": 50, "ttlSecondsAfterFinished": 60}


def _request_changes() -> list[Change]:
    made = []
    for field, value in OTHER_SPECS.items():
        change = a_request(**{field: value})
        made += [
            Change(f"{field} before the first start", a_request(status=WAITING), change),
            Change(f"{field} before anyone saw it", a_request(), change),
            Change(f"{field} while it runs", a_request(status=RUNNING), change, STARTED),
            Change(f"{field} between two attempts", a_request(status=WAITING_AGAIN), change, STARTED),
            Change(f"{field} when children exist", a_request(status=SPLIT), change, STARTED),
            Change(f"{field} after the end", a_request(status=DONE), change, FINISHED),
            Change(
                f"{field} after an end without a start", a_request(status=NEVER_STARTED), change, FINISHED
            ),
        ]
    for field, value in STEERING.items():
        change = a_request(**{field: value})
        made += [
            Change(f"{field} {when}", a_request(status=status), change)
            for when, status in (
                ("before the start", WAITING),
                ("while it runs", RUNNING),
                ("after the end", DONE),
            )
        ]
    return made


CHANGES = (
    *_request_changes(),
    Change("a file in the place of URLs while it runs", a_request(status=RUNNING),
        a_request(startUrls=None, urlsFrom={"uri": "/urls.csv"}), STARTED),
    Change("a field is removed while it runs", a_request(maxPages=5, status=RUNNING), a_request(), STARTED),
    Change("a default is written out while it runs", a_request(status=RUNNING),
        a_request(pageRetries=2, retries={"blocked": 3}, extract=[], poolName="default")),
    Change("nothing changes after the end", a_request(status=DONE), a_request()),
    Change("a slot's country", a_slot(), a_slot(country="MY"), "a slot keeps its country"),
    Change("a slot's pool", a_slot(), a_slot(poolName="other"), "a slot keeps its pool"),
    Change("a slot's status", a_slot(), a_slot(status={"state": "PageReady"})),
    Change("a pool's settings", a_pool(),
        a_pool(maxConcurrent=1, countries=[{"code": "MY", "direct": True}])),
)  # fmt: skip
