"""Merge patch as RFC 7386 says, on values that are shared."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pageslots.local.mergepatch import copy_json, merge_patch, same_json

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b"])
KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3)
)


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_the_rfcs_own_examples(target: object, patch: object, result: object):
    assert merge_patch(target, patch) == result


def _reference(target: object, patch: object) -> object:
    """The RFC's algorithm, word for word, on copies."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _reference(merged.get(name), value)
    return merged


@given(VALUES, VALUES)
def test_it_agrees_with_the_rfcs_algorithm_and_changes_neither_value(target: object, patch: object):
    before = json.dumps([target, patch])

    merged = merge_patch(target, patch)

    assert same_json(merged, _reference(target, patch))
    assert json.dumps([target, patch]) == before


@given(VALUES, VALUES)
def test_the_result_is_the_target_itself_exactly_when_nothing_changes(target: object, patch: object):
    merged = merge_patch(target, patch)

    assert (merged is target) == same_json(merged, target) or not isinstance(target, dict)


def test_what_a_patch_leaves_alone_is_shared():
    """The store's `is` tells which part was touched."""
    old = {"spec": {"a": 1}, "status": {"b": 2}}

    new = merge_patch(old, {"status": {"b": 3}})

    assert new["spec"] is old["spec"]
    assert new["status"] == {"b": 3}


def test_true_is_not_one():
    assert merge_patch({"a": 1}, {"a": True})["a"] is True
    assert not same_json([True], [1])


@pytest.mark.parametrize("value", [{1: "a"}, {"a": object()}, [b"bytes"], {"a": {1, 2}}])
def test_what_json_does_not_have_is_refused(value: object):
    with pytest.raises(TypeError):
        copy_json(value)
