#!/usr/bin/env python3
"""Cost of readers of Watch for the client that steps the session.

    bench_watch.py TRIBOD [--boxes 36] [--rounds 11] [--steps 400]

One client steps a session of boxes one step a call. Beside it nobody reads; or one reader takes
poses, contacts, forces and certificates thirty times a second; or four readers have asked for ten
thousand a second and do not read at all; or a reader comes and leaves once a round. The
ways take turns in every round, so that a busy machine slows all of them; printed are medians of
the rounds' ratios to the round without a reader: of the median time of a call, and of the
daemon's processor time a step.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
import threading
import time

import grpc

from tribo.v1 import simulation_pb2 as pb

WAYS = ("nobody", "30 Hz", "stalled", "leaving")


class Bench:
    """A daemon with one session, and the client that steps it."""

    def __init__(self, tribod: str, boxes: int, data: str) -> None:
        self.daemon = subprocess.Popen(
            [tribod, "--data", data, "--grpc", "127.0.0.1:0", "--http", ""],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.daemon.stdout is not None
        ready = dict(word.split("=", 1) for word in self.daemon.stdout.readline().split()[1:])
        self.channel = grpc.insecure_channel(ready["grpc"])
        self.watching = grpc.insecure_channel(
            ready["grpc"], options=[("grpc.use_local_subchannel_pool", 1)]
        )
        scene = self.call("CreateScene", pb.CreateSceneResponse)(
            pb.CreateSceneRequest(text=pile(boxes))
        )
        session = self.call("CreateSession", pb.CreateSessionResponse)(
            pb.CreateSessionRequest(scene_id=scene.scene_id)
        )
        self.session_id = session.session_id
        self.request = pb.StepRequest(session_id=self.session_id, steps=1)
        self.step = self.call("Step", pb.StepResponse)

    def call(self, name: str, answer: type) -> grpc.UnaryUnaryMultiCallable:
        return self.channel.unary_unary(
            f"/tribo.v1.Simulation/{name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer.FromString,
        )

    def watch(self, interval: float) -> grpc.Call:
        watch = self.watching.unary_stream(
            "/tribo.v1.Simulation/Watch",
            request_serializer=pb.WatchRequest.SerializeToString,
            response_deserializer=pb.WatchResponse.FromString,
        )
        want = pb.StepReturn(poses=True, contacts=True, forces=True)
        return watch(
            pb.WatchRequest(
                session_id=self.session_id,
                want=want,
                certificates=True,
                minimum_interval=interval,
            )
        )

    def processor_ns(self) -> int:
        """Of all threads of the daemon."""
        folder, total = f"/proc/{self.daemon.pid}/task", 0
        for thread in os.listdir(folder):
            try:
                with open(f"{folder}/{thread}/schedstat") as file:
                    total += int(file.read().split()[0])
            except OSError:
                pass
        return total

    def round(self, way: str, steps: int) -> tuple[float, float]:
        """Median time of a call and the daemon's processor time a step, s."""
        calls = []
        if way == "30 Hz":
            calls.append(self.watch(1 / 30))
            threading.Thread(target=read, args=(calls[0],), daemon=True).start()
        elif way == "stalled":
            calls = [self.watch(1e-4) for _ in range(4)]
            for _ in range(steps):  # until their windows are full
                self.step(self.request)
        times, begin = [], self.processor_ns()
        for i in range(steps):
            if way == "leaving" and i == 100:
                reader = self.watch(0)
                next(reader)
                reader.cancel()
            start = time.perf_counter()
            self.step(self.request)
            times.append(time.perf_counter() - start)
        spent = self.processor_ns() - begin
        for call in calls:
            call.cancel()
        return statistics.median(times), 1e-9 * spent / steps


def read(call: grpc.Call) -> None:
    try:
        for _ in call:
            pass
    except grpc.RpcError:
        pass


def pile(boxes: int) -> str:
    bodies = "".join(
        f"<body pos='{0.25 * (i % 6)} {0.25 * (i // 6 % 6)} {0.1 + 0.2 * (i // 36)}'>"
        "<freejoint/><geom type='box' size='.1 .1 .1'/></body>"
        for i in range(boxes)
    )
    return f"<mujoco><worldbody><geom type='plane' size='9 9 .1'/>{bodies}</worldbody></mujoco>"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tribod")
    parser.add_argument("--boxes", type=int, default=36)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--steps", type=int, default=400)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as data:
        bench = Bench(options.tribod, options.boxes, data)
        for _ in range(options.steps):
            bench.step(bench.request)
        found: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
        for i in range(options.rounds):
            for way in WAYS if i % 2 == 0 else WAYS[::-1]:
                found[way].append(bench.round(way, options.steps))
        for way in WAYS:
            call = statistics.median(a[0] / b[0] for a, b in zip(found[way], found["nobody"]))
            spent = statistics.median(a[1] / b[1] for a, b in zip(found[way], found["nobody"]))
            median = 1e6 * statistics.median(a[0] for a in found[way])
            print(
                f"{way:8s} call {median:7.1f} us ({100 * call - 100:+.1f} %), "
                f"daemon's processor time {100 * spent - 100:+.1f} %"
            )
        bench.daemon.terminate()
        bench.daemon.wait()


if __name__ == "__main__":
    main()
