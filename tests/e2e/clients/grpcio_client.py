"""grpcio, unmodified, as a client of the daemon: python grpcio_client.py WAY GRPC HTTP < input.

WAY says where the messages come from:

    stubs                plainly generated stubs, on sys.path
    stubs-gzip           the same, compressed both ways
    reflection-v1        the daemon's reflection alone
    reflection-v1alpha   the same by grpcio-reflection's own client

Prints the object that web/scenario.js returns, and beside it the services that reflection listed;
../clients_agree.py judges both alike.
"""

from __future__ import annotations

import base64
import importlib
import importlib.util
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


def bearer(key: str) -> tuple[tuple[str, str], ...]:
    """Metadata with an API key."""
    return (("authorization", f"Bearer {key}"),)


class Stubs:
    """Messages and methods of generated modules."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.channel = channel

    def message(self, name: str) -> Any:
        """The class of a message by its full name."""
        modules = {
            "google.rpc": ("status", "error_details"),
            "tribo.v1": ("simulation", "grasp", "runs"),
        }
        package, _, short = name.rpartition(".")
        for module in modules[package]:
            found = getattr(importlib.import_module(f"{package}.{module}_pb2"), short, None)
            if found is not None:
                return found
        raise LookupError(name)

    def method(self, service: str, name: str) -> Any:
        """The callable of a method."""
        module = importlib.import_module(f"tribo.v1.{service.lower()}_pb2_grpc")
        return getattr(getattr(module, f"{service}Stub")(self.channel), name)


class Reflected:
    """The same from descriptors that the daemon sent."""

    def __init__(self, channel: grpc.Channel, database: Any) -> None:
        self.channel = channel
        self.services = sorted(database.get_services())
        self.pool = descriptor_pool.DescriptorPool(database)

    def message(self, name: str) -> Any:
        """The class of a message by its full name."""
        return message_factory.GetMessageClass(self.pool.FindMessageTypeByName(name))

    def method(self, service: str, name: str) -> Any:
        """The callable of a method."""
        method = self.pool.FindServiceByName(f"tribo.v1.{service}").FindMethodByName(name)
        kind = "unary_stream" if method.server_streaming else "unary_unary"
        return getattr(self.channel, kind)(
            f"/tribo.v1.{service}/{name}",
            request_serializer=message_factory.GetMessageClass(method.input_type).SerializeToString,
            response_deserializer=message_factory.GetMessageClass(method.output_type).FromString,
        )

    def files(self) -> dict[str, str]:
        """The files behind every service, as the daemon described them."""
        found: dict[str, str] = {}

        def add(file: Any) -> None:
            proto = descriptor_pb2.FileDescriptorProto()
            file.CopyToProto(proto)
            found[file.name] = encode(proto.SerializeToString(deterministic=True))
            for other in file.dependencies:
                add(other)

        for service in self.services:
            add(self.pool.FindServiceByName(service).file)
        return found


def load_reflection_v1() -> Any:
    """The module that protoc makes of grpc/reflection/v1: its folder's name is grpcio's own."""
    for folder in sys.path:
        path = Path(folder) / "grpc" / "reflection" / "v1" / "reflection_pb2.py"
        spec = importlib.util.spec_from_file_location("reflection_pb2", path)
        if path.exists() and spec is not None and spec.loader is not None:
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    raise LookupError("no stubs of grpc.reflection.v1 on sys.path")


class ReflectionV1:
    """A descriptor database over grpc.reflection.v1, whose client grpcio does not bring."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._messages = load_reflection_v1()
        self._call = channel.stream_stream(
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
            request_serializer=self._messages.ServerReflectionRequest.SerializeToString,
            response_deserializer=self._messages.ServerReflectionResponse.FromString,
        )

    def _ask(self, **question: str) -> Any:
        request = self._messages.ServerReflectionRequest(**question)
        return next(iter(self._call(iter((request,)))))

    def _file(self, **question: str) -> descriptor_pb2.FileDescriptorProto:
        answer = self._ask(**question)
        if answer.WhichOneof("message_response") != "file_descriptor_response":
            raise KeyError(answer.error_response.error_message)
        return descriptor_pb2.FileDescriptorProto.FromString(
            answer.file_descriptor_response.file_descriptor_proto[0]
        )

    def get_services(self) -> list[str]:
        """Names of all services."""
        return [s.name for s in self._ask(list_services="").list_services_response.service]

    def FindFileByName(self, name: str) -> descriptor_pb2.FileDescriptorProto:  # noqa: N802
        """As descriptor_pool asks."""
        return self._file(file_by_filename=name)

    def FindFileContainingSymbol(  # noqa: N802
        self, symbol: str
    ) -> descriptor_pb2.FileDescriptorProto:
        """As descriptor_pool asks."""
        return self._file(file_containing_symbol=symbol)


def encode(data: bytes) -> str:
    """Base64 for JSON."""
    return base64.b64encode(data).decode()


class Scenario:
    """The scenario of web/scenario.js, by grpcio."""

    def __init__(self, way: Any, compression: grpc.Compression | None) -> None:
        self.way = way
        self.compression = compression
        self.evaluate = way.method("Grasp", "EvaluateGrasps")

    def failure(self, error: grpc.RpcError) -> dict[str, Any]:
        """How a call failed, with its details decoded."""
        answer: dict[str, Any] = {
            "code": error.code().name,
            "message": error.details(),
            "fields": [],
            "reason": "",
            "retry": None,
        }
        packed = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin")
        if packed is None:
            return answer
        for detail in self.way.message("google.rpc.Status").FromString(packed).details:
            kind = detail.type_url.rpartition("/")[2]
            found = self.way.message(kind).FromString(detail.value)
            if kind == "google.rpc.BadRequest":
                answer["fields"] = [violation.field for violation in found.field_violations]
            elif kind == "google.rpc.ErrorInfo":
                answer["reason"] = found.reason
            elif kind == "google.rpc.RetryInfo":
                answer["retry"] = found.retry_delay.seconds + found.retry_delay.nanos / 1e9
        return answer

    def unary(self, service: str, name: str, request: Any, key: str | None = None) -> Any:
        """Calls a method that answers once."""
        return self.way.method(service, name)(
            request, metadata=bearer(key) if key else None, compression=self.compression
        )

    def job(self, request: Any, key: str | None = None, timeout: float | None = None) -> list[str]:
        """Plays a job to its end."""
        stream: Iterator[Any] = self.evaluate(
            request,
            metadata=bearer(key) if key else None,
            timeout=timeout,
            compression=self.compression,
        )
        return [encode(m.SerializeToString(deterministic=True)) for m in stream]

    def refused(self, call: Any, *arguments: Any) -> dict[str, Any]:
        """How a call that should fail did."""
        try:
            call(*arguments)
        except grpc.RpcError as error:
            return self.failure(error)
        return {"code": "OK"}

    def find_run(self, label: str, key: str) -> Any:
        """The newest run with this label."""
        request = self.way.message("tribo.v1.ListRunsRequest")(page_size=100)
        runs = self.unary("Runs", "ListRuns", request, key).runs
        return next((run for run in runs if run.label == label), None)

    def cancelled(self, request: Any, key: str) -> dict[str, Any]:
        """Breaks a job off after its first message."""
        stream = self.evaluate(request, metadata=bearer(key))
        next(stream)
        cancelled = time.time()
        stream.cancel()
        answer = self.refused(list, stream)
        began = time.monotonic()
        status, ended, running = "", 0, ("", "RUN_STATUS_RUNNING")
        while status in running and time.monotonic() - began < 30:
            run = self.find_run(request.label, key)
            if run is not None:
                values = run.DESCRIPTOR.fields_by_name["status"].enum_type.values_by_number
                status, ended = values[run.status].name, run.end_time_us
            time.sleep(0.02)
        status = status.replace("RUN_STATUS_", "")
        return {**answer, "status": status, "seconds": ended / 1e6 - cancelled}

    def play(self, given: dict[str, Any]) -> dict[str, Any]:
        """Everything."""
        request_class = self.way.message("tribo.v1.EvaluateGraspsRequest")
        requests = {
            name: request_class.FromString(base64.b64decode(data))
            for name, data in given["requests"].items()
        }
        for name, request in requests.items():
            request.label = f"{name} of {given['label']}"
        key = given["key"]
        info = self.unary(
            "Simulation", "GetServerInfo", self.way.message("tribo.v1.GetServerInfoRequest")()
        )
        nowhere = self.way.message("tribo.v1.GetStateRequest")(session_id="0" * 32)
        mesh = self.way.message("tribo.v1.CreateAssetRequest")(
            name="mug.obj", data=base64.b64decode(given["mesh"])
        )
        everything = self.way.message("tribo.v1.ListRunsRequest")()
        report: dict[str, Any] = {
            "client": given["label"],
            "info": encode(info.SerializeToString(deterministic=True)),
            "asset": self.unary("Simulation", "CreateAsset", mesh, key).sha256,
            "noKey": self.refused(self.job, requests["job"]),
            "wrongKey": self.refused(self.job, requests["job"], "tribo_0_no"),
            "missing": self.refused(self.unary, "Simulation", "GetState", nowhere),
            "wrong": self.refused(self.job, requests["wrong"], key),
            "job": self.job(requests["job"], key),
        }
        for _ in range(50):
            report["limited"] = self.refused(
                self.unary, "Runs", "ListRuns", everything, given["slowKey"]
            )
            if report["limited"]["code"] != "OK":
                break
        began = time.monotonic()
        report["deadline"] = self.refused(self.job, requests["long"], key, 1.0)
        report["deadline"]["seconds"] = time.monotonic() - began
        requests["long"].label += ", cancelled"
        report["cancelled"] = self.cancelled(requests["long"], key)
        return report


def main() -> None:
    """The command line."""
    name, address, _ = sys.argv[1:]
    given = json.load(sys.stdin)
    with grpc.insecure_channel(address) as channel:
        way: Any
        if name.startswith("stubs"):
            way = Stubs(channel)
        elif name == "reflection-v1":
            way = Reflected(channel, ReflectionV1(channel))
        else:
            from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
                ProtoReflectionDescriptorDatabase,
            )

            way = Reflected(channel, ProtoReflectionDescriptorDatabase(channel))
        compression = grpc.Compression.Gzip if name.endswith("-gzip") else None
        report = Scenario(way, compression).play({**given, "label": f"grpcio {name}"})
        if isinstance(way, Reflected):
            report["services"] = way.services
            report["files"] = way.files()
        json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()
