"""The local store keeps the contract of `ObjectApi`: in memory, in a file, behind a `FaultyApi`."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.contract.object_api import ObjectApiContract, Provider
from tests.contract.object_api_events import ObjectEventsContract
from tests.fakes.api import FaultyApi
from tests.fakes.faults import Faults

from pageslots.control.ports import ObjectApi
from pageslots.local.store import LocalStore


class TestInMemory(ObjectApiContract, ObjectEventsContract):
    @pytest.fixture
    def provider(self) -> Provider:
        @asynccontextmanager
        async def provide() -> AsyncGenerator[ObjectApi]:
            with LocalStore() as store:
                yield store

        return provide


class TestInAFile(ObjectApiContract, ObjectEventsContract):
    @pytest.fixture
    def provider(self, tmp_path: Path) -> Provider:
        @asynccontextmanager
        async def provide() -> AsyncGenerator[ObjectApi]:
            with LocalStore.open(tmp_path / "state.db") as store:
                yield store

        return provide


class TestBehindFaultsThatNeverHappen(ObjectApiContract, ObjectEventsContract):
    @pytest.fixture
    def provider(self) -> Provider:
        @asynccontextmanager
        async def provide() -> AsyncGenerator[ObjectApi]:
            with LocalStore() as store:
                yield FaultyApi(store, Faults())

        return provide
