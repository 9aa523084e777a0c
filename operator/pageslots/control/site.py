"""The politeness key of a request: which site it is a visitor of.

The registrable domain of its first URL by the bundled public suffix list; host:port for IP addresses and
single-label hosts (there is no registrable domain); `spec.site` where the user knows better.
"""

import ipaddress
from functools import lru_cache

from ada_url import URL
from publicsuffixlist import PublicSuffixList

from pageslots.api import CrawlRequest

DEFAULT_PORTS = {"http:": "80", "https:": "443"}


@lru_cache(maxsize=1)
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()


@lru_cache(maxsize=50_000)
def site_of_url(url: str) -> str:
    """The site of one absolute http(s) URL; ValueError for anything else."""
    parsed = URL(url)
    host = parsed.hostname.rstrip(".")
    if not host:
        raise ValueError(f"{url!r} has no host")
    bare = host.strip("[]")
    try:
        ipaddress.ip_address(bare)
    except ValueError:
        if "." in host:
            return str(_suffixes().privatesuffix(host) or host)
    return f"{host}:{parsed.port or DEFAULT_PORTS.get(parsed.protocol, '')}"


def origin_of_url(url: str) -> str:
    """Scheme, host and port, with a slash: what a preparing slot loads."""
    return f"{URL(url).origin}/"


def site_of(request: CrawlRequest, first_url: str | None = None) -> str:
    """The site of a request; `first_url` is the first row of its `urlsFrom`, where somebody has read it."""
    if request.spec.site is not None:
        return request.spec.site
    url = first_url or (request.spec.start_urls or (None,))[0]
    if url is None:
        return f"request:{request.metadata.uid or request.name}"
    try:
        return site_of_url(url)
    except ValueError:
        return url
