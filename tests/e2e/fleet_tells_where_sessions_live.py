#!/usr/bin/env python3
"""Two daemons of a fleet: a client of the wrong one gets the address of the session.

The Python client, blocking and asyncio, follows with calls, streams and watches.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from common_daemon import BALL, Report
from common_process import free_ports

import tribo

TRIBOD = os.environ["TRIBOD"]


def replica(number: str, addresses: str, port: int) -> tribo.Daemon:
    """A daemon of the fleet."""
    fleet = {"TRIBOD_FLEET_REPLICA": number, "TRIBOD_FLEET_ADDRESSES": addresses}
    arguments = ["--grpc", f"127.0.0.1:{port}"]
    return tribo.Daemon(arguments=arguments, environment=fleet)


def blocking(report: Report, here: str, there: str, session: str) -> None:
    """A client of the daemon `here` uses a session of the daemon `there`."""
    with tribo.connect(here) as client:
        followed = client.session(session)
        time = followed.step(10).time
        report.check(abs(time - 0.02) < 1e-12, f"ten steps end at {time}")
        report.equal(next(followed.watch()).state.time, time, "watched")
        with client.session(session).stream() as stream:
            tags = [stream.send(1) for _ in range(3)]
            answers = [stream.receive() for _ in tags]
        report.equal([a.tag for a in answers], tags, "tags of a stream that moved")
        report.check(abs(answers[-1].time - 0.026) < 1e-12, f"time {answers[-1].time}")
        fork = client.session(session).fork()[0]
        report.equal(fork.id[-4:], session[-4:], "replica of a fork")
        fork.delete()
    error = report.raises(
        tribo.NotFoundError, "without following", lambda: plain_heartbeat(here, session)
    )
    if error is not None:
        report.equal(error.replica, there, "the replica's address")
        report.check(there in error.message, error.message)


def plain_heartbeat(address: str, session: str) -> None:
    """A call that follows nothing."""
    with tribo.connect(address) as client:
        request = tribo.v1.simulation_pb2.HeartbeatRequest(session_id=session)
        client._call(client._simulation.Heartbeat, request)


async def awaited(report: Report, here: str, session: str) -> None:
    """The same by asyncio."""
    async with tribo.aio.connect(here) as client:
        before = (await client.session(session).state()).time
        async with client.session(session).stream() as stream:
            tags = [await stream.send(1) for _ in range(3)]
            answers = [await stream.receive() for _ in tags]
        report.equal([a.tag for a in answers], tags, "tags of a stream that moved")
        report.check(abs(answers[-1].time - before - 0.006) < 1e-12, "three steps")
        async for seen in client.session(session).watch():
            report.equal(seen.state.time, answers[-1].time, "watched")
            break
        await client.session(session).delete()


def over_http(report: Report, here: str, there: str, session: str) -> None:
    """Connect's error has the address, too."""
    request = urllib.request.Request(
        f"http://{here}/tribo.v1.Simulation/Heartbeat",
        json.dumps({"session_id": session}).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        urllib.request.urlopen(request, timeout=30)
        report.check(False, "a heartbeat of another replica's session")
    except urllib.error.HTTPError as error:
        report.equal(error.code, 404, "status")
        report.check(there in error.read().decode(), "address in the message")


def refused(report: Report, fleet: dict[str, str], words: list[str]) -> None:
    """Options that contradict each other end the start."""
    answer = subprocess.run(
        [TRIBOD, "--check-config"],
        env={**os.environ, **fleet},
        capture_output=True,
        text=True,
        timeout=60,
    )
    report.check(answer.returncode != 0, f"{fleet} is taken")
    for word in words:
        report.check(word in answer.stderr, f"'{word}' is not in: {answer.stderr}")


def main() -> None:
    """Two daemons, a session on the second, clients of the first."""
    report = Report()
    ports = free_ports(2)
    first, second = (f"127.0.0.1:{port}" for port in ports)
    addresses = f"{first}, {second}"
    with (
        replica("0", addresses, ports[0]) as a,
        replica("grasps-tribod-1", addresses, ports[1]),
        tribo.connect(second) as owner,
    ):
        session = owner.create_session(owner.load(BALL, name="ball.xml")).id
        report.equal(session[-4:], "0001", "the replica's number in the id")
        with report.case("blocking"):
            blocking(report, first, second, session)
        with report.case("http"):
            over_http(report, a.http, second, session)
        with report.case("asyncio"):
            asyncio.run(awaited(report, first, session))
        with report.case("ended"), tribo.connect(first) as client:
            error = report.raises(
                tribo.NotFoundError, "an ended session", client.session(session).heartbeat
            )
            report.check(error is not None and not error.replica, "the owner knows that it ended")
            unknown = client.session("0123456789abcdef" * 2)
            error = report.raises(tribo.NotFoundError, "an id of no fleet", unknown.heartbeat)
            report.check(error is not None and not error.replica, "no replica for a random id")
    name, list_ = "TRIBOD_FLEET_REPLICA", "TRIBOD_FLEET_ADDRESSES"
    refused(report, {name: "1"}, ["[fleet] replica is given", "addresses"])
    refused(report, {name: "tribod", list_: first}, ["replica = 'tribod'", "number"])
    refused(report, {name: "2", list_: addresses}, ["no address for replica 2"])
    refused(report, {name: "2", list_: "tribod-{}"}, ["'tribod-2' of replica 2", "HOST:PORT"])
    report.finish()


if __name__ == "__main__":
    main()
