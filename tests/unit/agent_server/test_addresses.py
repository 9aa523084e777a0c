"""Which addresses pages may reach (case W4)."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pageslots_agent.addresses import AddressRule

PRIVATE = ["10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fd00::1", "127.0.0.1", "127.66.0.1", "::1"]
NEVER = [
    "169.254.169.254",
    "169.254.1.1",
    "168.63.129.16",
    "100.100.100.200",
    "fd00:ec2::254",
    "fe80::1",
    "224.0.0.1",
    "ff02::1",
    "0.0.0.0",
    "::",
    "255.255.255.255",
    "240.0.0.1",
    "192.0.0.192",
    "2001:db8::1",
]
PUBLIC = ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "64:ff9b::101:101", "2002:101:101::1"]


@pytest.mark.parametrize("address", PRIVATE + NEVER)
def test_only_public_addresses_are_reached_by_default(address):
    assert AddressRule().objection(ipaddress.ip_address(address)) is not None


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_reached(address):
    assert AddressRule().objection(ipaddress.ip_address(address)) is None


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_can_be_allowed_together(address):
    assert AddressRule(allow_private=True).objection(ipaddress.ip_address(address)) is None


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "168.63.129.16", "fd00:ec2::254", "fe80::1", "224.0.0.1"]
)
def test_metadata_and_link_local_need_a_network_of_their_own(address):
    parsed = ipaddress.ip_address(address)
    assert AddressRule(allow_private=True).objection(parsed) is not None
    assert (
        AddressRule(allowed=[f"{address}/32" if parsed.version == 4 else f"{address}/128"]).objection(parsed)
        is None
    )


@pytest.mark.parametrize("form", ["::ffff:{}", "64:ff9b::{}", "::{}"])
@pytest.mark.parametrize("address", ["10.0.0.1", "127.0.0.1", "169.254.169.254"])
def test_an_address_inside_another_is_seen_through(form, address):
    assert AddressRule().objection(ipaddress.ip_address(form.format(address))) is not None


def test_6to4_and_teredo_are_seen_through():
    assert AddressRule().objection(ipaddress.ip_address("2002:0a00:0001::")) is not None
    assert AddressRule().objection(ipaddress.ip_address("2001:0:4136:e378:8000:63bf:f5ff:fffe")) is not None


@given(st.ip_addresses(v=4))
def test_a_mapped_address_is_judged_as_what_it_stands_for(address):
    """Nobody gets further by spelling an IPv4 address as an IPv6 one."""
    rule = AddressRule()
    mapped = ipaddress.ip_address(f"::ffff:{address}")
    assert (rule.objection(mapped) is None) == (rule.objection(address) is None)


@given(st.ip_addresses())
def test_an_allowed_network_allows_exactly_itself(address):
    rule = AddressRule(allowed=["127.66.0.1/16"])
    inside = address.version == 4 and address in ipaddress.ip_network("127.66.0.0/16")
    if inside:
        assert rule.objection(address) is None
    else:
        assert (rule.objection(address) is None) == (AddressRule().objection(address) is None) or (
            address.version == 6
        )
