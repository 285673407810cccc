"""Failures and their exceptions: statuses, fields, deadlines, retries, failed starts."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import models
import pytest

import tribo
from tribo import requests


def test_statuses_and_fields(client: tribo.Client, ball: tribo.Scene) -> None:
    nobody = "0" * 32
    with client.create_session(ball) as session:
        cases: list[tuple[type[tribo.TriboError], str, Callable[[], object]]] = [
            (tribo.NotFoundError, "", lambda: client.session(nobody).step()),
            (tribo.InvalidArgumentError, "session_id", lambda: client.session("me").step()),
            (tribo.InvalidArgumentError, "steps", lambda: session.step(-1)),
            (tribo.InvalidArgumentError, "controls", lambda: session.step(controls=[1.0])),
            (tribo.InvalidArgumentError, "q", lambda: session.set_state(q=[1.0])),
            (tribo.InvalidArgumentError, "keyframe", lambda: session.reset(keyframe=3)),
            (tribo.NotFoundError, "", lambda: client.describe("0" * 64)),
            (tribo.InvalidArgumentError, "worlds", lambda: client.create_session(ball, worlds=-1)),
            (
                tribo.InvalidArgumentError,
                "dt",
                lambda: client.create_session(ball, options=tribo.StepOptions(dt=-1.0)),
            ),
            (tribo.NotFoundError, "", lambda: session.restore("f" * 32)),
            (tribo.InvalidArgumentError, "data", lambda: session.restore([b"not a state"])),
            (tribo.NotFoundError, "", lambda: client.run(nobody)),
        ]
        for kind, field, call in cases:
            with pytest.raises(tribo.TriboError) as raised:
                call()
            error = raised.value
            assert type(error) is kind, f"{field}: {error}"
            assert field in error.field, f"{field}: {error.field}: {error}"
            assert error.message
            assert error.reason


def test_words_that_mean_nothing_are_refused_here(client: tribo.Client, ball: tribo.Scene) -> None:
    with pytest.raises(ValueError, match="on_disconnect is 'explode', expected one of keep"):
        client.create_session(ball, on_disconnect="explode")
    with client.create_session(ball) as session, pytest.raises(ValueError, match="priority is"):
        session.step(priority="urgent")


def test_deadlines_end_long_steps(client: tribo.Client, lift: tribo.Scene) -> None:
    with client.create_session(lift, worlds=100) as session:
        began = time.monotonic()
        with pytest.raises(tribo.DeadlineExceededError):
            session.step(1_000_000, timeout=0.5)
        assert time.monotonic() - began < 30
        # the session is whole, somewhere between steps
        state = session.state()
        assert session.step().steps == state.steps + 1


def test_nobody_there() -> None:
    with (
        tribo.connect("127.0.0.1:1", timeout=20, attempts=2) as client,
        pytest.raises(tribo.UnavailableError),
    ):
        client.server_info()


def test_keys_are_asked_for(binary: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    key = subprocess.run(
        [binary, "--data", data, "--create-key", "reader", "--scope", "read"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()[0]
    shut = tribo.Daemon(binary=binary, data=data, environment={"TRIBOD_AUTH_ANONYMOUS": "none"})
    with shut as daemon:
        with daemon.connect(timeout=60) as client, pytest.raises(tribo.UnauthenticatedError):
            next(client.sessions())
        with (
            daemon.connect(api_key="tbk_wrong", timeout=60) as client,
            pytest.raises(tribo.UnauthenticatedError),
        ):
            next(client.sessions())
        with daemon.connect(api_key=key, timeout=60) as client:
            assert list(client.sessions()) == []
            with pytest.raises(tribo.PermissionDeniedError):
                client.load(models.BALL)
        log = daemon.log.read_text()
    assert key not in log


class _Busy:
    """A daemon with a queue of one request, and three sessions that keep it full."""

    def __init__(self, binary: str) -> None:
        self.daemon = tribo.Daemon(
            binary=binary,
            arguments=["--threads", "1"],
            environment={"TRIBOD_LIMITS_QUEUE_LENGTH": "1"},
        )
        self.stop = threading.Event()
        self.ready = threading.Semaphore(0)
        self.refused = 0
        self.threads = [threading.Thread(target=self._work) for _ in range(4)]
        for thread in self.threads:
            thread.start()
        for _ in self.threads:
            assert self.ready.acquire(timeout=60)

    def _work(self) -> None:
        with tribo.connect(self.daemon.grpc, attempts=1, timeout=60) as client:
            session = client.create_session(client.load(models.LIFT), worlds=20)
            self.ready.release()
            while not self.stop.is_set():
                try:
                    session.step(100, state=False)
                except tribo.ResourceExhaustedError as error:
                    self.refused += 1
                    time.sleep(min(error.retry_after or 0, 0.01))

    def end(self) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join(60)
        self.daemon.stop()


def test_a_full_queue_refuses_and_retries_get_through(binary: str) -> None:
    busy = _Busy(binary)
    try:
        # without retries some of many calls are refused, and say when to come back
        with tribo.connect(busy.daemon.grpc, attempts=1, timeout=60) as client:
            session = client.create_session(client.load(models.BALL))
            refusals: list[tribo.ResourceExhaustedError] = []
            deadline = time.monotonic() + 60
            while not refusals and time.monotonic() < deadline:
                try:
                    session.step()
                except tribo.ResourceExhaustedError as error:
                    refusals.append(error)
            assert refusals
            assert refusals[0].retry_after is not None
            assert 0 < refusals[0].retry_after <= 30
            assert refusals[0].reason == "RESOURCE_EXHAUSTED"
        # with them, gRPC comes back by itself when the server says
        done = 0
        refused_before = busy.refused
        with tribo.connect(busy.daemon.grpc, attempts=5, timeout=60) as client:
            session = client.create_session(client.load(models.BALL))
            deadline = time.monotonic() + 60
            while done < 5 and time.monotonic() < deadline:
                try:
                    session.step()
                    done += 1
                except tribo.ResourceExhaustedError:
                    pass
        assert busy.refused >= refused_before
        assert done >= 5
    finally:
        busy.end()


def test_only_calls_that_are_safe_are_retried() -> None:
    config = json.loads(requests.service_config(4))
    codes = {
        name["method"]: method["retryPolicy"]["retryableStatusCodes"]
        for method in config["methodConfig"]
        for name in method["name"]
    }
    assert "UNAVAILABLE" in codes["GetState"]
    # a step that may have been taken must not be taken again
    assert codes["Step"] == ["RESOURCE_EXHAUSTED"]
    assert codes["EvaluateGrasps"] == ["RESOURCE_EXHAUSTED"]
    for method in ("CreateSession", "StepStream", "Fork", "SetState", "Snapshot"):
        assert method not in codes


def test_a_daemon_that_cannot_start_shows_its_log(binary: str, tmp_path: Path) -> None:
    with pytest.raises(tribo.UnavailableError, match="ended with 2") as raised:
        tribo.Daemon(binary=binary, data=tmp_path / "a", arguments=["--grpc", "nowhere:x"])
    assert "its log" in raised.value.message
    assert "nowhere" in raised.value.message
    # without a folder of its own, too: the log is read before the folder goes
    with pytest.raises(tribo.UnavailableError, match="nowhere"):
        tribo.Daemon(binary=binary, arguments=["--grpc", "nowhere:x"])


def test_a_daemon_that_says_nothing_is_ended(tmp_path: Path) -> None:
    mute = tmp_path / "mute"
    mute.write_text("#!/bin/sh\necho waiting >&2\nexec sleep 600\n")
    mute.chmod(0o755)
    began = time.monotonic()
    with pytest.raises(tribo.UnavailableError, match=r"was not ready after 1 s[\s\S]*waiting"):
        tribo.Daemon(binary=str(mute), data=tmp_path / "data", seconds=1.0)
    assert time.monotonic() - began < 20


def test_a_stopped_daemon_leaves_with_0(binary: str) -> None:
    daemon = tribo.Daemon(binary=binary)
    folder = daemon.data
    assert folder.exists()
    assert daemon.stop() == 0
    assert not folder.exists()
