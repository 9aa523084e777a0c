"""The `pageslots` command: wires the other parts to a terminal, and decides nothing."""

from pageslots.cli.app import main

__all__ = ["main"]
