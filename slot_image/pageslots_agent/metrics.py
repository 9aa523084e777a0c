"""The slot's metrics as Prometheus text, computed at scrape; no URLs, sites or request names as labels."""

from collections.abc import Mapping

from pageslots.wire import AgentStatus, Outcome, Phase


def exposition(
    status: AgentStatus,
    *,
    country: str,
    outcomes: Mapping[Outcome, int],
    bytes_sent: int,
    bytes_received: int,
    browser_starts: int,
) -> bytes:
    """All metrics of one slot."""
    where = f'country="{country}"'
    lines = [
        *_family("phase", "gauge", "1 for the phase that the slot is in"),
        *(f'pageslots_agent_phase{{{where},phase="{p}"}} {int(p is status.phase)}' for p in Phase),
        *_family("pages_total", "counter", "pages visited"),
        f"pageslots_agent_pages_total{{{where}}} {status.pages}",
        *_family("attempts_total", "counter", "attempts that ended, by outcome"),
        *(
            f'pageslots_agent_attempts_total{{{where},outcome="{o}"}} {count}'
            for o, count in sorted(outcomes.items())
        ),
        *_family("bytes_total", "counter", "bytes between the relay and the outside"),
        f'pageslots_agent_bytes_total{{{where},direction="sent"}} {bytes_sent}',
        f'pageslots_agent_bytes_total{{{where},direction="received"}} {bytes_received}',
        *_family("browser_starts_total", "counter", "browsers opened"),
        f"pageslots_agent_browser_starts_total{{{where}}} {browser_starts}",
        *_family(
            "consecutive_failures", "gauge", "failures of target, exit check, proxy and browser in a row"
        ),
        f"pageslots_agent_consecutive_failures{{{where}}} {status.consecutive_failures}",
    ]
    return ("\n".join(lines) + "\n").encode()


def _family(name: str, kind: str, text: str) -> tuple[str, str]:
    return f"# HELP pageslots_agent_{name} {text}", f"# TYPE pageslots_agent_{name} {kind}"
