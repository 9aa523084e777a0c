"""YAML text becomes what kubectl makes of it, and every value knows its place."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pageslots.api import documents
from pageslots.api.documents import MAX_DEPTH, plain_value, read_documents
from pageslots.api.faults import Place


def only(text):
    (document,) = read_documents(text)
    return document


def fault(text):
    (found,) = only(text).faults
    return found


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("NO", False), ("no", False), ("off", False), ("y", True), ("Yes", True), ("true", True), ("nope", "nope"),
        ("~", None), ("null", None), ("12", 12), ("-3", -3), ("1_000", 1000), ("010", 8), ("0o17", 15), ("0x1F", 31),
        ("0b101", 5), ("1.5", 1.5), (".5", 0.5), ("1e3", 1000.0), ("-.inf", float("-inf")), ("1/3", "1/3"),
        ("1:30", "1:30"), ("2026-05-01", "2026-05-01"), ("+", "+"), (".", "."), ("SG", "SG"),
    ],
)  # fmt: skip
def test_a_plain_word_is_what_kubectl_reads(word, value):
    assert plain_value(word) == value
    assert type(plain_value(word)) is type(value)


def test_a_quoted_word_stays_a_text():
    assert only("a: 'NO'\nb: \"12\"\nc: |\n  no\n").value == {"a": "NO", "b": "12", "c": "no\n"}


def test_the_text_of_a_plain_word_is_kept():
    assert only("a: [NO, SG]").plain == {("a", 0): "NO"}


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=40), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(st.dictionaries(st.text(max_size=40), JSON, min_size=1, max_size=4), st.sampled_from([None, 2]))
def test_json_is_read_as_json(value, indent):
    """YAML is a superset of JSON, as written by any JSON library."""
    assert only(json.dumps(value, indent=indent)).value == value


def test_half_a_character_is_refused():
    assert fault('a: "\\ud83d"\n').message == "half a character: an escape is alone"


def test_values_and_keys_know_their_places():
    document = only("# comment\nspec:\n  country: SG\n  list:\n    - a\n    -   b\n")

    assert document.place(("spec", "country")) == Place(3, 12)
    assert document.key_place(("spec", "country")) == Place(3, 3)
    assert document.place(("spec", "list", 1)) == Place(6, 9)


def test_an_absent_value_has_the_place_of_what_it_is_missing_in():
    document = only("kind: A\nspec:\n  a: 1\n")

    assert document.place(("spec", "country", "code")) == Place(2, 1)
    assert document.place(("metadata", "name")) == Place(1, 1)


def test_places_count_through_all_documents_of_a_file():
    first, second = read_documents("---\na: 1\n---\n# b\nb: 2\n...\n---\n# nothing\n---\n")

    assert first.place(("a",)) == Place(2, 4)
    assert second.place(("b",)) == Place(5, 4)


def test_a_broken_document_does_not_hide_the_next_one():
    """case U1"""
    broken, sound = read_documents("a: [1\n---\nb: 2\n")

    assert broken.value is None
    assert len(broken.faults) == 1
    assert sound.value == {"b": 2}


def test_a_line_of_dashes_inside_a_text_starts_no_document():
    assert only("a: |\n  ---\n  b\n").value == {"a": "---\nb\n"}


def test_a_tab_is_told_as_a_tab():
    """case U1"""
    found = fault("spec:\n\tcountry: SG\n")

    assert found.message == "a tab indents this line: YAML takes spaces only"
    assert found.place.line == 2


def test_a_key_that_stands_twice_is_refused():
    found = fault("spec:\n  a: 1\n  a: 2\n")

    assert (found.message, found.path) == ("stands twice: the first one is in line 2", ("spec", "a"))
    assert found.place == Place(3, 3)


def test_anchors_and_merges_are_followed():
    document = only("base: &base {a: 1, b: 2}\nuse: {<<: *base, b: 3}\nsame: *base\n")

    assert document.value["use"] == {"a": 1, "b": 3}
    assert document.value["same"] == {"a": 1, "b": 2}


def test_a_bomb_of_aliases_is_bounded(monkeypatch):
    monkeypatch.setattr(documents, "MAX_NODES", 10_000)
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]

    assert "more than 10000 values" in fault("\n".join(lines)).message


def test_an_alias_inside_itself_is_refused():
    assert f"more than {MAX_DEPTH} levels" in fault("a: &a [*a]\n").message


def test_deep_nesting_is_refused():
    assert "deep" in fault("[" * 2_000).message


def test_a_tag_is_refused():
    assert fault("a: !!python/name:os.system x\n").message.endswith("means nothing here: remove it")


def test_a_key_that_is_no_word_is_refused():
    assert fault("? [a, b]\n: 1\n").message == "a key must be a word"


@pytest.mark.parametrize("text", ["", "\n", "# only words\n", "---\n", "%YAML 1.2\n---\n# x\n...\n"])
def test_a_text_without_values_has_no_documents(text):
    assert list(read_documents(text)) == []


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_but_never_breaks_the_reader(text):
    for document in read_documents(text):
        assert document.faults or document.value is not None or document.values
