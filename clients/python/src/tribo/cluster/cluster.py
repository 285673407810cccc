"""Splits work over daemons, and repeats the unfinished items of a lost daemon.

Items lie in a line. A node's thread takes the next few of them, as many as the node should finish
in `_SECONDS_A_PIECE` by its measured rate, and hands over each result as it arrives. Where a call
ends because the node is lost or busy, only items without a result go back to the front of the
line. Results wait until all before them are handed out; nodes pause while more than `window` of
them wait.
"""

from __future__ import annotations

import dataclasses
import heapq
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Generic, TypeVar

from tribo import requests
from tribo.arguments import GraspArguments, takes
from tribo.client import Client, connect
from tribo.errors import (
    AbortedError,
    CancelledError,
    ResourceExhaustedError,
    TriboError,
    UnavailableError,
)
from tribo.grasp_types import GraspObject, GraspPose, GraspResult, Hand
from tribo.progress import Progress

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

Item = TypeVar("Item")
Result = TypeVar("Result")

#: s; work that a node takes at a time: long compared with a call, short compared with a job
_SECONDS_A_PIECE = 2.0
#: s; bounds of the pause after a failure of a node
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
#: errors that end a call and say nothing about its items
_LOST = (UnavailableError, AbortedError, ResourceExhaustedError, CancelledError)


@dataclass(frozen=True)
class NodeReport:
    """Work of a node for a job: items finished, calls that it lost, items/s while it worked."""

    address: str
    items: int
    lost: int
    rate: float


class _Line(Generic[Item, Result]):
    """Items that wait, and results that wait for earlier ones. All methods may be called from
    any thread."""

    def __init__(self, items: Sequence[Item], window: int) -> None:
        self.items = items
        self.changed = threading.Condition()
        self.error: BaseException | None = None
        self._window = window
        self._next = 0  # the first item that was never taken
        self._returned: list[int] = []  # a heap of items that a lost node had
        self._results: dict[int, Result] = {}
        self._given = 0  # results handed out
        self._done = 0
        self.cancelled = False

    def finished(self) -> bool:
        """Whether there is nothing left to take, now or later."""
        return self.cancelled or self.error is not None or self._done == len(self.items)

    def take(self, count: int) -> list[int]:
        """Up to `count` indices, consecutive ones; waits for some. Empty at the end."""
        with self.changed:
            while not self.finished():
                if self._returned:
                    taken = [heapq.heappop(self._returned)]
                    while (
                        len(taken) < count and self._returned and self._returned[0] == taken[-1] + 1
                    ):
                        taken.append(heapq.heappop(self._returned))
                    return taken
                room = self._given + self._window - self._next
                end = min(self._next + min(count, room), len(self.items))
                if end > self._next:
                    taken = list(range(self._next, end))
                    self._next = end
                    return taken
                self.changed.wait()
            return []

    def put(self, index: int, result: Result) -> None:
        """A result; the first one of an item counts."""
        with self.changed:
            if index >= self._given and index not in self._results:
                self._results[index] = result
                self._done += 1
            self.changed.notify_all()

    def give_back(self, indices: Iterable[int]) -> None:
        """Items that were taken and have no result."""
        with self.changed:
            for index in indices:
                if index >= self._given and index not in self._results:
                    heapq.heappush(self._returned, index)
            self.changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """Ends the job."""
        with self.changed:
            self.error = self.error or error
            self.changed.notify_all()

    def cancel(self) -> None:
        """Ends the job without an error."""
        with self.changed:
            self.cancelled = True
            self.changed.notify_all()

    def results(self, progress: Progress) -> Iterator[Result]:
        """All results in the order of their items."""
        while True:
            with self.changed:
                while not self.cancelled and self._given not in self._results:
                    if self.error is not None:
                        raise self.error
                    if self._given == len(self.items):
                        return
                    self.changed.wait()
                if self.cancelled:
                    return
                result = self._results.pop(self._given)
                self._given += 1
                done = self._done
                self.changed.notify_all()
            progress.show(done, len(self.items))
            yield result


class _Node(threading.Thread, Generic[Item, Result]):
    """One daemon's thread for one job."""

    def __init__(
        self,
        address: str,
        client: Client,
        line: _Line[Item, Result],
        work: Callable[[Client, Sequence[Item]], Iterator[Result]],
    ) -> None:
        super().__init__(name=f"tribo-{address}", daemon=True)
        self.address = address
        self._client = client
        self._line = line
        self._work = work
        self._pause = _SHORTEST_PAUSE
        self._busy = 0.0
        self.finished_items = 0
        self.lost = 0
        #: whether the last call failed: all nodes in this state end a job after its patience
        self.failing_since: float | None = None
        self.last_error: TriboError | None = None
        self.leaving = threading.Event()

    def rate(self) -> float:
        """Items/s while it worked; 0 before the first."""
        return self.finished_items / self._busy if self._busy > 0 else 0.0

    def run(self) -> None:
        while not self.leaving.is_set():
            indices = self._line.take(max(1, int(self.rate() * _SECONDS_A_PIECE)))
            if not indices:
                return
            start = time.monotonic()
            left = list(indices)
            try:
                self._play(left)
            except _LOST as error:
                self._line.give_back(left)
                self.lost += 1
                self.last_error = error
                self.failing_since = self.failing_since or time.monotonic()
                self.leaving.wait(max(self._pause, error.retry_after or 0.0))
                self._pause = min(2 * self._pause, _LONGEST_PAUSE)
            except BaseException as error:
                self._line.fail(error)
                return
            else:
                self._pause, self.failing_since = _SHORTEST_PAUSE, None
            if len(left) < len(indices):
                self._busy += time.monotonic() - start

    def _play(self, left: list[int]) -> None:
        """Calls the daemon for the items of `left`, and takes those out that have a result."""
        answers = self._work(self._client, [self._line.items[i] for i in left])
        for result in answers:
            self._line.put(left.pop(0), result)
            self.finished_items += 1
            self.failing_since = None
            if self._line.cancelled:
                return
        if left:
            raise UnavailableError(f"{self.address}: the call ended with {len(left)} items left")


class ClusterJob(Iterator[Result], Generic[Item, Result]):
    """Results in the order of the items. Leaving its context manager cancels the rest."""

    def __init__(
        self,
        cluster: Cluster,
        items: Sequence[Item],
        work: Callable[[Client, Sequence[Item]], Iterator[Result]],
        progress: bool | Callable[[int, int], None],
        window: int,
    ) -> None:
        self._cluster = cluster
        self._line: _Line[Item, Result] = _Line(items, window)
        self._progress = Progress(progress, "items")
        self._work = work
        self._nodes: dict[str, _Node[Item, Result]] = {}
        self._left: list[_Node[Item, Result]] = []
        self._results = self._line.results(self._progress)
        self._watcher = threading.Thread(target=self._watch, name="tribo-cluster", daemon=True)
        self._watcher.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cancel()

    def __next__(self) -> Result:
        try:
            return next(self._results)
        except BaseException:
            self._progress.close()
            self._line.cancel()
            raise

    def cancel(self) -> None:
        """Ends the job; calls in flight end at their next result."""
        self._progress.close()
        self._line.cancel()

    def nodes(self) -> list[NodeReport]:
        """Work of each node so far."""
        return [
            NodeReport(n.address, n.finished_items, n.lost, n.rate())
            for n in [*self._nodes.values(), *self._left]
        ]

    def _watch(self) -> None:
        """Starts a thread for each node that joins, and ends the job if all nodes are lost."""
        while not self._line.finished():
            clients = self._cluster._clients_now()
            for address in set(self._nodes) - set(clients):
                node = self._nodes.pop(address)
                node.leaving.set()
                self._left.append(node)
            for address, client in clients.items():
                if address not in self._nodes:
                    node = _Node(address, client, self._line, self._work)
                    self._nodes[address] = node
                    node.start()
            now = time.monotonic()
            waiting = [now - (n.failing_since or now) for n in self._nodes.values()]
            if waiting and min(waiting) > self._cluster.patience:
                last = next(iter(self._nodes.values())).last_error
                seconds = self._cluster.patience
                self._line.fail(
                    UnavailableError(
                        f"no node of {len(waiting)} answered for {seconds:g} s: {last}"
                    )
                )
            with self._line.changed:
                self._line.changed.wait(0.2)


class Cluster:
    """Daemons that share the work of one caller. Use it as a context manager, or close it."""

    def __init__(
        self,
        endpoints: Iterable[str],
        *,
        patience: float = 60.0,
        window: int = 100_000,
        **connection: Any,
    ) -> None:
        """Connects lazily; nodes may be away now and come later.

        Args:
            endpoints: "HOST:PORT" of each daemon; "dns:///NAME:PORT" stands for all addresses of a
                name, such as a headless service, and follows them while a job runs.
            patience: s; a job fails with `UnavailableError` if no node answers for this long.
            window: results that may wait for earlier ones before nodes pause.
            connection: options of `tribo.connect` for every node.
        """
        self.patience = patience
        self._window = window
        self._connection = {"attempts": 1, **connection}
        self._lock = threading.Lock()
        self._endpoints = list(endpoints)
        self._clients: dict[str, Client] = {}
        if not self._endpoints:
            raise ValueError("endpoints: a cluster needs at least one daemon")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes all connections."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()

    def add(self, endpoint: str) -> None:
        """A daemon that joins, jobs that run included."""
        with self._lock:
            if endpoint not in self._endpoints:
                self._endpoints.append(endpoint)

    def remove(self, endpoint: str) -> None:
        """A daemon that leaves; it finishes the items that it has."""
        with self._lock:
            self._endpoints.remove(endpoint)

    def _clients_now(self) -> dict[str, Client]:
        """The clients of all endpoints as they are now, by address."""
        with self._lock:
            addresses = [a for e in self._endpoints for a in _resolve(e)]
            for address in addresses:
                if address not in self._clients:
                    self._clients[address] = connect(address, **self._connection)
            return {a: self._clients[a] for a in addresses}

    def map(
        self,
        work: Callable[[Client, Item], Result],
        items: Iterable[Item],
        *,
        progress: bool | Callable[[int, int], None] = False,
    ) -> ClusterJob[Item, Result]:
        """Calls `work(client, item)` for each item on some node; results in the items' order.

        `work` runs in a thread of the node, and again from its beginning on another node if its
        node is lost, so it creates its own resources (such as a session).
        """

        def one_by_one(client: Client, some: Sequence[Item]) -> Iterator[Result]:
            for item in some:
                yield work(client, item)

        return ClusterJob(self, list(items), one_by_one, progress, self._window)

    @takes(requests.evaluate_grasps)
    def evaluate_grasps(
        self,
        target: GraspObject,
        hand: Hand,
        poses: Iterable[GraspPose],
        *,
        progress: bool | Callable[[int, int], None] = False,
        **arguments: Unpack[GraspArguments],
    ) -> ClusterJob[tuple[int, GraspPose], GraspResult]:
        """`Client.evaluate_grasps` over all nodes; the results are those of one daemon."""
        numbered = list(enumerate(poses))

        def play(client: Client, some: Sequence[tuple[int, GraspPose]]) -> Iterator[GraspResult]:
            with client.evaluate_grasps(
                target,
                hand,
                [pose for _, pose in some],
                **arguments,
            ) as job:
                for (index, _), result in zip(some, job):
                    yield dataclasses.replace(result, index=index)

        return ClusterJob(self, numbered, play, progress, self._window)


def _resolve(endpoint: str) -> list[str]:
    """Addresses of an endpoint; none while the name has none."""
    if not endpoint.startswith("dns:///"):
        return [endpoint]
    host, _, port = endpoint[len("dns:///") :].rpartition(":")
    try:
        found = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
    except OSError:
        return []
    hosts = {str(address[0]) for *_, address in found}
    return sorted(f"[{h}]:{port}" if ":" in h else f"{h}:{port}" for h in hosts)


def to_parquet(results: Iterable[GraspResult], path: str | Path) -> int:
    """Writes one row a grasp, as results arrive; the number of rows. Needs pyarrow.

    Columns: index, name, verdict, success and its interval, slip (m), drop_time (s, null if it was
    not dropped), qualities, margin, residual and iterations of the certificate.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = 0
    writer: Any = None
    batch: list[dict[str, Any]] = []

    def flush() -> None:
        nonlocal writer
        if not batch:
            return
        table = pa.Table.from_pylist(batch)
        if writer is None:
            writer = pq.ParquetWriter(path, table.schema)
        writer.write_table(table.cast(writer.schema))
        batch.clear()

    for r in results:
        batch.append(
            {
                "index": r.index,
                "name": r.name,
                "verdict": r.verdict.name,
                "success": r.success,
                "success_lower": r.success_interval[0],
                "success_upper": r.success_interval[1],
                "slip": r.slip,
                "drop_time": float("nan") if r.drop_time is None else r.drop_time,
                "epsilon_quality": r.epsilon_quality,
                "volume_quality": r.volume_quality,
                "weakest_margin": r.weakest_margin,
                "residual": r.certificate.residual,
                "iterations": r.certificate.iterations,
            }
        )
        rows += 1
        if len(batch) == 1024:
            flush()
    flush()
    if writer is not None:
        writer.close()
    return rows
