"""What one URL is: parsing, joining and the canonical form by which pages are told apart.

URLs are read as browsers read them (the WHATWG URL Standard, through Ada), so that what is compared here is
what Chromium would load. The address of a page is the standard's serialisation without its fragment. Two
addresses are the same page when their `identity` is equal, which differs from the address in two ways only:

- percent-encoding is normalised as RFC 3986 section 6.2.2 says: hexadecimal digits in upper case, unreserved
  characters decoded (`%7euser` is `~user`);
- session ids that servers put into links are left out (`;jsessionid=…` and the parameters in
  SESSION_PARAMETERS): a site without cookies would otherwise look endless.

Nothing else is folded: the order of parameters, an empty query, a trailing dot of a host and a trailing slash
can mean different pages.
"""

import re
from dataclasses import dataclass
from hashlib import blake2b

from ada_url import URL

MAX_URL_LENGTH = 2_048
"""Characters of the longest address that is crawled, as in the API's `startUrls`; traps grow longer ones."""

SESSION_PARAMETERS = frozenset({"jsessionid", "phpsessid", "aspsessionid", "cfid", "cftoken"})
IDENTITY_BYTES = 12
"""96 bits: a million pages collide with a probability below 1 in 10^16."""

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
_SESSION_PATH = re.compile(";jsessionid=[^/?;]*", re.IGNORECASE)


class UrlError(ValueError):
    """A URL that can't be crawled; the text says why."""


@dataclass(frozen=True, slots=True)
class Address:
    """A crawlable URL: http or https, serialised by the standard, without a fragment."""

    url: str
    scheme: str
    host: str  # with the port unless it is the scheme's own
    path: str

    @property
    def hostname(self) -> str:
        """The host without its port."""
        if self.host.startswith("["):
            return self.host.partition("]")[0] + "]"
        return self.host.partition(":")[0]

    @property
    def origin(self) -> str:
        """Scheme and host, as robots.txt is kept by."""
        return f"{self.scheme}://{self.host}"

    @property
    def identity(self) -> bytes:
        """Equal for two spellings of one page (see the module)."""
        return blake2b(_folded(self.url).encode(), digest_size=IDENTITY_BYTES).digest()


def parse(text: str, *, base: str | None = None) -> Address:
    """Read a URL as a browser would, relative to `base` if given; raises UrlError."""
    try:
        parsed = URL(text, base=base)
    except (ValueError, UnicodeError):
        raise UrlError(f"{_shown(text)} is not a URL") from None
    scheme = parsed.protocol.removesuffix(":")
    if scheme not in ("http", "https"):
        raise UrlError(f"{_shown(text)} has the scheme {scheme!r}: only http and https are crawled")
    url = parsed.href.partition("#")[0]
    if len(url) > MAX_URL_LENGTH:
        raise UrlError(f"{_shown(text)} is longer than {MAX_URL_LENGTH} characters")
    return Address(url=url, scheme=scheme, host=parsed.host, path=parsed.pathname)


def parse_link(href: str, base: str) -> Address | None:
    """The address that a link leads to; None for everything that is not a page of the web.

    User names and passwords are dropped: a page must not choose the credentials that are sent elsewhere.
    """
    try:
        address = parse(href, base=base)
    except UrlError:
        return None
    start = len(address.scheme) + 3
    authority = address.url[start:].partition("/")[0]
    if "@" not in authority:
        return address
    return Address(
        url=address.origin + address.url[start + len(authority) :],
        scheme=address.scheme,
        host=address.host,
        path=address.path,
    )


def _folded(url: str) -> str:
    if "%" in url:
        url = _ESCAPE.sub(_normalised_escape, url)
    if ";" in url:
        url = _SESSION_PATH.sub("", url)
    if "?" in url:
        before, _, query = url.partition("?")
        kept = [part for part in query.split("&") if not _is_session_id(part)]
        url = f"{before}?{'&'.join(kept)}" if kept else before
    return url


def _is_session_id(parameter: str) -> bool:
    name, equals, _ = parameter.partition("=")
    name = name.lower()
    return bool(equals) and (name in SESSION_PARAMETERS or name.startswith("aspsessionid"))


def _normalised_escape(match: re.Match[str]) -> str:
    byte = int(match[1], 16)
    return chr(byte) if byte in _UNRESERVED else match[0].upper()


def _shown(text: str) -> str:
    return repr(text if len(text) <= 120 else text[:117] + "…")
