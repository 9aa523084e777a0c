"""A slot's browser in this process: what `main` wires, without HTTP; and a site that shows what it was sent."""

import asyncio
import contextlib
import os
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from tests.unit.agent_server.upstreams import listening

from pageslots.local.browser import find_browser
from pageslots.wire import AgentConfig
from pageslots_agent.browser import DRIVER_ENVIRONMENT, Chromium
from pageslots_agent.main import browser_settings
from pageslots_agent.proxies import ProxyChoice
from pageslots_agent.relay import Relay
from pageslots_agent.slot_browser import SlotBrowser
from pageslots_agent.tab import SlotTab

PAGE_MS = 5_000


@dataclass
class Parts:
    """One slot's browser, its relay, and a tab on its page."""

    relay: Relay
    chromium: Chromium
    browser: SlotBrowser
    tab: SlotTab


async def config_for(**changes) -> AgentConfig:
    """Of a slot that blocks what pools block by default and may reach loopback."""
    config = AgentConfig(
        pod_name="pool-browser-0",
        pod_uid="pod-1",
        token="secret",
        country="SG",
        locale="en-SG",
        time_zone="Asia/Singapore",
        chromium=str((await find_browser()).path),
        allow_private_addresses=True,
        blocked_resource_types=("image", "font", "media"),
    )
    return replace(config, **changes)


@contextlib.asynccontextmanager
async def a_browser(**changes):
    """Prepared, on its page for the site `shop`."""
    os.environ.update(DRIVER_ENVIRONMENT)
    config = await config_for(**changes)
    choice = ProxyChoice(config, random.Random(1))
    relay = Relay(choice.choose())
    chromium = Chromium(browser_settings(config, await relay.start()))
    browser = SlotBrowser(config, chromium, relay, choice, wall_clock=lambda: 1)
    try:
        assert await browser.prepare(), browser.last_failure
        tab = await browser.tab("shop", fresh=False)
        assert isinstance(tab, SlotTab)
        yield Parts(relay, chromium, browser, tab)
    finally:
        async with asyncio.timeout(20):
            await browser.close()
            await relay.close()


@dataclass
class EchoSite:
    """Answers with the request's head as its page; sets a cookie at /set; keeps the heads."""

    heads: list[str] = field(default_factory=list)
    pages: Mapping[str, bytes] = field(default_factory=dict)

    async def __call__(self, reader, writer):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            path = urlsplit(head.split()[1]).path  # a proxy passes whole URLs
            body = self.pages.get(path, f"<!doctype html><pre>{head}</pre>".encode())
            extra = "Set-Cookie: basket=full; Path=/\r\n" if path == "/set" else ""
            kind = {"png": "image/png", "js": "text/javascript"}.get(path.rpartition(".")[2], "text/html")
            writer.write(
                f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{extra}Content-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            await writer.drain()

    def paths(self):
        """Of the requests so far, without those that browsers make by themselves."""
        return [path for h in self.heads if (path := h.split()[1]) != "/favicon.ico"]


@contextlib.asynccontextmanager
async def an_echo_site(**pages):
    """The site and its origin; `pages` by their path, `_` for `/`."""
    site = EchoSite(pages=pages.pop("pages", {}))
    async with listening(site) as port:
        yield site, f"http://127.0.0.1:{port}"
