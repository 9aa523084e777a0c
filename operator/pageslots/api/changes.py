"""Whether an object may become another one: the rules about change, checked as the API server would."""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import BaseModel

from pageslots.api.fields import Ruled
from pageslots.api.meta import Kind


@dataclass(frozen=True, slots=True)
class Violation:
    """A change that is not allowed, and the field that it is about."""

    field: str
    message: str


def check_change(old: Kind, new: Kind) -> list[Violation]:
    """The rules that the change from `old` to `new`, an object of the same name, breaks."""
    return list(_violations(old, new, ""))


def _violations(old: BaseModel, new: BaseModel, path: str) -> Iterator[Violation]:
    if type(old) is not type(new):
        return
    if isinstance(new, Ruled):
        for rule in new.RULES:
            if rule.is_about_change and not rule.check(new, old):
                yield Violation(".".join(part for part in (path, rule.field) if part), rule.message)
    for name, info in type(new).model_fields.items():
        before, after = getattr(old, name), getattr(new, name)
        if isinstance(before, BaseModel) and isinstance(after, BaseModel):
            yield from _violations(before, after, f"{path}.{info.alias or name}".lstrip("."))
