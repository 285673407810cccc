"""A daemon for the whole run, and clients of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import models
import pytest
import pytest_asyncio

import tribo
from tribo.daemon import find_binary


@pytest.fixture(scope="session")
def binary() -> str:
    try:
        path = find_binary()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    if not Path(path).exists():
        pytest.skip(f"there is no daemon to test with: {path}")
    return path


@pytest.fixture(scope="session")
def daemon(binary: str) -> Iterator[tribo.Daemon]:
    with tribo.Daemon(binary=binary) as daemon:
        yield daemon


@pytest.fixture
def client(daemon: tribo.Daemon) -> Iterator[tribo.Client]:
    with daemon.connect(timeout=60) as client:
        yield client


@pytest_asyncio.fixture
async def aio(daemon: tribo.Daemon) -> AsyncIterator[tribo.aio.Client]:
    async with tribo.aio.connect(daemon.grpc, timeout=60) as client:
        yield client


@pytest.fixture
def ball(client: tribo.Client) -> tribo.Scene:
    return client.load(models.BALL, name="ball.xml")


@pytest.fixture
def lift(client: tribo.Client) -> tribo.Scene:
    return client.load(models.LIFT, name="lift.xml")
