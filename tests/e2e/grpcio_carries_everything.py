#!/usr/bin/env python3
"""grpcio against the daemon's own gRPC: messages of nearly 64 MiB and one that is too large, gzip,
streams both ways, cancellation, deadlines, many calls at once; blocking and by asyncio. The cases
bear the names of gRPC's interop tests where they are the same."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import grpc
from common_daemon import BALL, Report, scratch

import tribo
from tribo.v1 import simulation_pb2 as pb
from tribo.v1 import simulation_pb2_grpc as stubs

OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
LARGE = 63 << 20
GZIP = grpc.Compression.Gzip


def code_of(call: object) -> grpc.StatusCode:
    """How a call ends."""
    try:
        call()  # type: ignore[operator]
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def steps(session_id: str, count: int) -> Iterator[pb.StepStreamRequest]:
    """Requests of a stream of steps."""
    for tag in range(count):
        yield pb.StepStreamRequest(step=pb.StepRequest(session_id=session_id, steps=1), tag=tag)


def blocking(report: Report, address: str, session_id: str) -> None:
    """The blocking client."""
    with grpc.insecure_channel(address, OPTIONS) as channel:
        stub = stubs.SimulationStub(channel)
        put = [pb.PutAssetRequest(name="large", data=bytes(LARGE))]
        report.equal(len(stub.PutAsset(iter(put), timeout=60).sha256), 64, "large_unary")
        two = [pb.PutAssetRequest(name="zip", data=bytes(1 << 20)), pb.PutAssetRequest(data=b"x")]
        answer = stub.PutAsset(iter(two), compression=GZIP, timeout=60)
        report.equal(len(answer.sha256), 64, "client_compressed_streaming")
        info = stub.GetServerInfo(pb.GetServerInfoRequest(), compression=GZIP, timeout=20)
        report.check(info.version != "", "server_compressed_unary")
        beyond = [pb.PutAssetRequest(name="beyond", data=bytes(65 << 20))]
        report.equal(
            code_of(lambda: stub.PutAsset(iter(beyond), timeout=60)),
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            "a message beyond the limit",
        )
        tags = [r.tag for r in stub.StepStream(steps(session_id, 500), timeout=60)]
        report.equal(tags, list(range(500)), "ping_pong")
        report.equal(list(stub.StepStream(iter([]), timeout=20)), [], "empty_stream")
        stream = stub.StepStream(steps(session_id, 10**6))
        next(stream)
        stream.cancel()
        report.equal(code_of(lambda: list(stream)), grpc.StatusCode.CANCELLED, "cancel_after_first")
        watch = stub.Watch(pb.WatchRequest(session_id=session_id), timeout=0.3)
        report.equal(
            code_of(lambda: list(watch)), grpc.StatusCode.DEADLINE_EXCEEDED, "timeout_on_stream"
        )
        nothing = channel.unary_unary("/tribo.v1.Simulation/Nothing")
        report.equal(
            code_of(lambda: nothing(b"", timeout=20)),
            grpc.StatusCode.UNIMPLEMENTED,
            "unimplemented_method",
        )


async def by_asyncio(report: Report, address: str, session_id: str) -> None:
    """The client of asyncio, with many calls at once."""
    async with grpc.aio.insecure_channel(address, OPTIONS) as channel:
        stub = stubs.SimulationStub(channel)
        calls = [stub.GetServerInfo(pb.GetServerInfoRequest(), timeout=60) for _ in range(3000)]
        answers = await asyncio.gather(*calls)
        report.equal(len(answers), 3000, "more calls at once than a connection takes")
        tags = [r.tag async for r in stub.StepStream(steps(session_id, 500), timeout=60)]
        report.equal(tags, list(range(500)), "ping_pong by asyncio")
        uploads = [
            stub.PutAsset(iter([pb.PutAssetRequest(name=f"a{i}", data=bytes([i]) * (16 << 20))]))
            for i in range(6)
        ]
        digests = {answer.sha256 for answer in await asyncio.gather(*uploads)}
        report.equal(len(digests), 6, "large messages side by side")


def main() -> None:
    report = Report()
    with scratch() as folder, tribo.Daemon(data=str(folder / "data")) as daemon:
        with daemon.connect(timeout=60) as client:
            session = client.create_session(client.load(BALL, name="ball.xml"))
            blocking(report, daemon.grpc, session.id)
            asyncio.run(by_asyncio(report, daemon.grpc, session.id))
            session.delete()
    report.finish()


if __name__ == "__main__":
    main()
