"""Meshes from scans: repaired or refused with the place, and cut into convex parts.

    mesh, report = tribo.meshes.repair("scan.ply")     # raises MeshError with the place
    parts = tribo.meshes.convex_parts(mesh)            # hulls, cached by digest
    target = tribo.GraspObject(parts, convex=True, mass=0.3)

`repair` needs numpy alone. Files other than OBJ are read by trimesh, and `convex_parts` needs CoACD
and scipy (`pip install 'tribo[meshes]'`).
"""

from tribo.meshes.convex import ConvexParts, convex_parts, mass_properties
from tribo.meshes.repair import Hole, Mesh, MeshError, Repair, read, repair

__all__ = [
    "ConvexParts",
    "Hole",
    "Mesh",
    "MeshError",
    "Repair",
    "convex_parts",
    "mass_properties",
    "read",
    "repair",
]
