"""Which proxy a browser start uses, and under which session.

A new random session id per browser start: sticky while it works, another exit address after Blocked. A proxy
that failed is left for another one, if the country has another; never direct when there are proxies.
"""

import random
import secrets

from pageslots.wire import AgentConfig, ProxyServer
from pageslots_agent.addresses import AddressRule
from pageslots_agent.upstream import Direct, Upstream, upstream_for


class ProxyChoice:
    """Chooses by weight; remembers the last choice only."""

    def __init__(self, config: AgentConfig, rng: random.Random) -> None:
        self._proxies = config.proxies
        self._rng = rng
        self._direct = Direct(
            AddressRule(allow_private=config.allow_private_addresses, allowed=config.allowed_cidrs)
        )
        self._current: ProxyServer | None = None

    def choose(self, *, avoid_current: bool = False) -> Upstream:
        """The way out of the next browser."""
        if not self._proxies:
            return self._direct
        candidates = [
            proxy for proxy in self._proxies if not (avoid_current and proxy == self._current)
        ] or list(self._proxies)
        weights = [max(proxy.weight, 0) for proxy in candidates]
        if sum(weights) == 0:
            weights = [1] * len(candidates)
        [self._current] = self._rng.choices(candidates, weights)
        return upstream_for(self._current, secrets.token_hex(8))
