"""What only several objects together can tell: whether a request's pool, country and output exist."""

from collections.abc import Iterator

from pageslots.api.faults import ManifestError
from pageslots.api.loading import LoadedManifests, LoadedObject
from pageslots.api.pool import PageSlotPool
from pageslots.api.request import CrawlRequest
from pageslots.api.suggestions import nearest


def check_references(loaded: LoadedManifests) -> list[ManifestError]:
    """What requests name and the pools of the same files don't have.

    Without a pool in the files there is nothing to compare with: the list is empty.
    """
    pools = {(pool.metadata.namespace, pool.name): pool for pool in loaded.pools}
    if not pools:
        return []
    return [error for entry in loaded.objects for error in _wrong_names(entry, pools)]


def _wrong_names(entry: LoadedObject, pools: dict[tuple[str, str], PageSlotPool]) -> Iterator[ManifestError]:
    request = entry.object
    if not isinstance(request, CrawlRequest):
        return
    spec, namespace = request.spec, request.metadata.namespace
    pool = pools.get((namespace, spec.pool_name))
    if pool is None:
        known = [name for space, name in pools if space == namespace]
        yield entry.error(
            ("spec", "poolName"), _none_such("pool", spec.pool_name, known, f"namespace {namespace}")
        )
        return
    codes = [country.code for country in pool.spec.countries]
    if spec.country not in codes:
        message = _none_such("country", spec.country, codes, f'pool "{pool.name}"')
        yield entry.error(("spec", "country"), message)
    outputs = [output.name for output in pool.spec.outputs]
    if spec.output is not None and spec.output.name not in outputs:
        message = _none_such("output", spec.output.name, outputs, f'pool "{pool.name}"')
        yield entry.error(("spec", "output", "name"), message)


def _none_such(what: str, name: str, known: list[str], where: str) -> str:
    meant = nearest(name, known)
    if meant:
        return f'{where} has no {what} "{name}"; did you mean "{meant}"?'
    return f'{where} has no {what} "{name}"; it has {", ".join(known) or "none"}'
