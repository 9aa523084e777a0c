"""When a crawl request's spec may still change.

It may until its first attempt starts (or its children exist); afterwards only the fields that steer a
running request may. The rules are generated from the model, so that a new field is frozen unless
somebody says otherwise. They stand at the root of the schema because they read `oldSelf.status`.
"""

from typing import Any

from pageslots.api.fields import Rule

_STARTED = "has(oldSelf.status) && (has(oldSelf.status.firstStartTime) || has(oldSelf.status.children))"
_FINISHED = (
    "has(oldSelf.status) && has(oldSelf.status.state)"
    " && oldSelf.status.state in ['Succeeded', 'Failed', 'Stopped']"
)


def frozen_after_start(spec: Any) -> tuple[Rule, ...]:
    """The two rules: for a request that has started, and for one that has finished."""
    frozen = {
        name: info.alias or name
        for name, info in spec.model_fields.items()
        if name not in spec.MUTABLE_ALWAYS
    }
    names = tuple(frozen)
    same = " && ".join(_same(alias) for alias in frozen.values())

    def is_same(new: Any, old: Any) -> bool:
        return all(getattr(new.spec, name) == getattr(old.spec, name) for name in names)

    steering = [info.alias or name for name, info in spec.model_fields.items() if name in spec.MUTABLE_ALWAYS]
    return (
        Rule(
            cel=f"!({_STARTED}) || ({_FINISHED}) || ({same})",
            message=f"started: only {', '.join(sorted(steering))} can still change",
            check=lambda new, old: not old.status.has_started or old.status.is_finished or is_same(new, old),
            field="spec",
        ),
        Rule(
            cel=f"!({_FINISHED}) || ({same})",
            message="finished: use another name",
            check=lambda new, old: not old.status.is_finished or is_same(new, old),
            field="spec",
        ),
    )


def _same(alias: str) -> str:
    new, old = f"self.spec.{alias}", f"oldSelf.spec.{alias}"
    return f"(has({new}) == has({old}) && (!has({new}) || {new} == {old}))"
