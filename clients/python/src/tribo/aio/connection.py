"""A connection for asyncio: calls, paged lists, uploads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from tribo import client as blocking
from tribo import requests, sources
from tribo.arguments import like
from tribo.errors import translated
from tribo.shared import Connected
from tribo.sources import Source
from tribo.types import Scene
from tribo.v1 import simulation_pb2


class AsyncConnected(Connected):
    """Calls that every part of `tribo.aio.Client` needs."""

    async def _call(self, method: Any, request: Any, timeout: float | None = None) -> Any:
        with translated():
            return await method(
                request,
                timeout=self._timeout if timeout is None else timeout,
                metadata=self._metadata,
            )

    async def _pages(self, method: Any, request: Any, items: str) -> AsyncIterator[Any]:
        """Iterates over the items of a paged list."""
        while True:
            page = await self._call(method, request)
            for item in getattr(page, items):
                yield item
            request.page_token = page.next_page_token
            if not request.page_token:
                return

    @like(blocking.Client.put_asset)
    async def put_asset(self, name: str, data: bytes) -> str:
        answer = await self._call(self._simulation.PutAsset, requests.put_chunks(name, data))
        return str(answer.sha256)

    async def _upload(
        self, source: Source, name: str, default: str
    ) -> tuple[str, str, list[simulation_pb2.SceneFile]]:
        data, name, others = await asyncio.to_thread(sources.read_source, source, name, default)
        # several paths may refer to one file
        digests = {
            file: await self.put_asset(*await asyncio.to_thread(sources.content, path, file))
            for file, path in {file: path for path, file in others.items()}.items()
        }
        uploaded = [(path, digests[file]) for path, file in others.items()]
        return await self.put_asset(name, data), name, requests.scene_files(uploaded)

    @like(blocking.Client.describe)
    async def describe(self, scene: Scene | str) -> simulation_pb2.GetSceneResponse:
        answer: simulation_pb2.GetSceneResponse = await self._call(
            self._simulation.GetScene,
            simulation_pb2.GetSceneRequest(scene_id=requests.scene_id(scene)),
        )
        return answer
