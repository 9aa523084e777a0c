"""Where the relay sends what the browser asks for: straight to the site, or through one proxy.

Three ways, one shape: `tunnel` for CONNECT, `plain` for http:// requests. All of them say *why* they failed,
which Chromium can't: to it every failure behind a proxy is ERR_TUNNEL_CONNECTION_FAILED.
"""

import asyncio
import base64
import ipaddress
import socket
import ssl
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from pageslots.wire import ProxyServer
from pageslots_agent.addresses import Address, AddressRule
from pageslots_agent.ports import LoadFault

CONNECT_SECONDS = 15.0
RESOLVE_SECONDS = 10.0
HANDSHAKE_SECONDS = 20.0  # until a proxy has answered
BUFFER_BYTES = 64 * 1024
_KEPT_NAMES = 512
_KEEP_NAME_SECONDS = 30.0


class UpstreamError(Exception):
    """No connection; the text names the cause for people."""

    def __init__(self, fault: LoadFault, message: str) -> None:
        super().__init__(message)
        self.fault = fault


@dataclass(slots=True)
class Meter:
    """Bytes on the outer side of the relay: what a proxy bills."""

    sent: int = 0
    received: int = 0

    @property
    def total(self) -> int:
        """Both ways."""
        return self.sent + self.received


@dataclass(frozen=True, slots=True)
class Link:
    """An open connection outwards."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class Upstream(Protocol):
    """One way out."""

    @property
    def name(self) -> str:
        """The proxy's name; empty: direct."""
        ...

    @property
    def absolute_form(self) -> bool:
        """Whether a plain request names the whole URL, as proxies expect."""
        ...

    @property
    def plain_headers(self) -> bytes:
        """Header lines that a plain request needs beside its own."""
        ...

    async def tunnel(self, host: str, port: int, meter: Meter) -> Link:
        """Bytes to and from `host`; raises UpstreamError."""
        ...

    async def plain(self, host: str, port: int, meter: Meter) -> Link:
        """A connection for http:// requests to `host`; raises UpstreamError."""
        ...


class Direct:
    """Straight to the site, after a look at the address; connects to the very address it looked at."""

    name = ""
    absolute_form = False
    plain_headers = b""

    def __init__(self, rule: AddressRule) -> None:
        self._rule = rule
        self._names: dict[str, tuple[float, list[Address]]] = {}

    async def tunnel(self, host: str, port: int, meter: Meter) -> Link:  # noqa: ARG002 -- nothing is sent yet
        """Resolve, check, connect: the first address that answers."""
        allowed, objection = [], None
        for address in await self._resolve(host):
            why = self._rule.objection(address)
            if why is None:
                allowed.append(address)
            else:
                objection = why
        if not allowed:
            raise UpstreamError(LoadFault.FORBIDDEN_ADDRESS, _not_allowed(host, objection))
        return await _first_that_answers(host, [str(address) for address in allowed], port)

    plain = tunnel

    async def _resolve(self, host: str) -> list[Address]:
        try:
            return [ipaddress.ip_address(host)]
        except ValueError:
            pass
        loop = asyncio.get_running_loop()
        kept = self._names.get(host)
        if kept is not None and kept[0] > loop.time():
            return kept[1]
        try:
            async with asyncio.timeout(RESOLVE_SECONDS):
                found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except TimeoutError:
            raise UpstreamError(
                LoadFault.DNS, f"{host}: no answer from DNS in {RESOLVE_SECONDS:.0f} s"
            ) from None
        except (OSError, UnicodeError) as error:
            raise UpstreamError(LoadFault.DNS, f"{host}: {_reason(error)}") from None
        addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
        if len(self._names) >= _KEPT_NAMES:
            self._names.clear()
        self._names[host] = (loop.time() + _KEEP_NAME_SECONDS, addresses)
        return addresses


class HttpProxy:
    """An HTTP or HTTPS proxy, with Basic credentials if it has any."""

    absolute_form = True

    def __init__(self, proxy: ProxyServer, username: str) -> None:
        self.name = proxy.name
        self._server = urlsplit(proxy.server)
        self._host, self._port = _address_of(proxy)
        self._gateway_failures: set[str] = set()
        self.plain_headers = b""
        if username:
            pair = base64.b64encode(f"{username}:{proxy.password}".encode())
            self.plain_headers = b"Proxy-Authorization: Basic " + pair + b"\r\n"

    async def tunnel(self, host: str, port: int, meter: Meter) -> Link:
        """CONNECT; anything but 2xx is a failure, the site's or the proxy's."""
        refuse_literal(host)
        link = await self._connect()
        try:
            authority = (f"[{host}]:{port}" if ":" in host else f"{host}:{port}").encode()
            ask = b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n%b\r\n" % (authority, authority, self.plain_headers)
            link.writer.write(ask)
            meter.sent += len(ask)
            async with asyncio.timeout(HANDSHAKE_SECONDS):
                answer = await link.reader.readuntil(b"\r\n\r\n")
            meter.received += len(answer)
            self._judge(answer, host, port)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            link.writer.close()
            raise UpstreamError(LoadFault.PROXY, f"proxy {self.name}: {_reason(error)} on CONNECT") from None
        except UpstreamError:
            link.writer.close()
            raise
        return link

    def _judge(self, answer: bytes, host: str, port: int) -> None:
        """502 and 504 mean that the *site* can't be reached, unless the proxy says it of every site."""
        line = answer.split(b"\r\n", 1)[0].decode("latin-1")
        words = line.split(maxsplit=2)
        status = words[1] if len(words) > 1 else ""
        if status.startswith("2"):
            self._gateway_failures.clear()
            return
        message = f"proxy {self.name} answered {line!r} for {host}:{port}"
        if status not in {"502", "504"}:
            raise UpstreamError(LoadFault.PROXY, message)
        self._gateway_failures.add(host)
        if len(self._gateway_failures) >= 3:
            self._gateway_failures.clear()
            raise UpstreamError(LoadFault.PROXY, f"{message}, as for the two hosts before")
        raise UpstreamError(LoadFault.REFUSED if status == "502" else LoadFault.TIMEOUT, message)

    async def plain(self, host: str, port: int, meter: Meter) -> Link:  # noqa: ARG002 -- requests are sent as they are
        """The proxy takes http:// requests as they are."""
        refuse_literal(host)
        return await self._connect()

    async def _connect(self) -> Link:
        context = ssl.create_default_context() if self._server.scheme == "https" else None
        return await _connect_to_proxy(self.name, self._host, self._port, context)


class Socks5Proxy:
    """A SOCKS5 proxy (RFC 1928), with credentials (RFC 1929) if it has any; it resolves the names."""

    absolute_form = False
    plain_headers = b""

    def __init__(self, proxy: ProxyServer, username: str) -> None:
        self.name = proxy.name
        self._host, self._port = _address_of(proxy)
        self._username = username.encode()
        self._password = proxy.password.encode()
        if max(len(self._username), len(self._password)) > 255:
            raise ValueError(f"proxy {proxy.name}: user name or password longer than 255 bytes")

    async def tunnel(self, host: str, port: int, meter: Meter) -> Link:
        """Negotiate, authenticate, CONNECT."""
        refuse_literal(host)
        link = await _connect_to_proxy(self.name, self._host, self._port, None)
        try:
            async with asyncio.timeout(HANDSHAKE_SECONDS):
                await self._negotiate(link, meter)
                await self._ask(link, host, port, meter)
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            link.writer.close()
            raise UpstreamError(
                LoadFault.PROXY, f"proxy {self.name}: {_reason(error)} in the SOCKS handshake"
            ) from None
        except UpstreamError:
            link.writer.close()
            raise
        return link

    plain = tunnel

    async def _negotiate(self, link: Link, meter: Meter) -> None:
        methods = b"\x00\x02" if self._username else b"\x00"
        _send(link, bytes([5, len(methods)]) + methods, meter)
        version, method = await _receive(link, 2, meter)
        if version != 5 or method not in methods:
            raise UpstreamError(LoadFault.PROXY, f"proxy {self.name}: no common way to authenticate")
        if method == 2:
            name, password = self._username, self._password
            _send(link, bytes([1, len(name)]) + name + bytes([len(password)]) + password, meter)
            _, status = await _receive(link, 2, meter)
            if status != 0:
                raise UpstreamError(LoadFault.PROXY, f"proxy {self.name}: credentials refused")

    async def _ask(self, link: Link, host: str, port: int, meter: Meter) -> None:
        try:
            address = ipaddress.ip_address(host)
            target = bytes([1 if address.version == 4 else 4]) + address.packed
        except ValueError:
            if not host.isascii() or len(host) > 255:
                raise UpstreamError(LoadFault.DNS, f"{host[:80]}: not a host name") from None
            target = bytes([3, len(host)]) + host.encode("ascii")
        _send(link, b"\x05\x01\x00" + target + port.to_bytes(2, "big"), meter)
        _, reply, _, kind = await _receive(link, 4, meter)
        if reply != 0:
            fault, text = _SOCKS_REPLIES.get(reply, (LoadFault.PROXY, f"reply {reply}"))
            raise UpstreamError(fault, f"proxy {self.name} for {host}:{port}: {text}")
        length = {1: 4, 4: 16}.get(kind) or (await _receive(link, 1, meter))[0]
        await _receive(link, length + 2, meter)


_SOCKS_REPLIES = {
    1: (LoadFault.PROXY, "general failure"),
    2: (LoadFault.PROXY, "not allowed by its rules"),
    3: (LoadFault.REFUSED, "network unreachable"),
    4: (LoadFault.REFUSED, "host unreachable"),
    5: (LoadFault.REFUSED, "connection refused"),
    6: (LoadFault.TIMEOUT, "TTL expired"),
}


def _not_allowed(host: str, objection: str | None) -> str:
    whose = "" if objection and objection.startswith(host) else f"{host}: "
    return f"{whose}{objection}; the pool allows no such addresses"


def refuse_literal(host: str) -> None:
    """Through a proxy only names and public literals: where a name leads is the proxy's network, not ours."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        raise UpstreamError(LoadFault.FORBIDDEN_ADDRESS, f"{host} is a loopback name")
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return
    objection = AddressRule().objection(address)
    if objection is not None:
        raise UpstreamError(LoadFault.FORBIDDEN_ADDRESS, f"{objection}: not asked of a proxy")


def upstream_for(proxy: ProxyServer, session: str) -> Upstream:
    """The client for `proxy`; `session` replaces `{session}` in its user name."""
    username = proxy.username.replace("{session}", session)
    scheme = urlsplit(proxy.server).scheme
    if scheme in {"http", "https"}:
        return HttpProxy(proxy, username)
    if scheme in {"socks5", "socks5h"}:
        return Socks5Proxy(proxy, username)
    raise ValueError(f"proxy {proxy.name}: {proxy.server!r}: expected http://, https:// or socks5://")


def _address_of(proxy: ProxyServer) -> tuple[str, int]:
    server = urlsplit(proxy.server)
    if not server.hostname:
        raise ValueError(f"proxy {proxy.name}: {proxy.server!r}: expected scheme://host:port")
    default = {"http": 80, "https": 443}.get(server.scheme, 1080)
    return server.hostname, server.port or default


async def _connect_to_proxy(name: str, host: str, port: int, context: ssl.SSLContext | None) -> Link:
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            return Link(*await asyncio.open_connection(host, port, ssl=context, limit=BUFFER_BYTES))
    except (OSError, TimeoutError) as error:
        raise UpstreamError(LoadFault.PROXY, f"proxy {name}: {_reason(error)}") from None


async def _first_that_answers(host: str, addresses: list[str], port: int) -> Link:
    """One after another, the last with the whole time: a dead IPv6 route must not cost a page."""
    tried = addresses[:6]
    fault, failure = LoadFault.REFUSED, f"{host}: no address"
    for address in tried:
        seconds = CONNECT_SECONDS if address == tried[-1] else CONNECT_SECONDS / 5
        try:
            async with asyncio.timeout(seconds):
                return Link(*await asyncio.open_connection(address, port, limit=BUFFER_BYTES))
        except (OSError, TimeoutError) as error:
            failure = f"{host} ({address}) port {port}: {_reason(error)}"
            fault = LoadFault.TIMEOUT if isinstance(error, TimeoutError) else LoadFault.REFUSED
    raise UpstreamError(fault, failure)


def _send(link: Link, data: bytes, meter: Meter) -> None:
    link.writer.write(data)
    meter.sent += len(data)


async def _receive(link: Link, size: int, meter: Meter) -> bytes:
    data = await link.reader.readexactly(size)
    meter.received += size
    return data


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, asyncio.IncompleteReadError):
        return "connection closed early"
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()
