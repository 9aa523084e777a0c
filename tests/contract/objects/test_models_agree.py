"""The models say about every object of the table what the table says."""

import re

import pytest
from pydantic import ValidationError
from tests.contract.objects.bad import BAD
from tests.contract.objects.changes import CHANGES, OTHER_SPECS, STEERING
from tests.contract.objects.good import GOOD
from tests.contract.objects.table import Bad, Change, Good, Json

from pageslots.api import KINDS, check_change
from pageslots.api.fields import Rule, Ruled
from pageslots.api.schema import _models_below


def read(document: Json):
    return KINDS[document["kind"]].model_validate(document)


def named(entries):
    return [
        pytest.param(entry, id=f"{getattr(entry, 'object', {}).get('kind', '')} {entry.name}")
        for entry in entries
    ]


@pytest.mark.parametrize("entry", named(GOOD))
def test_a_good_object_is_accepted_and_survives_a_round_trip(entry: Good):
    made = read(entry.object)

    assert read(made.to_dict()) == made


@pytest.mark.parametrize("entry", named(BAD))
def test_a_bad_object_is_refused_at_its_field(entry: Bad):
    with pytest.raises(ValidationError) as caught:
        read(entry.object)

    places, messages = places_and_messages(caught.value)
    assert places == [entry.field]
    if entry.rule is not None:
        assert entry.rule in messages[0]


@pytest.mark.parametrize("entry", named(CHANGES))
def test_a_change_is_allowed_or_not(entry: Change):
    new = dict(entry.new)
    if "status" in entry.old and "status" not in new:  # as an update of the main resource keeps the status
        new["status"] = entry.old["status"]

    violations = check_change(read(entry.old), read(new))

    messages = [violation.message for violation in violations]
    assert len(messages) == (entry.rule is not None)
    assert (entry.rule or "") in "".join(messages)


def test_every_rule_of_the_models_is_broken_by_an_entry_of_the_table():
    """A rule that no entry breaks could be wrong on either side, and nobody would see it."""
    told = {entry.rule for entry in BAD if entry.rule} | {change.rule for change in CHANGES if change.rule}
    by_place = {entry.field.rpartition(".")[2] for entry in BAD}

    unbroken = [
        rule.message
        for rule in all_rules()
        if not any(fragment in rule.message for fragment in told)
        # told by its place alone, because the API server's own words come first
        and not (rule.message == "not an IANA time zone" and "timeZone" in by_place)
    ]

    assert unbroken == []


def test_every_frozen_and_every_steering_field_has_a_change():
    spec = KINDS["CrawlRequest"].model_fields["spec"].annotation
    aliases = {info.alias for info in spec.model_fields.values()}

    assert set(OTHER_SPECS) | set(STEERING) | {"urlsFrom"} == aliases


def all_rules() -> set[Rule]:
    found: set[Rule] = set()
    for kind in KINDS.values():
        for model in _models_below(kind):
            if issubclass(model, Ruled):
                found.update(model.RULES)
            for info in model.model_fields.values():
                found.update(rules_in(info.metadata))
                found.update(rules_in_annotation(info.annotation))
    return found


def rules_in(metadata) -> list[Rule]:
    return [entry for entry in metadata if isinstance(entry, Rule)]


def rules_in_annotation(annotation) -> list[Rule]:
    found = rules_in(getattr(annotation, "__metadata__", ()))
    for inner in getattr(annotation, "__args__", ()):
        found += rules_in_annotation(inner)
    return found


def places_and_messages(error: ValidationError) -> tuple[list[str], list[str]]:
    """Fields as the API server writes them, and messages."""
    places, messages = [], []
    for detail in error.errors():
        steps = list(detail["loc"])
        if detail["type"] == "twin":
            steps.append(detail["ctx"]["number"])
        broken = detail.get("ctx", {}).get("broken", [{"field": "", "message": detail["msg"]}])
        for rule in broken:
            path = [*steps, *filter(None, rule["field"].split("."))]
            text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
            places.append(re.sub(r"^\.", "", text))
            messages.append(rule["message"])
    return places, messages
