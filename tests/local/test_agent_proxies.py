"""Ways out of a real browser: through the proxy that the country has, and never around it."""

import asyncio

import pytest
from tests.local.agent_browser import PAGE_MS, EchoSite, a_browser, an_echo_site
from tests.unit.agent_server.upstreams import HttpProxy, Socks5, listening

from pageslots.wire import ExitCheck, Outcome, ProxyServer, WaitFor
from pageslots_agent.ports import LoadFault

pytestmark = pytest.mark.browser

PRYING = """<!doctype html><link rel=dns-prefetch href=//prefetched.example><link rel=preconnect href=http://127.0.0.1:{port}>
<img src=http://127.0.0.1:{port}/image><iframe src=http://127.0.0.1:{port}/frame></iframe><script>
fetch("http://127.0.0.1:{port}/fetch", {{mode: "no-cors"}}).catch(() => {{}});
new WebSocket("ws://127.0.0.1:{port}/socket");
(async () => {{
  const peer = new RTCPeerConnection({{iceServers: [{{urls: "stun:127.0.0.1:{udp}"}}]}});
  peer.createDataChannel("x");
  await peer.setLocalDescription(await peer.createOffer());
  await new Promise((gathered) => {{
    peer.onicegatheringstatechange = () => peer.iceGatheringState === "complete" && gathered();
    setTimeout(gathered, 1500);
  }});
  document.body.innerHTML += "<p id=tried>";
}})();
</script><p>prying"""


@pytest.mark.parametrize("scheme", ["http", "socks5"])
def test_a_page_gets_out_through_the_proxy_and_no_other_way(scheme):
    """Case W9: neither loopback addresses, nor websockets, nor WebRTC, nor name look-ups go around it."""

    async def scenario():
        packets = []

        class Catching(asyncio.DatagramProtocol):
            def datagram_received(self, data, addr):
                packets.append(data)

        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(Catching, local_addr=("127.0.0.1", 0))
        udp = transport.get_extra_info("sockname")[1]
        inside, outside = EchoSite(), EchoSite()
        async with listening(inside) as port, listening(outside) as outside_port:
            outside.pages = {"/": PRYING.format(port=port, udp=udp).encode()}
            proxy = (
                HttpProxy(outside_port, password="pw")
                if scheme == "http"
                else Socks5(outside_port, password=b"pw")
            )
            async with listening(proxy) as proxy_port:
                server = ProxyServer("px", f"{scheme}://127.0.0.1:{proxy_port}", "u-{session}", "pw")
                async with a_browser(proxies=(server,), allow_private_addresses=False) as it:
                    visit = await it.tab.visit(
                        "http://shop.example/", timeout_ms=8000, wait_for=WaitFor("#tried", 4000)
                    )
                    assert (visit.status, visit.fault, visit.proxy) == (200, None, "px")
                    assert outside.paths()[0].endswith("/")
                    assert visit.bytes > 0
            assert inside.heads == []
            assert packets == []
            assert all("shop.example" in asked for asked in proxy.asked)
        transport.close()

    asyncio.run(scenario())


def test_faults_of_a_proxy_are_told_from_those_of_a_site():
    async def scenario():
        refusing = HttpProxy(
            1, answer=b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
        )
        async with (
            listening(refusing) as port,
            a_browser(proxies=(ProxyServer("px", f"http://127.0.0.1:{port}"),)) as it,
        ):
            for url in ("http://shop.example/", "https://shop.example/"):
                visit = await it.tab.visit(url, timeout_ms=PAGE_MS)
                assert visit.fault is LoadFault.PROXY
            refusing.answer = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"
            visit = await it.tab.visit("https://shop.example/", timeout_ms=PAGE_MS)
            assert visit.fault is LoadFault.REFUSED
            assert "proxy px answered 'HTTP/1.1 502 Bad Gateway'" in visit.message

    asyncio.run(scenario())


def test_the_next_browser_after_blocked_has_another_exit_and_recycling_has_the_same():
    async def scenario():
        site = EchoSite()
        async with listening(site) as site_port:
            proxy = HttpProxy(site_port, password="pw")
            async with listening(proxy) as port:
                server = ProxyServer("px", f"http://127.0.0.1:{port}", "u-{session}", "pw")
                async with a_browser(proxies=(server,), recycle_pages=1) as it:
                    await it.tab.visit("http://shop.example/a", timeout_ms=PAGE_MS)
                    await it.tab.visit("http://shop.example/b", timeout_ms=PAGE_MS)  # recycled before it
                    it.browser.usable_after(Outcome.BLOCKED, "403")
                    tab = await it.browser.tab("shop", fresh=False)
                    await tab.visit("http://shop.example/c", timeout_ms=PAGE_MS)
        by_path = {
            path[-1]: user
            for path, user in zip(proxy.asked, proxy.users, strict=True)
            if path[-1] in {"a", "b", "c"}
        }
        assert by_path["a"] == by_path["b"] != by_path["c"]

    asyncio.run(scenario())


def test_a_slot_is_ready_only_behind_an_exit_of_its_country():
    """Case W10."""

    async def scenario():
        async with an_echo_site(pages={"/exit": b'{"country": "DE"}'}) as (site, origin):
            check = ExitCheck(f"{origin}/exit", "DE")
            async with a_browser(exit_check=check, target_url=f"{origin}/target"):
                assert site.paths() == ["/exit", "/target"]
            wrong = ExitCheck(f"{origin}/exit", "SG")
            with pytest.raises(AssertionError, match="the site sees DE, expected SG"):
                async with a_browser(exit_check=wrong, give_up_after_failures=1):
                    pass

    asyncio.run(scenario())
