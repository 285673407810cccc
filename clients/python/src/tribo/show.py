"""A session in the browser or a notebook, by viser (`pip install 'tribo[show]'`).

viewer = tribo.show(session)          # http://127.0.0.1:8080
for _ in range(100):
    viewer.update(session.step(10, bodies=True, contacts=True))

tribo.replay(client, client.grasp_trajectory(job, 3)).play()   # a trial of a stored job
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from tribo.arrays import AnyArray, Floats, decode
from tribo.client import Client
from tribo.grasp_types import GraspTrajectory, StoredTrajectory
from tribo.session import Session
from tribo.types import StepAnswer
from tribo.v1 import simulation_pb2

if TYPE_CHECKING:
    from typing_extensions import Self

_GREY = (0.6, 0.65, 0.7, 1.0)
_PLANE_M = 2.0  # half side of the square drawn for a plane
_FORCE_M = 0.2  # length of the line of the largest force


def sphere(rings: int = 12, sectors: int = 24) -> tuple[Floats, AnyArray]:
    """Vertices and triangles of the unit sphere, outwards."""
    v, u = np.meshgrid(
        np.linspace(0, np.pi, rings + 1), 2 * np.pi * np.arange(sectors) / sectors, indexing="ij"
    )
    points = np.stack([np.sin(v) * np.cos(u), np.sin(v) * np.sin(u), np.cos(v)], axis=-1)
    i, j = np.meshgrid(np.arange(rings), np.arange(sectors), indexing="ij")
    a, b = i * sectors + j, i * sectors + (j + 1) % sectors
    c, d = a + sectors, b + sectors
    # at the poles one of the two triangles of a field has no area
    upper, lower = np.stack([a, c, d], -1)[:-1], np.stack([a, d, b], -1)[1:]
    faces = np.concatenate([upper, lower])
    return points.reshape(-1, 3), faces.reshape(-1, 3)


def box() -> tuple[Floats, AnyArray]:
    """Vertices and triangles of the box from -1 to 1, outwards."""
    corners = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
    quads = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
    faces = [t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))]
    return corners, np.array(faces)


def cylinder(sectors: int = 24) -> tuple[Floats, AnyArray]:
    """Vertices and triangles of the cylinder of radius 1 from z = -1 to 1, outwards."""
    u = 2 * np.pi * np.arange(sectors) / sectors
    ring = np.stack([np.cos(u), np.sin(u)], axis=1)
    low, high = (np.column_stack([ring, np.full(sectors, z)]) for z in (-1.0, 1.0))
    points = np.concatenate([low, high, [[0, 0, -1], [0, 0, 1]]])
    k, right = np.arange(sectors), (np.arange(sectors) + 1) % sectors
    side = [
        np.stack([k, right, sectors + right], 1),
        np.stack([k, sectors + right, sectors + k], 1),
    ]
    ends = [
        np.stack([np.full(sectors, 2 * sectors), right, k], 1),
        np.stack([np.full(sectors, 2 * sectors + 1), sectors + k, sectors + right], 1),
    ]
    return points, np.concatenate(side + ends)


def triangles(shape: Any, mesh: Any = None) -> tuple[Floats, AnyArray]:
    """Vertices (m, shape's frame) and triangles of a `ShapeInfo`; `mesh` is its GetAsset answer."""
    kind = simulation_pb2
    size = np.asarray(shape.size, float)
    if shape.type == kind.SHAPE_TYPE_SPHERE:
        points, faces = sphere()
        return points * size[0], faces
    if shape.type == kind.SHAPE_TYPE_ELLIPSOID:
        points, faces = sphere()
        return points * size[:3], faces
    if shape.type == kind.SHAPE_TYPE_BOX:
        points, faces = box()
        return points * size[:3], faces
    if shape.type == kind.SHAPE_TYPE_CYLINDER:
        points, faces = cylinder()
        return points * (size[0], size[0], size[1]), faces
    if shape.type == kind.SHAPE_TYPE_CAPSULE:
        points, faces = sphere(rings=15)  # odd: no ring lies where the halves part
        ends = points * size[0]
        ends[:, 2] += np.where(points[:, 2] >= 0, size[1], -size[1])
        return ends, faces
    if shape.type == kind.SHAPE_TYPE_PLANE:
        square = np.array([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)], float) * _PLANE_M
        return square, np.array([(0, 1, 2), (0, 2, 3)])
    if shape.type == kind.SHAPE_TYPE_HEIGHT_FIELD and mesh is not None:
        field = mesh.height_field
        z = decode(field.heights)
        rows, columns = z.shape
        x, y = np.meshgrid(
            np.linspace(-field.half_x, field.half_x, columns),
            np.linspace(-field.half_y, field.half_y, rows),
        )
        i, j = np.meshgrid(np.arange(rows - 1), np.arange(columns - 1), indexing="ij")
        a = (i * columns + j).ravel()
        faces = np.concatenate(
            [
                np.stack([a, a + 1, a + columns + 1], 1),
                np.stack([a, a + columns + 1, a + columns], 1),
            ]
        )
        return np.stack([x, y, z], axis=-1).reshape(-1, 3), faces
    if mesh is not None:
        hull = shape.type == kind.SHAPE_TYPE_CONVEX and len(mesh.mesh.hull_triangles.data) > 0
        vertices = mesh.mesh.hull_vertices if hull else mesh.mesh.vertices
        faces = mesh.mesh.hull_triangles if hull else mesh.mesh.triangles
        return decode(vertices).astype(float), decode(faces)
    raise ValueError(f"shape {shape.name!r} has no geometry that can be drawn")


class _Page:
    """A page with the bodies of a scene; leaving its context manager stops it.

    Attributes:
        server: the `viser.ViserServer`, for whatever else is to be drawn.
        url: of the page.
    """

    def __init__(self, client: Client, scene_id: str, host: str, port: int) -> None:
        try:
            import viser
        except ImportError as error:
            raise ImportError("a page needs viser: pip install 'tribo[show]'") from error
        scene = client.describe(scene_id)
        self.server: Any = viser.ViserServer(host=host, port=port, verbose=False)
        self.url = f"http://{host}:{self.server.get_port()}"
        self._frames = [
            self.server.scene.add_frame(f"/{i}_{body.name or 'body'}", show_axes=False)
            for i, body in enumerate(scene.bodies)
        ]
        assets: dict[str, Any] = {}
        for i, shape in enumerate(scene.shape_infos):
            if shape.mesh_sha256 and shape.mesh_sha256 not in assets:
                assets[shape.mesh_sha256] = client.geometry(scene.scene_id, shape.mesh_sha256)
            vertices, faces = triangles(shape, assets.get(shape.mesh_sha256))
            colour = list(shape.colour) or _GREY
            body = self._frames[shape.body]
            self.server.scene.add_mesh_simple(
                f"{body.name}/{i}_{shape.name or 'shape'}",
                vertices.astype(np.float32),
                np.asarray(faces, np.uint32),
                color=np.round(255 * np.array(colour[:3])).astype(np.uint8),
                opacity=colour[3] if colour[3] < 1 else None,
                flat_shading=True,
                side="double",
                wxyz=np.array(list(shape.pose.orientation) or (1.0, 0.0, 0.0, 0.0)),
                position=np.array(list(shape.pose.position) or (0.0, 0.0, 0.0)),
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _move(self, poses: AnyArray) -> None:
        """Puts the bodies at poses (bodies, 7)."""
        for frame, row in zip(self._frames, poses):
            frame.position, frame.wxyz = row[:3], row[3:7]

    def stop(self) -> None:
        """Ends the page."""
        self.server.stop()


class Viewer(_Page):
    """A page with the bodies of one world of a session.

    Attributes:
        server: the `viser.ViserServer`, for whatever else is to be drawn.
        url: of the page.
    """

    def __init__(
        self, session: Session, *, world: int = 0, host: str = "127.0.0.1", port: int = 8080
    ) -> None:
        """Draws the session's scene in its current state; `world` is the one that is shown."""
        super().__init__(session._client, session.scene_id, host, port)
        self.world = world
        self._contacts: Any = None
        self.update(session.state(bodies=True, contacts=True))

    def update(self, answer: StepAnswer) -> None:
        """Moves the bodies, and draws a line along each contact's normal force.

        The answer needs `bodies=True`; contacts are drawn if it has them.
        """
        if self._frames and answer.bodies is None:
            raise ValueError("the answer has no bodies: ask for them by bodies=True")
        assert answer.bodies is not None
        with self.server.atomic():
            self._move(answer.bodies[self.world])
            self._draw_contacts(answer)

    def _draw_contacts(self, answer: StepAnswer) -> None:
        if self._contacts is not None:
            self._contacts.remove()
            self._contacts = None
        if not answer.contacts or not len(answer.contacts[self.world]):
            return
        contacts = answer.contacts[self.world]
        normal = contacts.impulses[:, 0]
        length = _FORCE_M * normal / max(float(normal.max()), 1e-300)
        ends = contacts.positions + contacts.normals * length[:, None]
        self._contacts = self.server.scene.add_line_segments(
            "/contacts",
            np.stack([contacts.positions, ends], axis=1).astype(np.float32),
            (200, 40, 40),
            thickness=0.003,
        )

    def __repr__(self) -> str:
        return f"Viewer({self.url}, world={self.world})"


class Replay(_Page):
    """A page with the motion of one trial of a grasp job, and a slider over its frames."""

    def __init__(
        self,
        client: Client,
        trajectory: StoredTrajectory | GraspTrajectory,
        *,
        host: str = "127.0.0.1",
        port: int = 8080,
    ) -> None:
        """Draws the trial's scene at its first frame."""
        super().__init__(client, trajectory.scene_id, host, port)
        self.trajectory = trajectory
        last = len(trajectory) - 1
        self.slider: Any = self.server.gui.add_slider(
            "frame", min=0, max=max(last, 1), step=1, initial_value=0
        )
        self.slider.on_update(lambda _: self.show(int(self.slider.value)))
        self.show(0)

    def show(self, frame: int) -> None:
        """Moves the bodies to a frame."""
        with self.server.atomic():
            self._move(self.trajectory.poses[min(frame, len(self.trajectory) - 1)])

    def play(self, speed: float = 1.0) -> None:
        """Plays all frames in their time, `speed` times as quick."""
        times = np.asarray(self.trajectory.times) / speed
        began = time.monotonic()
        for frame, due in enumerate(times - times[0]):
            time.sleep(max(0.0, float(due) - (time.monotonic() - began)))
            self.slider.value = frame
            self.show(frame)

    def __repr__(self) -> str:
        return f"Replay({self.url}, {len(self.trajectory)} frames)"


def show(session: Session, *, world: int = 0, host: str = "127.0.0.1", port: int = 8080) -> Viewer:
    """Shows a world of a session in the browser; `Viewer.update` shows another answer."""
    return Viewer(session, world=world, host=host, port=port)


def replay(
    client: Client,
    trajectory: StoredTrajectory | GraspTrajectory,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
) -> Replay:
    """Shows a trial of a grasp job in the browser; `Replay.play` plays it."""
    return Replay(client, trajectory, host=host, port=port)
