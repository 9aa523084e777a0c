"""The relay between browser and outside, over real sockets: what it passes, refuses, counts and remembers."""

import asyncio
import contextlib
import random
import socket

import pytest
from tests.unit.agent_server.slots import a_config
from tests.unit.agent_server.upstreams import HttpProxy, Site, Socks5, listening

from pageslots.wire import ProxyServer
from pageslots_agent import relay as relay_module
from pageslots_agent import upstream as upstream_module
from pageslots_agent.addresses import AddressRule
from pageslots_agent.ports import LoadFault
from pageslots_agent.proxies import ProxyChoice
from pageslots_agent.relay import FaultBook, Relay
from pageslots_agent.upstream import Direct, Meter, UpstreamError, upstream_for

LOOPBACK = AddressRule(allow_private=True)


class Client:
    """Speaks to a relay as a browser does."""

    def __init__(self, relay):
        self.relay = relay
        self._writers = []

    async def __aenter__(self):
        self.port = await self.relay.start()
        return self

    async def __aexit__(self, *_):
        for writer in self._writers:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        await self.relay.close()

    async def connect(self):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self._writers.append(writer)
        return reader, writer

    async def tunnel(self, authority):
        """The status of CONNECT, and the streams."""
        reader, writer = await self.connect()
        writer.write(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
        head = await within(reader.readuntil(b"\r\n\r\n"))
        return int(head.split()[1]), reader, writer

    async def get(self, url, streams=None):
        """The body of a plain request, and the streams."""
        reader, writer = streams or await self.connect()
        host = url.split("/")[2]
        head = f"GET {url} HTTP/1.1\r\nHost: {host}\r\nProxy-Connection: keep-alive\r\nAccept: */*\r\n\r\n"
        writer.write(head.encode())
        return await within(body_of(reader)), (reader, writer)


async def body_of(reader):
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionResetError):
        return None
    [length] = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return await reader.readexactly(int(length.split(b":")[1]))


async def within(work, seconds=5):
    async with asyncio.timeout(seconds):
        return await work


def a_proxy(server, *, username="me-{session}", password="pw", **more):
    return ProxyServer("shop-proxy", server, username, password, **more)


def test_plain_requests_of_one_connection_go_out_as_a_browser_would_send_them():
    async def scenario():
        site = Site()
        async with listening(site) as port, Client(Relay(Direct(LOOPBACK))) as client:
            body, streams = await client.get(f"http://127.0.0.1:{port}/a?b=c")
            assert body == b"hello"
            body, _ = await client.get(f"http://127.0.0.1:{port}", streams)
            assert body == b"hello"
            first, second = site.heads
            host = f"Host: 127.0.0.1:{port}\r\n".encode()
            rest = b" HTTP/1.1\r\n" + host + b"Connection: keep-alive\r\nAccept: */*\r\n\r\n"
            assert first == b"GET /a?b=c" + rest
            assert second == b"GET /" + rest

    asyncio.run(scenario())


def test_a_tunnel_passes_bytes_both_ways_and_counts_them():
    async def scenario():
        site = Site(body=b"x" * 300_000)
        relay = Relay(Direct(LOOPBACK))
        async with listening(site) as port, Client(relay) as client:
            status, reader, writer = await client.tunnel(f"127.0.0.1:{port}")
            assert status == 200
            ask = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
            writer.write(ask)
            assert len(await within(body_of(reader))) == 300_000
            assert relay.meter.sent == len(ask)
            assert 300_000 < relay.meter.received < 300_200
            assert relay.meter.total == relay.meter.sent + relay.meter.received

    asyncio.run(scenario())


def test_the_body_of_a_plain_request_is_passed_and_the_next_head_read_after_it():
    async def scenario():
        site = Site()
        async with listening(site) as port, Client(Relay(Direct(LOOPBACK))) as client:
            reader, writer = await client.connect()
            body = b"GET http://evil/ HTTP/1.1\r\n\r\n" * 5000  # looks like heads, is none
            head = f"POST http://127.0.0.1:{port}/ HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            writer.write(head + body)
            assert await within(body_of(reader)) == b"hello"
            assert (await client.get(f"http://127.0.0.1:{port}/next", (reader, writer)))[0] == b"hello"
            assert [h.split()[:2] for h in site.heads] == [[b"POST", b"/"], [b"GET", b"/next"]]

    asyncio.run(scenario())


@pytest.mark.parametrize("second", ["http://127.0.0.2:{port}/", "http://127.0.0.1:{port}9/", "/no-host"])
def test_a_second_origin_on_one_connection_closes_it(second):
    async def scenario():
        site = Site()
        async with listening(site) as port, Client(Relay(Direct(LOOPBACK))) as client:
            _, (reader, writer) = await client.get(f"http://127.0.0.1:{port}/")
            writer.write(f"GET {second.format(port=port)} HTTP/1.1\r\n\r\n".encode())
            assert await within(reader.read()) == b""
            assert len(site.heads) == 1

    asyncio.run(scenario())


def test_a_body_without_a_length_is_not_passed():
    async def scenario():
        site = Site()
        async with listening(site) as port, Client(Relay(Direct(LOOPBACK))) as client:
            reader, writer = await client.connect()
            head = f"POST http://127.0.0.1:{port}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
            writer.write(head.encode())
            assert await within(reader.read()) == b""
            assert site.heads == []

    asyncio.run(scenario())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"])
def test_loopback_is_refused_by_name_and_by_number_and_the_relay_says_why(host):
    """Case W4."""

    async def scenario():
        site, relay = Site(), Relay(Direct(AddressRule()))
        async with listening(site) as port, Client(relay) as client:
            status, _, _ = await client.tunnel(f"{host}:{port}")
            assert status == 502
            assert (await client.get(f"http://{host}:{port}/"))[
                0
            ] is None  # no status that looks like the site's
            fault = relay.faults.of(host.strip("[]"))
            assert fault.fault is LoadFault.FORBIDDEN_ADDRESS
            assert "loopback" in fault.message
            assert site.heads == []

    asyncio.run(scenario())


def test_what_is_connected_to_is_the_address_that_was_looked_at(monkeypatch):
    """A name that leads elsewhere the second time it is asked for (DNS rebinding) gets nowhere."""

    async def scenario():
        answers = iter(["93.184.216.34", "127.0.0.1"])
        connected = []
        loop = asyncio.get_running_loop()

        async def getaddrinfo(host, port, **_):
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), 0))]

        async def open_connection(host, port, **_):
            connected.append(host)
            raise ConnectionRefusedError(111, "Connection refused")

        monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
        monkeypatch.setattr(asyncio, "open_connection", open_connection)
        direct = Direct(AddressRule())
        for _ in range(2):
            with pytest.raises(UpstreamError) as failed:
                await direct.tunnel("rebind.example", 80, Meter())
            assert failed.value.fault is LoadFault.REFUSED
        assert connected == ["93.184.216.34", "93.184.216.34"]

    asyncio.run(scenario())


def test_of_several_addresses_the_forbidden_ones_are_left_out(monkeypatch):
    async def scenario():
        site = Site()
        async with listening(site) as port:
            loop = asyncio.get_running_loop()

            async def getaddrinfo(host, _, **__):
                found = ["10.0.0.1", "127.0.0.9", "127.0.0.1"]
                return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in found]

            monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
            direct = Direct(AddressRule(allowed=["127.0.0.0/8"]))
            link = await direct.tunnel("two.example", port, Meter())
            assert link.writer.get_extra_info("peername")[0] == "127.0.0.1"  # nobody listens on .9
            link.writer.close()
            await link.writer.wait_closed()

    asyncio.run(scenario())


def test_a_name_that_does_not_exist_is_a_fault_of_dns():
    async def scenario():
        relay = Relay(Direct(LOOPBACK))
        async with Client(relay) as client:
            status, _, _ = await client.tunnel("nobody.invalid:443")
            assert status == 502
            assert relay.faults.of("nobody.invalid").fault is LoadFault.DNS

    asyncio.run(scenario())


@pytest.mark.parametrize("scheme", ["http", "socks5"])
def test_a_proxy_gets_credentials_and_names_and_never_an_address_of_ours(scheme):
    async def scenario():
        site = Site()
        async with listening(site) as port:
            proxy = HttpProxy(port, password="pw") if scheme == "http" else Socks5(port, password=b"pw")
            async with listening(proxy) as proxy_port:
                upstream = upstream_for(a_proxy(f"{scheme}://127.0.0.1:{proxy_port}"), "s1")
                relay = Relay(upstream)
                async with Client(relay) as client:
                    assert (await client.get("http://shop.example/a"))[0] == b"hello"
                    status, reader, writer = await client.tunnel("shop.example:443")
                    assert status == 200
                    writer.write(b"GET / HTTP/1.1\r\n\r\n")
                    assert await within(body_of(reader)) == b"hello"
                    users = {user if isinstance(user, str) else user.decode() for user in proxy.users}
                    assert users == {"me-s1"}
                    if scheme == "http":
                        assert proxy.asked == ["http://shop.example/a", "shop.example:443"]
                    else:
                        assert proxy.asked == ["shop.example:80", "shop.example:443"]
                    for literal in ("10.0.0.1", "localhost", "[::1]", "169.254.169.254", "a.localhost"):
                        assert (await client.tunnel(f"{literal}:443"))[0] == 502
                        assert (await client.get(f"http://{literal}/"))[0] is None
                        assert relay.faults.of(literal.strip("[]")).fault is LoadFault.FORBIDDEN_ADDRESS
                    assert len(proxy.asked) == 2

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", LoadFault.PROXY),
        (b"HTTP/1.1 403 Forbidden\r\n\r\n", LoadFault.PROXY),
        (b"HTTP/1.1 503 No exits\r\n\r\n", LoadFault.PROXY),
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n", LoadFault.REFUSED),
        (b"HTTP/1.1 504 Gateway Timeout\r\n\r\n", LoadFault.TIMEOUT),
        (b"SSH-2.0-OpenSSH\r\n\r\n", LoadFault.PROXY),
        (b"HTTP/1.1 200", LoadFault.PROXY),
        (b"x" * 70_000, LoadFault.PROXY),
    ],
)
def test_a_proxy_that_refuses_is_told_from_a_site_that_it_cannot_reach(answer, fault):
    """Cases W9 and D21: a dead site behind a proxy must not make its country back off."""

    async def scenario():
        async with listening(HttpProxy(1, answer=answer)) as port:
            relay = Relay(upstream_for(a_proxy(f"http://127.0.0.1:{port}"), "s"))
            async with Client(relay) as client:
                assert (await client.tunnel("shop.example:443"))[0] == 502
                assert relay.faults.of("shop.example").fault is fault
                assert "shop-proxy" in relay.faults.of("shop.example").message

    asyncio.run(scenario())


def test_a_proxy_that_reaches_one_site_is_not_to_blame_for_the_dead_ones():
    async def scenario():
        refusing = b"HTTP/1.1 502 Bad Gateway\r\n\r\n"
        site = Site()
        async with listening(site) as port:
            proxy = HttpProxy(port, answer=refusing)
            async with listening(proxy) as proxy_port:
                upstream = upstream_for(a_proxy(f"http://127.0.0.1:{proxy_port}"), "s")
                for host in ("a.example", "b.example", "alive.example", "c.example", "d.example"):
                    proxy.answer = b"" if host == "alive.example" else refusing
                    if host == "alive.example":
                        link = await upstream.tunnel(host, 443, Meter())
                        link.writer.close()
                        await link.writer.wait_closed()
                        continue
                    with pytest.raises(UpstreamError) as failed:
                        await upstream.tunnel(host, 443, Meter())
                    assert failed.value.fault is LoadFault.REFUSED

    asyncio.run(scenario())


def test_a_proxy_that_reaches_no_site_at_all_is_to_blame_itself():
    async def scenario():
        async with listening(HttpProxy(1, answer=b"HTTP/1.1 502 Bad Gateway\r\n\r\n")) as port:
            upstream = upstream_for(a_proxy(f"http://127.0.0.1:{port}"), "s")
            faults = []
            for host in ("a.example", "a.example", "a.example", "b.example", "c.example"):
                with pytest.raises(UpstreamError) as failed:
                    await upstream.tunnel(host, 443, Meter())
                faults.append(failed.value.fault)
            assert faults == [LoadFault.REFUSED] * 4 + [LoadFault.PROXY]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        (1, LoadFault.PROXY),
        (2, LoadFault.PROXY),
        (4, LoadFault.REFUSED),
        (5, LoadFault.REFUSED),
        (99, LoadFault.PROXY),
    ],
)
def test_replies_of_socks_are_told_apart(reply, fault):
    async def scenario():
        async with listening(Socks5(1, password=b"pw", reply=reply)) as port:
            upstream = upstream_for(a_proxy(f"socks5://127.0.0.1:{port}"), "s")
            with pytest.raises(UpstreamError) as failed:
                await upstream.tunnel("shop.example", 443, Meter())
            assert failed.value.fault is fault

    asyncio.run(scenario())


@pytest.mark.parametrize("password", ["wrong", ""])
def test_socks_credentials_that_are_refused_are_the_proxys_fault(password):
    async def scenario():
        async with listening(Socks5(1, password=b"pw")) as port:
            username = "me" if password else ""
            upstream = upstream_for(
                a_proxy(f"socks5://127.0.0.1:{port}", username=username, password=password), "s"
            )
            with pytest.raises(UpstreamError) as failed:
                await upstream.tunnel("shop.example", 443, Meter())
            assert failed.value.fault is LoadFault.PROXY
            assert "authenticate" in str(failed.value) or "credentials" in str(failed.value)

    asyncio.run(scenario())


def test_a_dead_proxy_is_never_passed_by():
    """Case W9: never silently direct."""

    async def scenario():
        site = Site()
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            dead = unused.getsockname()[1]
        async with listening(site) as port:
            relay = Relay(upstream_for(a_proxy(f"http://127.0.0.1:{dead}"), "s"))
            async with Client(relay) as client:
                assert (await client.tunnel(f"shop.example:{port}"))[0] == 502
                assert (await client.get(f"http://shop.example:{port}/"))[0] is None
                assert relay.faults.of("shop.example").fault is LoadFault.PROXY
                assert site.heads == []

    asyncio.run(scenario())


def test_a_proxy_that_never_answers_is_given_up(monkeypatch):
    """Case D6."""
    monkeypatch.setattr(upstream_module, "HANDSHAKE_SECONDS", 0.05)

    async def silent(reader, writer):
        await reader.read()

    async def scenario():
        async with listening(silent) as port:
            for scheme in ("http", "socks5"):
                upstream = upstream_for(a_proxy(f"{scheme}://127.0.0.1:{port}"), "s")
                with pytest.raises(UpstreamError) as failed:
                    await upstream.tunnel("shop.example", 443, Meter())
                assert failed.value.fault is LoadFault.PROXY

    asyncio.run(scenario())


def test_a_page_that_never_ends_is_cut_off(monkeypatch):
    """Case W12."""
    monkeypatch.setattr(relay_module, "MAX_PAGE_BYTES", 1_000_000)

    async def endless(reader, writer):
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    async def scenario():
        relay = Relay(Direct(LOOPBACK))
        async with listening(endless) as port, Client(relay) as client:
            relay.begin_page()
            _, reader, _ = await client.tunnel(f"127.0.0.1:{port}")
            got = await within(reader.read())
            assert 900_000 < len(got) < 1_100_000
            assert relay.overflowed
            relay.begin_page()
            assert not relay.overflowed

    asyncio.run(scenario())


def test_a_slow_reader_holds_the_sender_back():
    """Bounded buffers: what the browser does not read is not fetched either."""

    async def scenario():
        sent = 0

        async def endless(reader, writer):
            nonlocal sent
            while True:
                writer.write(b"x" * 65536)
                await writer.drain()
                sent += 65536

        relay = Relay(Direct(LOOPBACK))
        async with listening(endless) as port, Client(relay) as client:
            await client.tunnel(f"127.0.0.1:{port}")
            steady = 0
            async with asyncio.timeout(20):
                while steady < 20:  # until nothing has moved for a while
                    before = sent
                    await asyncio.sleep(0.02)
                    steady = steady + 1 if sent == before else 0
            assert relay.meter.received < 16 * 2**20  # socket buffers and ours

    asyncio.run(scenario())


def test_idle_connections_end_and_busy_ones_stay(monkeypatch):
    monkeypatch.setattr(relay_module, "IDLE_SECONDS", 0.1)
    monkeypatch.setattr(relay_module, "_SWEEP_SECONDS", 0.02)

    async def scenario():
        async with listening(Site()) as port, Client(Relay(Direct(LOOPBACK))) as client:
            _, idle, _ = await client.tunnel(f"127.0.0.1:{port}")
            _, reader, writer = await client.tunnel(f"127.0.0.1:{port}")
            ended = asyncio.ensure_future(idle.read())
            async with asyncio.timeout(10):
                while not ended.done():
                    writer.write(b"GET / HTTP/1.1\r\n\r\n")
                    assert await body_of(reader) == b"hello"
            assert ended.result() == b""

    asyncio.run(scenario())


def test_dropping_connections_ends_them_and_takes_new_ones():
    async def scenario():
        relay = Relay(Direct(LOOPBACK))
        async with listening(Site()) as port, Client(relay) as client:
            _, reader, _ = await client.tunnel(f"127.0.0.1:{port}")
            relay.drop_connections()
            assert await within(reader.read()) == b""
            assert (await client.get(f"http://127.0.0.1:{port}/"))[0] == b"hello"

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "head",
    [
        "GET / HTTP/1.1\r\n\r\n",
        "GET https://a/ HTTP/1.1\r\n\r\n",
        "GET ftp://a/ HTTP/1.1\r\n\r\n",
        "CONNECT a:99999 HTTP/1.1\r\n\r\n",
        "CONNECT [::1 HTTP/1.1\r\n\r\n",
        "CONNECT  HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_no_request_to_a_proxy_is_refused(head):
    async def scenario():
        async with Client(Relay(Direct(LOOPBACK))) as client:
            reader, writer = await client.connect()
            writer.write(head.encode())
            assert (await within(reader.read())).startswith(b"HTTP/1.1 400 ")

    asyncio.run(scenario())


def test_faults_are_bounded_and_the_oldest_go_first():
    book = FaultBook()
    for number in range(200):
        book.note(f"h{number}", UpstreamError(LoadFault.DNS, "x"))
    assert book.of("h0") is None
    assert book.of("h199") is not None
    book.clear()
    assert book.of("h199") is None


def test_every_browser_start_has_a_session_of_its_own_and_a_failed_proxy_is_left():
    proxies = tuple(ProxyServer(name, f"http://{name}:1", "u-{session}", "p") for name in ("a", "b"))
    choice = ProxyChoice(a_config(proxies=proxies), random.Random(1))
    seen = {choice.choose().plain_headers for _ in range(20)}
    assert len(seen) == 20
    for _ in range(20):
        before = choice.choose().name
        assert choice.choose(avoid_current=True).name != before


def test_one_proxy_is_kept_even_if_it_failed_and_weights_count():
    choice = ProxyChoice(a_config(proxies=(ProxyServer("a", "http://a:1"),)), random.Random(1))
    choice.choose()
    assert choice.choose(avoid_current=True).name == "a"

    proxies = (ProxyServer("a", "http://a:1", weight=9), ProxyServer("b", "socks5://b:1", weight=0))
    choice = ProxyChoice(a_config(proxies=proxies), random.Random(1))
    assert {choice.choose().name for _ in range(30)} == {"a"}
    assert ProxyChoice(a_config(), random.Random(1)).choose().name == ""


@pytest.mark.parametrize("server", ["ftp://a:1", "a:1", "http://", "socks4://a:1"])
def test_a_proxy_that_is_none_is_named(server):
    with pytest.raises(ValueError, match="proxy shop-proxy"):
        upstream_for(a_proxy(server), "s")
