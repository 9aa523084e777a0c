"""What a run is asked to do: the manifests' objects, checked against each other and against earlier runs.

Nothing is started before all of it is known to be usable (exit code 2 otherwise).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pageslots.api import CrawlRequest, PageSlotPool
from pageslots.api.loading import LoadedManifests
from pageslots.control.names import API_VERSION
from pageslots.control.ports import JsonObject, Kind
from pageslots.local.store import LocalStore

SET_ASIDE = "pageslots.dev/set-aside"
"""Annotation of an unfinished request of an earlier run that this run does not name: it stays as it is."""

DIRECT_NOTICE = "no proxy for {countries}: pages are fetched from your own address"


class UnusableInputError(Exception):
    """The input can't be used; nothing was started. One line each."""

    def __init__(self, errors: Sequence[str]) -> None:
        super().__init__("\n".join(errors))
        self.errors = list(errors)


@dataclass(frozen=True, slots=True)
class Inputs:
    """The pools and requests of a run."""

    pools: tuple[PageSlotPool, ...]
    requests: tuple[CrawlRequest, ...]
    notices: tuple[str, ...] = ()


def builtin_pool(countries: Sequence[str], name: str = "default") -> PageSlotPool:
    """The pool of files that bring none: the countries asked for, direct."""
    return PageSlotPool.model_validate(
        {
            "apiVersion": API_VERSION,
            "kind": Kind.POOL.value,
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"countries": [{"code": code, "direct": True} for code in countries]},
        }
    )


def read_inputs(loaded: LoadedManifests, *, outputs_overridden: bool) -> Inputs:
    """The run's pools and requests; raises UnusableInputError."""
    if not loaded.requests:
        raise UnusableInputError(["no CrawlRequest in the files: nothing to run"])
    pools, notices = loaded.pools, []
    if not pools:
        names = sorted({request.spec.pool_name for request in loaded.requests})
        countries = sorted({request.spec.country for request in loaded.requests})
        pools = tuple(builtin_pool(countries, name) for name in names)
    direct = sorted(
        {c.code for pool in pools for c in pool.spec.countries if c.direct} & _asked(loaded.requests)
    )
    if direct:
        notices.append(DIRECT_NOTICE.format(countries=", ".join(direct)))
    errors = [] if outputs_overridden else _unsupported_outputs(pools, loaded.requests)
    if errors:
        raise UnusableInputError(errors)
    if outputs_overridden and any(request.spec.output is not None for request in loaded.requests):
        notices.append("--output takes the place of the outputs that the manifests name")
    return Inputs(pools, loaded.requests, tuple(notices))


def _asked(requests: Sequence[CrawlRequest]) -> set[str]:
    return {request.spec.country for request in requests}


def _unsupported_outputs(pools: Sequence[PageSlotPool], requests: Sequence[CrawlRequest]) -> list[str]:
    """Outputs that this machine can't write."""
    errors = []
    for request in requests:
        for pool in pools:
            for output in pool.spec.outputs:
                wanted = request.spec.output is not None and output.name == request.spec.output.name
                if (
                    wanted
                    and pool.name == request.spec.pool_name
                    and not output.uri_prefix.startswith("file://")
                ):
                    errors.append(
                        f'CrawlRequest "{request.name}": spec.output: "{output.name}" writes to '
                        f"{output.uri_prefix}, and on one machine only file:// works: give --output DIR"
                    )
    return errors


@dataclass(frozen=True, slots=True)
class Adopted:
    """What became of the requests: finished before this run, going on, new."""

    finished: frozenset[str]
    resumed: frozenset[str]


def _as_object(obj: PageSlotPool | CrawlRequest) -> JsonObject:
    document: dict[str, Any] = obj.model_dump(
        mode="json", by_alias=True, exclude_none=True, exclude={"status"}
    )
    metadata = document["metadata"]
    kept = ("name", "namespace", "labels", "annotations")
    document["metadata"] = {key: metadata[key] for key in kept if metadata.get(key)}
    document["metadata"].setdefault("namespace", "default")
    return document


async def adopt(store: LocalStore, inputs: Inputs) -> Adopted:
    """Bring the inputs into the store beside what earlier runs left; raises UnusableInputError, changing nothing.

    Finished requests are skipped, unfinished ones go on, and what this run does not name is set aside.
    """
    errors = [e for request in inputs.requests for e in await _objections(store, request)]
    if errors:
        raise UnusableInputError(errors)
    for pool in inputs.pools:
        await _apply(store, Kind.POOL, _as_object(pool))
    finished, resumed = set(), set()
    for request in inputs.requests:
        before = await _find(store, Kind.REQUEST, request)
        applied = CrawlRequest.model_validate(await _apply(store, Kind.REQUEST, _as_object(request)))
        if applied.status.is_finished:
            finished.add(applied.name)
        elif before is not None:
            resumed.add(applied.name)
    await _set_aside(store, {(r.metadata.namespace, r.name) for r in inputs.requests})
    return Adopted(frozenset(finished), frozenset(resumed))


async def _find(store: LocalStore, kind: Kind, obj: PageSlotPool | CrawlRequest) -> JsonObject | None:
    for known in await store.list(kind, obj.metadata.namespace):
        if known["metadata"]["name"] == obj.name:
            return known
    return None


async def _objections(store: LocalStore, request: CrawlRequest) -> list[str]:
    """A request that has started may not have become another one since."""
    before = await _find(store, Kind.REQUEST, request)
    if before is None:
        return []
    known = CrawlRequest.model_validate(before)
    if not (known.status.is_finished or known.status.has_started):
        return []
    changed = sorted(
        name
        for name in type(request.spec).model_fields
        if name not in request.spec.MUTABLE_ALWAYS
        and getattr(request.spec, name) != getattr(known.spec, name)
    )
    if not changed:
        return []
    what = "finished" if known.status.is_finished else "started"
    fields = ", ".join(f"spec.{_alias(request, name)}" for name in changed)
    error = f'CrawlRequest "{request.name}": {fields} changed since it {what} in this output: '
    return [error + "use another name or another --output, or start over with --fresh"]


def _alias(request: CrawlRequest, name: str) -> str:
    return type(request.spec).model_fields[name].alias or name


async def _apply(store: LocalStore, kind: Kind, document: JsonObject) -> JsonObject:
    """Create it, or make the stored object's spec what the manifest says."""
    metadata = document["metadata"]
    for known in await store.list(kind, metadata["namespace"]):
        if known["metadata"]["name"] == metadata["name"]:
            spec = {**dict.fromkeys(known["spec"]), **document["spec"]}
            patch = {"spec": spec, "metadata": {"annotations": {SET_ASIDE: None}}}
            return await store.patch(kind, metadata["namespace"], metadata["name"], patch)
    return await store.create(kind, document)


async def _set_aside(store: LocalStore, named: set[tuple[str, str]]) -> None:
    for obj in await store.list(Kind.REQUEST):
        request = CrawlRequest.model_validate(obj)
        where = (request.metadata.namespace, request.name)
        if where in named or request.metadata.owner_references or request.status.is_finished:
            continue
        patch = {"spec": {"suspend": True}, "metadata": {"annotations": {SET_ASIDE: "true"}}}
        await store.patch(Kind.REQUEST, *where, patch)
