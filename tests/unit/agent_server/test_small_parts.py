"""Faults, blocking, processes, log lines, long polls: the small rules of the agent."""

import asyncio
import logging
import os
import subprocess
import sys

import pytest
from tests.fakes.vtime import run, until

from pageslots_agent import logs, processes
from pageslots_agent.blocking import BLOCKABLE, Blocking
from pageslots_agent.faults import fault_of, net_error, objection_to
from pageslots_agent.ports import LoadFault
from pageslots_agent.revision import Revision


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("ERR_NAME_NOT_RESOLVED", LoadFault.DNS),
        ("ERR_CONNECTION_REFUSED", LoadFault.REFUSED),
        ("ERR_CERT_DATE_INVALID", LoadFault.TLS),
        ("ERR_SSL_PROTOCOL_ERROR", LoadFault.TLS),
        ("ERR_TOO_MANY_REDIRECTS", LoadFault.REDIRECT_LOOP),
        ("ERR_TUNNEL_CONNECTION_FAILED", LoadFault.PROXY),
        ("ERR_UNSAFE_REDIRECT", LoadFault.FORBIDDEN_ADDRESS),
        ("ERR_INVALID_RESPONSE", LoadFault.OTHER),
    ],
)
def test_what_chromium_says_as_a_fault(name, fault):
    assert net_error(f"Page.goto: net::{name} at https://a/") == name
    assert fault_of(name) is fault


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "chrome://version",
        "javascript:1",
        "about:blank",
        "data:,x",
        "/a",
        "http://",
        "http://[",
        "",
    ],
)
def test_only_web_pages_are_opened(url):
    """Case W4."""
    assert objection_to(url) is not None


def test_web_pages_are_opened():
    assert objection_to("http://a/") is None
    assert objection_to("https://[2606:4700::1111]:8443/x") is None


def test_images_and_fonts_are_blocked_by_flags_and_only_the_rest_is_asked_about():
    """Case W16."""
    blocking = Blocking(frozenset({"image", "font", "media"}))
    assert blocking.blink_settings == ("imagesEnabled=false",)
    assert blocking.flags == ("--disable-remote-fonts",)
    assert blocking.fetch_patterns == [{"resourceType": "Media"}]
    assert Blocking(frozenset({"image", "font"})).fetch_patterns == []
    assert Blocking().fetch_patterns == []


def test_a_url_pattern_is_asked_about_for_every_type_of_request():
    patterns = Blocking(patterns=("*://ads.example/*",)).fetch_patterns
    assert {p["urlPattern"] for p in patterns} == {"*://ads.example/*"}
    assert {"Script", "XHR", "Image", "Document"} <= {p["resourceType"] for p in patterns}
    assert len(patterns) == len(BLOCKABLE) + 1


def test_descendants_are_found_and_killed():
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
    child = subprocess.Popen([sys.executable, "-c", code])

    async def two():
        await until(lambda: len(processes.descendants(child.pid)) == 1, within_seconds=20)

    asyncio.run(two())
    [grandchild] = processes.descendants(child.pid)
    assert child.pid in processes.descendants(os.getpid())
    processes.kill([child.pid, grandchild, 2**22 + 12345])  # the last one is nobody
    assert child.wait(10) == -9


def test_an_event_is_one_line_whatever_its_values_are(caplog):
    caplog.set_level(logging.INFO)
    logs.event("slot.ready", country="SG", seconds=1.4, note=None, text='a "b"\nc\\d', empty="")
    logs.event("long", value="x" * 10_000)

    first, second = (record.getMessage() for record in caplog.records)
    assert first == 'slot.ready country=SG seconds=1.400 text="a \\"b\\"\\nc\\\\d" empty=""'
    assert len(second) < 600


def test_a_bump_wakes_every_poll():
    async def scenario():
        revision = Revision()
        polls = [asyncio.create_task(revision.newer_than(1, seconds=60)) for _ in range(3)]
        await asyncio.sleep(1)
        assert not any(poll.done() for poll in polls)
        revision.bump()
        await asyncio.gather(*polls)
        assert revision.now == 2
        assert asyncio.get_running_loop().time() == pytest.approx(1)

    run(scenario())
