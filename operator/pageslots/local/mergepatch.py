"""JSON merge patch (RFC 7386) on values that are shared, never changed in place."""

from typing import Any

_ABSENT: Any = object()
_SCALARS = (str, int, float, bool, type(None))


def copy_json(value: Any) -> Any:
    """A copy that shares no list and no object with `value`; TypeError for what JSON does not have."""
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"JSON keys are strings, not {type(key).__name__}: {key!r}")
        return {key: copy_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [copy_json(item) for item in value]
    if isinstance(value, _SCALARS):
        return value
    raise TypeError(f"not a JSON value: {type(value).__name__}: {value!r}")


def same_json(one: Any, other: Any) -> bool:
    """Equal as JSON: unlike Python, `true` is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_json(item, other[key]) for key, item in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(same_json(a, b) for a, b in zip(one, other, strict=True))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def merge_patch(target: Any, patch: Any) -> Any:
    """What `target` becomes under `patch`; neither is changed.

    Whatever the patch leaves as it was is shared with `target`, and the result *is* `target` when
    nothing changes: `is` tells whether a part was touched.
    """
    if not isinstance(patch, dict):
        return target if same_json(target, patch) else copy_json(patch)
    old: dict[str, Any] = target if isinstance(target, dict) else {}
    merged = old
    for key, value in patch.items():
        before = old.get(key, _ABSENT)
        after = _ABSENT if value is None else merge_patch(before, value)
        if after is before:
            continue
        if merged is old:
            merged = dict(old)
        if after is _ABSENT:
            del merged[key]
        else:
            merged[key] = after
    return merged
