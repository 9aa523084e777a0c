"""Which addresses pages may reach: public ones, and what the pool allows (case W4).

A page is somebody else's program inside our network: without this rule a redirect to 169.254.169.254 reads
the node's cloud credentials. Judged on the resolved address that is then connected to, never on a name.
"""

import ipaddress
from collections.abc import Iterable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in (
        "169.254.169.254",
        "169.254.170.2",
        "168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
        "fd00:ec2::254",
    )
)
"""Where clouds answer with credentials. 168.63.129.16 looks public."""

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_NAT64_LOCAL = ipaddress.ip_network("64:ff9b:1::/48")
_V4_COMPATIBLE = ipaddress.ip_network("::/96")
_SHARED = ipaddress.ip_network("100.64.0.0/10")


class AddressRule:
    """`allow_private` lets private, shared and loopback addresses through; the rest needs its own network."""

    def __init__(self, *, allow_private: bool = False, allowed: Iterable[str] = ()) -> None:
        self._allow_private = allow_private
        self._allowed: list[Network] = [ipaddress.ip_network(cidr, strict=False) for cidr in allowed]

    def objection(self, address: Address) -> str | None:
        """Why `address` must not be connected to; None when it may."""
        effective = _embedded_v4(address) or address
        if any(
            candidate in network
            for network in self._allowed
            for candidate in (address, effective)
            if candidate.version == network.version
        ):
            return None
        kind = _kind(effective)
        if kind is None or (self._allow_private and kind in {"private", "loopback"}):
            return None
        return f"{address} is a {kind} address"


def _kind(address: Address) -> str | None:
    shared = address.version == 4 and address in _SHARED
    kinds = {
        "cloud metadata": address in _METADATA,
        "loopback": address.is_loopback,
        "link-local": address.is_link_local,
        "multicast": address.is_multicast,
        "unspecified": address.is_unspecified,
        "reserved": address.is_reserved,
        "private": shared or address.is_private,
        "not public": not address.is_global,
    }
    return next((kind for kind, applies in kinds.items() if applies), None)


def _embedded_v4(address: Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 one stands for: mapped, compatible, 6to4, Teredo, NAT64."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in _NAT64 or address in _NAT64_LOCAL or (address in _V4_COMPATIBLE and int(address) > 0xFFFF):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return None
