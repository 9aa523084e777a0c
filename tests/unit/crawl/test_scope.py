"""Which links are followed."""

import fnmatch
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pageslots.wire import Follow
from pageslots_agent.scope import Glob, Scope
from pageslots_agent.urls import parse


def admits(scope: Scope, start: str, link: str, *, ended_at: str | None = None) -> bool:
    return scope.admits(parse(link), scope.anchors([start, ended_at or start]))


@pytest.mark.parametrize(
    ("scope", "link", "follows"),
    [
        ("page", "https://shop.example/list/1", False),
        ("prefix", "https://shop.example/list/1", True),
        ("prefix", "http://shop.example/list/", True),
        ("prefix", "https://shop.example/other", False),
        ("prefix", "https://else.example/list/1", False),
        ("host", "https://shop.example/other", True),
        ("host", "http://shop.example/other", True),
        ("host", "https://www.shop.example/", False),
        ("host", "https://shop.example:8443/", False),
        ("domain", "https://www.shop.example/", True),
        ("domain", "https://shop.example:8443/", True),
        ("domain", "https://else.example/", False),
    ],
)
def test_a_scope_is_measured_from_the_start_page(scope, link, follows):
    assert admits(Scope(Follow(scope)), "https://shop.example/list/index.html", link) is follows


@pytest.mark.parametrize(
    ("start", "link", "follows"),
    [
        ("https://a.co.uk/", "https://www.a.co.uk/", True),
        ("https://a.co.uk/", "https://b.co.uk/", False),
        ("https://one.github.io/", "https://two.github.io/", False),
        ("http://127.0.0.1:8001/", "http://127.0.0.1:8001/x", True),
        ("http://127.0.0.1:8001/", "http://127.0.0.1:8002/", False),
        ("http://localhost:8001/", "http://localhost:8002/", False),
        ("http://10.0.0.1/", "http://11.0.0.1/", False),
        ("https://shop.example./", "https://www.shop.example/", True),
    ],
)
def test_a_domain_is_what_can_be_registered(start, link, follows):
    assert admits(Scope(Follow("domain")), start, link) is follows


def test_a_redirected_front_page_brings_its_new_host_into_the_scope():
    scope = Scope(Follow("host"))
    assert admits(
        scope, "https://shop.example/", "https://www.shop.example/x", ended_at="https://www.shop.example/"
    )
    assert admits(
        scope, "https://shop.example/", "https://shop.example/x", ended_at="https://www.shop.example/"
    )


def test_depth_is_bounded():
    scope = Scope(Follow("host", max_depth=2))
    assert [scope.reads_links(depth) for depth in range(4)] == [True, True, False, False]


def test_include_narrows_and_exclude_wins():
    scope = Scope(Follow("host", include=("*/product/*",), exclude=("*?print=1",)))
    start = "https://shop.example/"
    assert admits(scope, start, "https://shop.example/product/1")
    assert not admits(scope, start, "https://shop.example/about")
    assert not admits(scope, start, "https://shop.example/product/1?print=1")


def test_an_unknown_scope_is_refused():
    with pytest.raises(ValueError, match="'planet' is not one of page, prefix, host, domain"):
        Scope(Follow("planet"))


@given(st.text("ab*", max_size=8), st.text("ab", max_size=12))
def test_globs_match_as_the_shell_does(pattern, text):
    """For patterns of letters and stars: the standard library's matcher, which backtracks, agrees."""
    assert Glob(pattern).matches(text) == fnmatch.fnmatchcase(text, pattern)


def test_question_marks_and_brackets_stand_for_themselves():
    assert Glob("*/list?page=[1]").matches("https://shop.example/list?page=[1]")
    assert not Glob("*/list?page=[1]").matches("https://shop.example/listXpage=1")


def test_a_hostile_pattern_takes_no_time():
    """A pattern that makes backtracking matchers hang."""
    began = time.perf_counter()
    assert not Glob("*a" * 500 + "b").matches("a" * 2_000)
    assert time.perf_counter() - began < 0.5
