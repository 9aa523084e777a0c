"""Orders for pods, with everything that a test doesn't care about."""

import sys
from collections.abc import Mapping
from pathlib import Path

from pageslots.control.ports import PodOrder
from pageslots.wire import AgentConfig

STANDIN = (sys.executable, "-I", "-S", str(Path(__file__).with_name("standin_agent.py")))
"""The command of a stand-in agent, for `ProcessRuntime(agent_command=…)`."""


def an_order(
    number: int = 0,
    *,
    slot_uid: str = "",
    country: str = "SG",
    grace_ms: int = 10_000,
    memory_mib: int | None = None,
    env: Mapping[str, str] | None = None,
    chromium: str = "",
) -> PodOrder:
    """The order for the pod of permit `number` of the pool `shop`."""
    name = f"shop-browser-{number}"
    return PodOrder(
        namespace="default",
        name=name,
        pool="shop",
        pool_uid="pool-uid",
        number=number,
        slot_name=f"shop-slot-{number}",
        slot_uid=slot_uid or f"slot-uid-{number}",
        revision="r1",
        config=AgentConfig(
            pod_name=name,
            pod_uid="",
            token=f"token-{number}",
            country=country,
            locale="en-SG",
            time_zone="Asia/Singapore",
            grace_ms=grace_ms,
            chromium=chromium,
        ),
        grace_ms=grace_ms,
        memory_mib=memory_mib,
        env=env or {},
    )
