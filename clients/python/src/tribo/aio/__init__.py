"""The asyncio client: the same calls as `tribo.client`, awaited.

async with tribo.aio.connect("127.0.0.1:7410") as client:
    scene = await client.load("hand.xml")
    async with await client.create_session(scene) as session:
        answer = await session.step(10)
"""

from tribo.aio.client import Client, connect
from tribo.aio.evaluate import evaluate
from tribo.aio.jobs import GraspJob
from tribo.aio.session import Session, StepStream

__all__ = ["Client", "GraspJob", "Session", "StepStream", "connect", "evaluate"]
