"""The store's admission: the kinds' rules, as an API server applies those of a CRD."""

from collections.abc import Mapping

from pydantic import ValidationError

from pageslots.api import KINDS
from pageslots.control.ports import InvalidError, JsonObject, Kind
from pageslots.local.store import Validate


def _validator(kind: Kind) -> Validate:
    model = KINDS[kind.value]

    def check(new: JsonObject, old: JsonObject | None) -> None:
        """Only what changed by a person's hand is worth the time: specs."""
        if old is not None and new.get("spec") is old.get("spec"):
            return
        try:
            model.model_validate(new)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise InvalidError(f"{kind.value} {new['metadata']['name']}: {where}: {first['msg']}") from None

    return check


VALIDATE: Mapping[Kind, Validate] = {kind: _validator(kind) for kind in (Kind.POOL, Kind.SLOT, Kind.REQUEST)}
