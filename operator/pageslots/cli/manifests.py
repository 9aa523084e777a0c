"""Manifests as the user names them."""

import sys
from collections.abc import Sequence

from pageslots.api import LoadedManifests, ManifestErrors, check_references, load_manifests
from pageslots.cli.problems import UsageProblem

STDIN = "-"


def load(files: Sequence[str]) -> LoadedManifests:
    """The objects of the files; raises UsageProblem with everything that is wrong with them."""
    try:
        loaded = load_manifests(files, stdin=sys.stdin.buffer)
    except ManifestErrors as errors:
        raise UsageProblem(*map(str, errors.errors)) from None
    if wrong := check_references(loaded):
        raise UsageProblem(*map(str, wrong))
    return loaded
