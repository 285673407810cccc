"""Outlines of drawings: solids with holes, joined lines, and drawings that bound none."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tribo import dxf

ezdxf: Any = pytest.importorskip("ezdxf")


def drawing(path: Path, units: int = 4) -> tuple[Any, Any]:
    document = ezdxf.new(setup=False)
    document.header["$INSUNITS"] = units
    return document, document.modelspace()


def area(loop: dxf.Loop) -> float:
    return 0.5 * sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(loop, [*loop[1:], loop[0]]))


def test_a_plate_with_a_hole_and_an_island(tmp_path: Path) -> None:
    document, space = drawing(tmp_path)
    space.add_lwpolyline([(0, 0), (0, 100), (200, 100), (200, 0)], close=True)
    space.add_circle((60, 50), 30)
    space.add_lwpolyline([(55, 45), (65, 45), (65, 55), (55, 55)], close=True)
    space.add_text("a plate")
    document.saveas(tmp_path / "plate.dxf")
    loops = dxf.outlines(tmp_path / "plate.dxf", tolerance=1e-6)
    areas = sorted(area(loop) for loop in loops)
    assert areas[0] == pytest.approx(1e-4, rel=1e-9)
    assert areas[1] == pytest.approx(math.pi * 9e-4, rel=1e-3)
    assert areas[2] == pytest.approx(0.02, rel=1e-9)
    text = dxf.extrude(tmp_path / "plate.dxf", 0.01)
    assert text.startswith("linear_extrude(height = 0.01) {")
    assert text.count("polygon") == 3
    assert text.count("difference") == 1


def test_lines_and_arcs_are_joined(tmp_path: Path) -> None:
    document, space = drawing(tmp_path, units=6)
    space.add_line((0, 0), (1, 0))
    space.add_arc((1, 0.5), 0.5, -90, 90)
    space.add_line((0, 1), (1, 1))
    space.add_line((0, 1), (0, 0))
    document.saveas(tmp_path / "slot.dxf")
    (loop,) = dxf.outlines(tmp_path / "slot.dxf", tolerance=1e-5)
    assert area(loop) == pytest.approx(1 + math.pi / 8, rel=1e-4)
    (scaled,) = dxf.outlines(tmp_path / "slot.dxf", metres=0.5, tolerance=1e-5)
    assert area(scaled) == pytest.approx((1 + math.pi / 8) / 4, rel=1e-4)


@pytest.mark.parametrize(
    ("draw", "says"),
    [
        (lambda s: s.add_line((0, 0), (1, 0)), r"ends alone at \(1, 0\) m|at \(0, 0\) m"),
        (lambda s: s.add_solid([(0, 0), (1, 0), (0, 1)]), "SOLID .* is no outline"),
        (lambda s: s.add_text("x"), "there is no outline"),
        (
            lambda s: [s.add_circle((0, 0), 1), s.add_circle((1.5, 0), 1)],
            "crosses another one",
        ),
        (
            lambda s: s.add_polyline3d([(0, 0, 0), (1, 0, 1), (1, 1, 0)], close=True),
            "is not flat",
        ),
    ],
)
def test_drawings_that_bound_nothing_are_named(tmp_path: Path, draw: Any, says: str) -> None:
    document, space = drawing(tmp_path, units=6)
    draw(space)
    document.saveas(tmp_path / "bad.dxf")
    with pytest.raises(dxf.DxfError, match=says):
        dxf.extrude(tmp_path / "bad.dxf", 1)


def test_files_that_are_no_drawings_are_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.dxf").write_text("0\nSECTION\n2\nnothing of the sort")
    with pytest.raises(dxf.DxfError):
        dxf.extrude(tmp_path / "bad.dxf", 1)
    with pytest.raises(ValueError, match="height is -1"):
        dxf.extrude(tmp_path / "bad.dxf", -1)
