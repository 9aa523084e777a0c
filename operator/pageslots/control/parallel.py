"""Parallel requests: a parent's URLs are dealt to child requests; the parent aggregates them and never runs itself.

Children are frozen once `status.children` is written; a crash before that is completed by creating the missing
ones (their names are their identity). `stop`, `suspend` and `priority` are passed on.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from pageslots.api import CrawlRequest
from pageslots.api.reasons import RequestReason, RequestState
from pageslots.control import request_status
from pageslots.control.context import Context
from pageslots.control.names import API_VERSION, PARENT_LABEL, Key, child_name, owner_reference
from pageslots.control.ports import AlreadyExistsError, ApiError, JsonObject, Kind
from pageslots.core.model import Instant

PASSED_ON = ("stop", "suspend", "priority")
RETRY_SECONDS = 0.5
NAMED_CHILDREN = 5


def is_parent(request: CrawlRequest) -> bool:
    """Whether it is split into children."""
    return request.spec.parallelism > 1


def parent_uid(request: CrawlRequest) -> str | None:
    """UID of the parallel request that it is a child of."""
    return next((o.uid for o in request.metadata.owner_references if o.kind == Kind.REQUEST), None)


def split(parent: JsonObject, rows: int | None) -> list[JsonObject]:
    """The children of a parent object; `rows` is the number of its file's rows, None when unknown.

    URLs are dealt in turn (URL i to child i mod n), so that children of one list are equally long.
    """
    spec: dict[str, Any] = parent["spec"]
    urls: Sequence[str] | None = spec.get("startUrls")
    if urls is not None and spec.get("maxPages") is not None:
        urls = urls[: spec["maxPages"]]
    known = len(urls) if urls is not None else rows
    count = spec["parallelism"] if known is None else max(1, min(spec["parallelism"], known))
    return [_child(parent, n, count, urls) for n in range(count)]


def _child(parent: JsonObject, number: int, count: int, urls: Sequence[str] | None) -> JsonObject:
    spec = {
        k: v
        for k, v in parent["spec"].items()
        if k not in ("parallelism", "startUrls", "urlsFrom", "maxPages")
    }
    if urls is not None:
        spec["startUrls"] = list(urls[number::count])
    else:
        spec["urlsFrom"] = {**parent["spec"]["urlsFrom"], "part": {"index": number, "count": count}}
    metadata = parent["metadata"]
    return {
        "apiVersion": API_VERSION,
        "kind": Kind.REQUEST.value,
        "metadata": {
            "namespace": metadata.get("namespace", "default"),
            "name": child_name(metadata["name"], number),
            "labels": {PARENT_LABEL: metadata["name"]},
            "ownerReferences": [owner_reference(parent)],
        },
        "spec": spec,
    }


def aggregate(parent: CrawlRequest, children: Sequence[CrawlRequest], total: int, now: Instant) -> JsonObject:
    """The parent's status from its children's; children that somebody deleted count as stopped."""
    states = [child.status.state for child in children]
    missing = total - len(children)
    stopped = states.count(RequestState.STOPPED) + missing
    failed = states.count(RequestState.FAILED)
    succeeded = states.count(RequestState.SUCCEEDED)
    starts = [c.status.first_start_time for c in children if c.status.first_start_time is not None]
    patch: JsonObject = {
        "state": (RequestState.RUNNING if starts else RequestState.QUEUED).value,
        "observedGeneration": parent.metadata.generation,
        "firstStartTime": min(starts) if starts else None,
        "children": {"total": total, "succeeded": succeeded, "failed": failed, "stopped": stopped},
        "pages": {
            field: sum(getattr(c.status.pages, field) for c in children)
            for field in ("done", "failed", "blocked", "discovered")
        },
        "bytes": sum(c.status.bytes for c in children),
        "result": {"records": sum(c.status.result.records for c in children if c.status.result is not None)},
    }
    if succeeded + failed + stopped < total:
        return patch
    state, reason, message = _verdict(children, total=total, failed=failed, stopped=stopped)
    verdict = request_status.finished(
        parent, now, state=state, outcome=None, reason=reason, message=message, report=None
    )
    return {**patch, **{k: v for k, v in verdict.items() if k not in ("attempts", "slotName")}}


def _verdict(
    children: Sequence[CrawlRequest], *, total: int, failed: int, stopped: int
) -> tuple[RequestState, RequestReason, str]:
    if failed:
        bad = [c for c in children if c.status.state is RequestState.FAILED]
        named = ", ".join(f"{c.name} ({_reason(c)})" for c in bad[:NAMED_CHILDREN])
        more = f" and {failed - NAMED_CHILDREN} more" if failed > NAMED_CHILDREN else ""
        return (
            RequestState.FAILED,
            RequestReason.CHILDREN_FAILED,
            f"{failed} of {total} children: {named}{more}",
        )
    if stopped:
        return RequestState.STOPPED, RequestReason.STOPPED, f"{stopped} of {total} children stopped"
    return RequestState.SUCCEEDED, RequestReason.CHILDREN_SUCCEEDED, f"all {total} children"


def _reason(child: CrawlRequest) -> str:
    condition = request_status.condition_of(child, "Finished")
    return "" if condition is None else str(condition.reason)


class Parents:
    """Keeps children and parents in step."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._dirty: set[str] = set()
        self._children: dict[str, set[str]] = {}
        self._wake = asyncio.Event()

    def observe(self, parent: CrawlRequest) -> None:
        """A parent was created or changed."""
        self._mark(parent.metadata.uid)

    def child_changed(self, child: CrawlRequest) -> None:
        """A child was created or changed."""
        uid = parent_uid(child)
        if uid is not None:
            self._children.setdefault(uid, set()).add(child.metadata.uid)
            self._mark(uid)

    def forget(self, request: CrawlRequest) -> None:
        """A parent or a child is gone."""
        self._children.pop(request.metadata.uid, None)
        uid = parent_uid(request)
        if uid is not None:
            self._children.get(uid, set()).discard(request.metadata.uid)
            self._mark(uid)

    def _mark(self, uid: str) -> None:
        self._dirty.add(uid)
        self._wake.set()

    async def run(self) -> None:
        """Reconcile what is dirty until cancelled; a failing parent is tried again after a pause."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            dirty, self._dirty = self._dirty, set()
            for uid in dirty:
                try:
                    await self._reconcile(uid)
                except ApiError as error:
                    self._context.recorder.event("warning", "parent.retry", uid=uid, error=str(error))
                    asyncio.get_running_loop().call_later(RETRY_SECONDS, self._mark, uid)

    async def _reconcile(self, uid: str) -> None:
        obj = self._context.cache.by_uid(uid)
        if obj is None:
            return
        parent = CrawlRequest.model_validate(obj)
        if parent.status.is_finished or parent.metadata.deletion_timestamp is not None:
            return
        if parent.status.children is None:
            if not await self._create(parent, obj):
                return
            obj = self._context.cache.by_uid(uid) or obj
            parent = CrawlRequest.model_validate(obj)
        if parent.status.children is not None:
            await self._pass_on(parent, obj)
            await self._aggregate(parent)

    async def _create(self, parent: CrawlRequest, obj: JsonObject) -> bool:
        """Create the missing children, then freeze them; False when it is not their time."""
        now = Instant(self._context.clock.now_ms())
        if parent.spec.stop:
            patch = request_status.finished(
                parent,
                now,
                state=RequestState.STOPPED,
                outcome=None,
                reason=RequestReason.STOPPED,
                message="stopped before it started",
                report=None,
            )
            await self._write(parent, patch)
            return False
        if (
            parent.spec.suspend
            or self._context.pool(Key(parent.metadata.namespace, parent.spec.pool_name)) is None
        ):
            return False
        rows = None
        if parent.spec.urls_from is not None:
            rows = self._context.settings.row_count(parent.spec.urls_from.uri, parent.spec.parallelism)
        children = split(obj, rows)
        for child in children:
            await self._create_child(child)
        await self._write(
            parent, {"children": {"total": len(children), "succeeded": 0, "failed": 0, "stopped": 0}}
        )
        return True

    async def _create_child(self, child: JsonObject) -> None:
        context, metadata = self._context, child["metadata"]
        context.leadership.check()
        try:
            created = await context.api.create(Kind.REQUEST, child)
        except AlreadyExistsError:
            created = await context.api.get(Kind.REQUEST, metadata["namespace"], metadata["name"])
        context.intake.observe(Kind.REQUEST, created)

    async def _pass_on(self, parent: CrawlRequest, obj: JsonObject) -> None:
        context = self._context
        wanted = {field: obj["spec"].get(field) for field in PASSED_ON}
        for child in self._of(parent):
            if child.status.is_finished:
                continue
            spec = (context.cache.by_uid(child.metadata.uid) or {}).get("spec", {})
            patch = {
                field: value
                for field, value in wanted.items()
                if (spec.get(field) or None) != (value or None)
            }
            if patch:
                context.leadership.check()
                changed = await context.api.patch(
                    Kind.REQUEST, child.metadata.namespace, child.name, {"spec": patch}
                )
                context.intake.observe(Kind.REQUEST, changed)

    async def _aggregate(self, parent: CrawlRequest) -> None:
        assert parent.status.children is not None
        now = Instant(self._context.clock.now_ms())
        patch = aggregate(parent, self._of(parent), parent.status.children.total, now)
        current = (self._context.cache.by_uid(parent.metadata.uid) or {}).get("status", {})
        if any(current.get(key) != value for key, value in patch.items() if value is not None):
            await self._write(parent, patch)
            if "finishTime" in patch:
                finished = next(c for c in patch["conditions"] if c["type"] == "Finished")
                self._context.recorder.event(
                    "info" if patch["state"] == RequestState.SUCCEEDED.value else "warning",
                    "request.finished",
                    request=parent.name,
                    country=parent.spec.country,
                    state=patch["state"],
                    reason=finished["reason"],
                    message=finished["message"],
                )

    def _of(self, parent: CrawlRequest) -> list[CrawlRequest]:
        objs = (self._context.cache.by_uid(uid) for uid in self._children.get(parent.metadata.uid, ()))
        children = [CrawlRequest.model_validate(obj) for obj in objs if obj is not None]
        return sorted(children, key=lambda child: child.name)

    async def _write(self, parent: CrawlRequest, patch: JsonObject) -> None:
        context = self._context
        context.leadership.check()
        written = await context.api.patch(
            Kind.REQUEST,
            parent.metadata.namespace,
            parent.name,
            {"status": patch},
            version=parent.metadata.resource_version,
            status=True,
        )
        context.intake.observe(Kind.REQUEST, written)
