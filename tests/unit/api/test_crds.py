"""The generated CRDs: current, structural, bounded, and true to what they point at."""

import re
from pathlib import Path

import pytest

from pageslots.api import KINDS, crd_documents, render_crds
from pageslots.api.fields import VALIDATIONS

FOLDER = Path(__file__).parents[3] / "crds"
CRDS = {document["spec"]["names"]["kind"]: document for document in crd_documents()}


def version(kind: str):
    return CRDS[kind]["spec"]["versions"][0]


def root(kind: str):
    return version(kind)["schema"]["openAPIV3Schema"]


def nodes(node, path=""):
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    if "items" in node:
        yield from nodes(node["items"], f"{path}[]")


ALL_NODES = [(f"{kind}{path}", node) for kind in KINDS for path, node in nodes(root(kind))]
TOLD_BY_THE_SERVER = re.compile(r"^\w+\.(apiVersion|kind|metadata)$")


def at(kind: str, json_path: str):
    """The schema that a JSONPath of a column points at."""
    node = root(kind)
    for step in re.findall(r"\.(\w+)|(\[\?\(@\.\w+==\"\w+\"\)\])", json_path):
        name, condition = step
        if name:
            node = node["properties"][name]
        else:
            key, value = re.findall(r"@\.(\w+)==\"(\w+)\"", condition)[0]
            node = node["items"]
            assert value in node["properties"][key]["enum"]
    return node


def test_the_files_are_what_the_models_say():
    """Otherwise: `pageslots crds` writes them."""
    assert {file.name: file.read_text() for file in FOLDER.glob("*.yaml")} == render_crds()


@pytest.mark.parametrize("kind", KINDS)
def test_every_column_shows_a_field_of_its_type(kind):
    """case U3"""
    for column in version(kind)["additionalPrinterColumns"]:
        if column["jsonPath"] == ".metadata.creationTimestamp":
            assert column["type"] == "date"
        else:
            assert at(kind, column["jsonPath"])["type"] == column["type"]


def test_a_column_of_a_field_that_does_not_exist_is_noticed():
    with pytest.raises(KeyError):
        at("CrawlRequest", ".status.progress")
    with pytest.raises(AssertionError):
        at("CrawlRequest", '.status.conditions[?(@.type=="Ended")].reason')


@pytest.mark.parametrize("kind", KINDS)
def test_every_selectable_field_is_a_text_of_the_schema(kind):
    for field in version(kind).get("selectableFields", []):
        assert at(kind, field["jsonPath"])["type"] == "string"


def test_slots_and_requests_are_selected_by_state_country_and_pool():
    expected = [{"jsonPath": path} for path in (".status.state", ".spec.country", ".spec.poolName")]

    assert [version(kind)["selectableFields"] for kind in ("PageSlot", "CrawlRequest")] == [expected] * 2


def test_scaling_a_pool_changes_its_cap():
    scale = version("PageSlotPool")["subresources"]["scale"]

    assert scale["specReplicasPath"] == ".spec.maxConcurrent"
    assert [at("PageSlotPool", path)["type"] for path in scale.values()] == ["integer", "integer", "string"]


@pytest.mark.parametrize(("path", "node"), ALL_NODES, ids=[path for path, _ in ALL_NODES])
def test_every_field_is_bounded_and_structural(path, node):
    assert not {"$ref", "anyOf", "oneOf", "allOf", "title", "additionalProperties", "const"} & set(node)
    if TOLD_BY_THE_SERVER.match(path):
        return
    match node.get("type"):
        case "string":
            assert "enum" in node or "maxLength" in node
        case "integer":
            assert {"minimum", "maximum"} <= set(node)
        case "array":
            assert "maxItems" in node
        case "object":
            assert "properties" in node
        case "boolean":
            pass
        case _:
            assert node["x-kubernetes-int-or-string"] is True


@pytest.mark.parametrize(("path", "node"), ALL_NODES, ids=[path for path, _ in ALL_NODES])
def test_the_keys_of_a_list_are_fields_that_its_entries_always_have(path, node):
    for key in node.get("x-kubernetes-list-map-keys", []):
        entry = node["items"]
        assert key in entry["required"] or "default" in entry["properties"][key]


def test_the_lists_that_people_edit_have_keys():
    keys = {
        path: node.get("x-kubernetes-list-map-keys")
        for path, node in ALL_NODES
        if node.get("type") == "array"
    }

    assert keys["PageSlotPool.spec.countries"] == ["code"]
    assert keys["PageSlotPool.spec.countries[].proxies"] == ["name"]
    assert keys["PageSlotPool.spec.outputs"] == keys["PageSlotPool.spec.sites"] == ["name"]
    assert keys["PageSlotPool.status.backoffs"] == ["country", "site"]
    assert keys["CrawlRequest.spec.extract"] == ["name"]
    assert {tuple(keys[f"{kind}.status.conditions"]) for kind in KINDS} == {("type",)}


@pytest.mark.parametrize(("path", "node"), ALL_NODES, ids=[path for path, _ in ALL_NODES])
def test_every_rule_has_a_message_and_points_at_a_field_that_exists(path, node):
    for rule in node.get(VALIDATIONS, []):
        assert rule["message"]
        assert len(rule["message"]) <= 2048
        if field := rule.get("fieldPath"):
            inner = node
            for step in field.removeprefix(".").split("."):
                inner = inner["properties"][step]


def test_the_frozen_fields_are_compared_one_by_one_at_the_root():
    started, finished = root("CrawlRequest")[VALIDATIONS][-2:]
    spec = root("CrawlRequest")["properties"]["spec"]["properties"]

    for rule in (started, finished):
        compared = set(re.findall(r"has\(self\.spec\.(\w+)\) == ", rule["rule"]))
        assert compared == set(spec) - {"stop", "suspend", "priority", "ttlSecondsAfterFinished"}
    assert finished["message"] == "finished: use another name"


def test_defaults_are_those_of_the_models():
    spec = root("PageSlotPool")["properties"]["spec"]["properties"]

    assert (spec["maxPageSlots"]["default"], spec["maxConcurrent"]["default"]) == (20, 8)
    assert spec["preparation"]["default"] == {}
    assert spec["preparation"]["properties"]["minRequestsPerSlot"]["default"] == "1/3"


def test_a_new_object_has_a_state_before_anyone_wrote_one():
    """case U3: the columns are filled from the first second on."""
    status = root("CrawlRequest")["properties"]["status"]

    assert status["default"] == {}
    assert status["properties"]["state"]["default"] == "Queued"


def test_names_of_the_kinds():
    names = {kind: CRDS[kind]["spec"]["names"] for kind in KINDS}

    assert [names[kind]["shortNames"] for kind in KINDS] == [["slotpool"], ["pgslot"], ["crawlreq"]]
    assert all(name["categories"] == ["crawl"] for name in names.values())


def test_fields_are_explained():
    """`kubectl explain crawlrequest.spec.priority` has something to say."""
    assert root("CrawlRequest")["properties"]["spec"]["properties"]["priority"]["description"].startswith(
        "-100 bulk"
    )
