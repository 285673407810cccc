"""Daemons as actors of Ray: `pip install 'tribo[ray]'`.

    import ray
    from tribo.cluster.on_ray import RayCluster

    ray.init(address="auto")
    with RayCluster(nodes=8, resources={"num_gpus": 1}) as cluster:
        results = list(cluster.evaluate_grasps(mug, hand, poses))

Each actor owns one tribod on its machine. Ray places the actors and starts lost ones again; work
and results go between the caller and the daemons by gRPC, as in `Cluster`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import ray

from tribo.cluster.cluster import Cluster

#: s between looks at the actors
_LOOK_S = 1.0


class _Owner:
    """The actor: a daemon, and its address as other machines see it."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        from tribo.daemon import Daemon

        host = ray.util.get_node_ip_address()
        self._daemon = Daemon(
            arguments=["--grpc", f"{host}:0", *arguments],
            # callers come from other machines of the cluster
            environment={"TRIBOD_AUTH_ANONYMOUS_REMOTE": "yes", **environment},
        )

    def address(self) -> str:
        """HOST:PORT of its gRPC."""
        return self._daemon.grpc


class RayCluster(Cluster):
    """A cluster whose daemons are started, and started again, by Ray."""

    def __init__(
        self,
        nodes: int,
        *,
        resources: Mapping[str, Any] | None = None,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        """Starts the actors and waits for the first of them.

        Args:
            nodes: daemons.
            resources: of each actor, as Ray's options: num_cpus, num_gpus, ...
            arguments: further flags of tribod.
            environment: further variables of tribod.
            options: those of `Cluster`.
        """
        actor: Any = ray.remote(_Owner)
        self._actors = [
            actor.options(max_restarts=-1, **(resources or {})).remote(
                list(arguments), dict(environment or {})
            )
            for _ in range(nodes)
        ]
        self._known: dict[int, str] = {}
        first, _ = ray.wait([a.address.remote() for a in self._actors], num_returns=1)
        super().__init__(ray.get(first), **options)
        self._ended = threading.Event()
        self._look = threading.Thread(target=self._follow, name="tribo-ray", daemon=True)
        self._look.start()

    def _follow(self) -> None:
        """Addresses change when Ray starts an actor again."""
        while not self._ended.is_set():
            for i, actor in enumerate(self._actors):
                try:
                    address = ray.get(actor.address.remote(), timeout=10)
                except ray.exceptions.RayError:
                    continue
                if address == self._known.get(i):
                    continue
                if i in self._known:
                    self.remove(self._known[i])
                self._known[i] = address
                self.add(address)
            self._ended.wait(_LOOK_S)

    def close(self) -> None:
        """Ends the daemons and their actors."""
        self._ended.set()
        self._look.join()
        super().close()
        for actor in self._actors:
            ray.kill(actor)
