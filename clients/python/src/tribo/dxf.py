"""Outlines of DXF drawings as extruded solids.

    from tribo import dxf

    Path("plate.csg").write_text(dxf.extrude("plate.dxf", height=0.01, layers=["OUTLINE"]))

The result is a CSG file (`solver/model/README.md`), which a scene names as a mesh:
`<mesh name="plate" file="plate.csg"/>` in MJCF. Needs ezdxf (`pip install 'tribo[dxf]'`).

Closed polylines, circles, ellipses and splines are outlines; lines and arcs that meet end to end
are joined to outlines. An outline within another one is a hole, within a hole it is solid again.
Texts, points and dimensions are left out, other entities are refused by name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

Point = tuple[float, float]
Loop = list[Point]

_OUTLINES = {"LWPOLYLINE", "POLYLINE", "CIRCLE", "ELLIPSE", "SPLINE", "LINE", "ARC"}
_NOTES = {"TEXT", "MTEXT", "DIMENSION", "LEADER", "MULTILEADER", "POINT", "VIEWPORT", "ATTDEF"}


class DxfError(ValueError):
    """A drawing that bounds no solid. The message names the place."""


def extrude(
    path: str | Path,
    height: float,
    *,
    layers: Iterable[str] | None = None,
    metres: float | None = None,
    tolerance: float = 1e-4,
) -> str:
    """The text of a CSG file: the drawing's outlines, extruded from z = 0 to z = height (m).

    layers: those with outlines; None: all. metres: length of a unit of the drawing; None: as the
    drawing's header says, 1 where it says nothing. tolerance: m, distance of chords from curves,
    and of ends that are joined. Raises DxfError.
    """
    if not height > 0 or not math.isfinite(height):
        raise ValueError(f"height is {height}, expected a length above 0")
    if not tolerance > 0:
        raise ValueError(f"tolerance is {tolerance}, expected a length above 0")
    loops = outlines(path, layers=layers, metres=metres, tolerance=tolerance)
    return _text(loops, height)


def outlines(
    path: str | Path,
    *,
    layers: Iterable[str] | None = None,
    metres: float | None = None,
    tolerance: float = 1e-4,
) -> list[Loop]:
    """The closed outlines of a drawing as corners (m), counterclockwise, each corner once."""
    document = _read(Path(path))
    unit = _metres_of(document) if metres is None else metres
    wanted = None if layers is None else {layer.lower() for layer in layers}
    closed: list[Loop] = []
    open_ones: list[Loop] = []
    for entity in document.modelspace():
        if wanted is not None and entity.dxf.layer.lower() not in wanted:
            continue
        line = _flatten(entity, unit, tolerance)
        if not line:
            continue
        if _near(line[0], line[-1], tolerance) and len(line) > 3:
            closed.append(line[:-1])
        else:
            open_ones.append(line)
    loops = [_turned(loop) for loop in closed + _join(open_ones, tolerance)]
    if not loops:
        raise DxfError(f"{path}: there is no outline")
    return loops


def _read(path: Path) -> Any:
    try:
        import ezdxf
    except ImportError as error:
        message = f"{path}: DXF is read by ezdxf: pip install 'tribo[dxf]'"
        raise ImportError(message) from error
    try:
        return ezdxf.readfile(str(path))
    except (ezdxf.DXFError, UnicodeDecodeError) as error:
        raise DxfError(f"{path}: {error}") from error


def _metres_of(document: Any) -> float:
    from ezdxf import units

    given = int(document.header.get("$INSUNITS", 0))
    return float(units.conversion_factor(given, units.M)) if given else 1.0


def _flatten(entity: Any, unit: float, tolerance: float) -> Loop:
    """The corners (m) of an entity; of a closed one the first is there twice."""
    from ezdxf import path as paths

    kind = entity.dxftype()
    if kind in _NOTES:
        return []
    name = f"{kind} {entity.dxf.handle} on layer '{entity.dxf.layer}'"
    if kind not in _OUTLINES:
        raise DxfError(f"{name} is no outline: name the layers of the outlines")
    corners = list(paths.make_path(entity).flattening(tolerance / unit))
    if any(not math.isfinite(c) for p in corners for c in p):
        raise DxfError(f"{name} has a corner that is not finite")
    heights = [p.z * unit for p in corners]
    if heights and max(heights) - min(heights) > tolerance:
        raise DxfError(f"{name} is not flat")
    line: Loop = []
    for p in corners:
        point = (p.x * unit, p.y * unit)
        if not line or not _near(line[-1], point, 1e-3 * tolerance):
            line.append(point)
    return line if len(line) > 1 else []


def _near(a: Point, b: Point, distance: float) -> bool:
    return math.hypot(a[0] - b[0], a[1] - b[1]) <= distance


def _join(lines: Sequence[Loop], tolerance: float) -> list[Loop]:
    """Closed outlines of lines that meet end to end."""
    ends: dict[tuple[int, int], list[tuple[int, int]]] = {}

    def cell(p: Point) -> tuple[int, int]:
        return (math.floor(p[0] / tolerance), math.floor(p[1] / tolerance))

    for i, line in enumerate(lines):
        for side in (0, -1):
            ends.setdefault(cell(line[side]), []).append((i, side))

    def partner(i: int, side: int) -> tuple[int, int]:
        p = lines[i][side]
        x, y = cell(p)
        found = [
            other
            for dx in (-1, 0, 1)
            for dy in (-1, 0, 1)
            for other in ends.get((x + dx, y + dy), [])
            if other != (i, side) and _near(lines[other[0]][other[1]], p, tolerance)
        ]
        if len(found) != 1:
            what = "ends alone" if not found else f"branches into {len(found)}"
            raise DxfError(f"an outline {what} at ({p[0]:.6g}, {p[1]:.6g}) m")
        return found[0]

    loops: list[Loop] = []
    used: set[int] = set()
    for start in range(len(lines)):
        if start in used:
            continue
        loop: Loop = []
        i, side = start, 0
        while i not in used:
            used.add(i)
            line = lines[i] if side == 0 else lines[i][::-1]
            loop.extend(line[:-1])
            i, side = partner(i, -1 if side == 0 else 0)
        if i != start:
            raise DxfError(f"outlines share a line at ({loop[0][0]:.6g}, {loop[0][1]:.6g}) m")
        loops.append(loop)
    return loops


def _area(loop: Loop) -> float:
    """Signed area, m^2, about the first corner."""
    x, y = loop[0]
    return 0.5 * sum(
        (a[0] - x) * (b[1] - y) - (b[0] - x) * (a[1] - y)
        for a, b in zip(loop, [*loop[1:], loop[0]])
    )


def _turned(loop: Loop) -> Loop:
    area = _area(loop)
    if len(loop) < 3 or area == 0:
        raise DxfError(f"an outline at ({loop[0][0]:.6g}, {loop[0][1]:.6g}) m has no area")
    return loop if area > 0 else loop[::-1]


def _holds(loop: Loop, p: Point) -> bool:
    inside = False
    for a, b in zip(loop, [*loop[1:], loop[0]]):
        if (a[1] > p[1]) != (b[1] > p[1]):
            x = a[0] + (p[1] - a[1]) / (b[1] - a[1]) * (b[0] - a[0])
            inside ^= p[0] < x
    return inside


def _within(inner: Loop, outer: Loop) -> bool:
    sides = {_holds(outer, p) for p in inner}
    if len(sides) > 1:
        x, y = inner[0]
        raise DxfError(f"the outline at ({x:.6g}, {y:.6g}) m crosses another one")
    return sides.pop()


def _text(loops: Sequence[Loop], height: float) -> str:
    """Outlines by their depth: even ones are solid, those just within them are cut out."""
    order = sorted(range(len(loops)), key=lambda i: -abs(_area(loops[i])))
    above: list[list[int]] = [[] for _ in loops]
    for k, i in enumerate(order):
        above[i] = [j for j in order[:k] if _within(loops[i], loops[j])]
    parts = []
    for i in order:
        if len(above[i]) % 2:
            continue
        holes = [j for j in order if i in above[j] and len(above[j]) == len(above[i]) + 1]
        bodies = [_polygon(loops[i]), *(_polygon(loops[j]) for j in holes)]
        parts.append(f"difference() {{ {' '.join(bodies)} }}" if holes else bodies[0])
    return f"linear_extrude(height = {height!r}) {{\n" + "\n".join(parts) + "\n}\n"


def _polygon(loop: Loop) -> str:
    corners = ", ".join(f"[{x!r}, {y!r}]" for x, y in loop)
    return f"polygon(points = [{corners}]);"
