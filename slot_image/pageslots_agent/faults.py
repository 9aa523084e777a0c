"""What Chromium and Playwright say, as faults that a rule can act on."""

import re
from urllib.parse import urlsplit

from pageslots.wire import Outcome
from pageslots_agent.ports import LoadFault

_NET_ERROR = re.compile(r"net::(ERR_[A-Z0-9_]+)")

_BY_NAME = {
    "ERR_NAME_NOT_RESOLVED": LoadFault.DNS,
    "ERR_NAME_RESOLUTION_FAILED": LoadFault.DNS,
    "ERR_CONNECTION_REFUSED": LoadFault.REFUSED,
    "ERR_CONNECTION_RESET": LoadFault.REFUSED,
    "ERR_CONNECTION_CLOSED": LoadFault.REFUSED,
    "ERR_CONNECTION_ABORTED": LoadFault.REFUSED,
    "ERR_CONNECTION_FAILED": LoadFault.REFUSED,
    "ERR_ADDRESS_UNREACHABLE": LoadFault.REFUSED,
    "ERR_ADDRESS_INVALID": LoadFault.REFUSED,
    "ERR_EMPTY_RESPONSE": LoadFault.REFUSED,
    "ERR_SOCKET_NOT_CONNECTED": LoadFault.REFUSED,
    "ERR_CONNECTION_TIMED_OUT": LoadFault.TIMEOUT,
    "ERR_TIMED_OUT": LoadFault.TIMEOUT,
    "ERR_TOO_MANY_REDIRECTS": LoadFault.REDIRECT_LOOP,
    "ERR_TUNNEL_CONNECTION_FAILED": LoadFault.PROXY,
    "ERR_PROXY_CONNECTION_FAILED": LoadFault.PROXY,
    "ERR_PROXY_AUTH_UNSUPPORTED": LoadFault.PROXY,
    "ERR_PROXY_AUTH_REQUESTED": LoadFault.PROXY,
    "ERR_UNEXPECTED_PROXY_AUTH": LoadFault.PROXY,
    "ERR_NO_SUPPORTED_PROXIES": LoadFault.PROXY,
    "ERR_UNSAFE_REDIRECT": LoadFault.FORBIDDEN_ADDRESS,
    "ERR_UNSAFE_PORT": LoadFault.FORBIDDEN_ADDRESS,
    "ERR_DISALLOWED_URL_SCHEME": LoadFault.FORBIDDEN_ADDRESS,
    "ERR_UNKNOWN_URL_SCHEME": LoadFault.FORBIDDEN_ADDRESS,
    "ERR_ACCESS_DENIED": LoadFault.FORBIDDEN_ADDRESS,
    "ERR_BLOCKED_BY_CLIENT": LoadFault.FORBIDDEN_ADDRESS,
}
_TLS = ("ERR_CERT_", "ERR_SSL_", "ERR_BAD_SSL_", "ERR_ECH_")

RELAYED = frozenset(
    {"ERR_TUNNEL_CONNECTION_FAILED", "ERR_EMPTY_RESPONSE", "ERR_CONNECTION_CLOSED", "ERR_CONNECTION_RESET"}
)
"""What Chromium says when the relay refused: the relay knows the true cause."""


def net_error(text: str) -> str | None:
    """The name of Chromium's network error in an error message."""
    found = _NET_ERROR.search(text)
    return found.group(1) if found else None


def fault_of(name: str) -> LoadFault:
    """What a network error of Chromium means for a page."""
    known = _BY_NAME.get(name)
    if known is not None:
        return known
    return LoadFault.TLS if name.startswith(_TLS) else LoadFault.OTHER


def objection_to(url: str) -> str | None:
    """Why `url` is never opened: only http and https pages are."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError as error:
        return f"not a URL: {error}"
    if parts.scheme not in {"http", "https"}:
        return f"scheme {parts.scheme or '(none)'}: only http and https pages are opened"
    return None if host else "no host in the URL"


def outcome_of(fault: LoadFault) -> Outcome:
    """How a page with this fault ends, where nothing else is known about it."""
    match fault:
        case LoadFault.PROXY:
            return Outcome.PROXY_ERROR
        case LoadFault.CRASH | LoadFault.BROWSER_GONE | LoadFault.UNRESPONSIVE:
            return Outcome.BROWSER_CRASH
        case _:
            return Outcome.SITE_ERROR
