// Geometries of shapes. Shapes that differ by a scale alone share one, so that a pile of boxes is
// one draw call.
import {
  BoxGeometry,
  BufferAttribute,
  BufferGeometry,
  CapsuleGeometry,
  CylinderGeometry,
  PlaneGeometry,
  SphereGeometry,
} from "three";

import {
  type GetAssetResponse,
  type HeightFieldGeometry,
  type MeshGeometry,
  type ShapeInfo,
  ShapeType,
} from "../../generated/tribo/v1/simulation_pb";
import { simulation } from "../wire/api";
import { numbers } from "../wire/arrays";

/** m; planes have no end, their picture does. */
const PLANE_SIZE = 200;

export interface Drawn {
  /** Shapes of one key share the geometry. */
  key: string;
  scale: readonly [number, number, number];
  make(): BufferGeometry;
}

function size(shape: ShapeInfo, i: number): number {
  return shape.size[i] ?? 0;
}

function upright(geometry: BufferGeometry): BufferGeometry {
  return geometry.rotateX(Math.PI / 2);
}

export function trianglesOf(vertices: ArrayLike<number>, indices: ArrayLike<number>): BufferGeometry {
  const geometry = new BufferGeometry();
  geometry.setAttribute("position", new BufferAttribute(Float32Array.from(vertices), 3));
  geometry.setIndex(new BufferAttribute(Uint32Array.from(indices), 1));
  // flat faces: each triangle with its own normal
  const flat = geometry.toNonIndexed();
  flat.computeVertexNormals();
  return flat;
}

function meshOf(mesh: MeshGeometry, hull: boolean): BufferGeometry {
  const useHull = hull && mesh.hullTriangles !== undefined && mesh.hullTriangles.data.length > 0;
  return useHull
    ? trianglesOf(numbers(mesh.hullVertices), numbers(mesh.hullTriangles))
    : trianglesOf(numbers(mesh.vertices), numbers(mesh.triangles));
}

function heightFieldOf(field: HeightFieldGeometry): BufferGeometry {
  const heights = numbers(field.heights);
  const rows = Number(field.heights?.shape[0] ?? 0n);
  const columns = Number(field.heights?.shape[1] ?? 0n);
  const geometry = new PlaneGeometry(2 * field.halfX, 2 * field.halfY, columns - 1, rows - 1);
  const position = geometry.getAttribute("position");
  // a plane's rows go down along Y, those of a height field up
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++)
      position.setZ((rows - 1 - row) * columns + column, heights[row * columns + column] ?? 0);
  geometry.computeVertexNormals();
  return geometry;
}

/** Geometry of each digest that the shapes name. */
export type Assets = ReadonlyMap<string, GetAssetResponse>;

export async function fetchAssets(
  sceneId: string,
  shapes: readonly ShapeInfo[],
  signal: AbortSignal,
): Promise<Assets> {
  const digests = [...new Set(shapes.map((shape) => shape.meshSha256).filter(Boolean))];
  const answers = await Promise.all(
    digests.map((sha256) => simulation.getAsset({ sha256, sceneId }, { signal })),
  );
  return new Map(digests.map((sha256, i) => [sha256, answers[i]] as [string, GetAssetResponse]));
}

/** Geometry to draw a shape; undefined: the shape's type is unknown. `coarse`: round shapes with a
 * quarter of the vertices, which dominate the cost of drawing without a graphics card. */
export function drawn(shape: ShapeInfo, assets: Assets, coarse: boolean): Drawn | undefined {
  const ball = () => (coarse ? new SphereGeometry(1, 10, 6) : new SphereGeometry(1, 24, 16));
  const [a, b, c] = [size(shape, 0), size(shape, 1), size(shape, 2)];
  switch (shape.type) {
    case ShapeType.PLANE:
      return {
        key: "plane",
        scale: [PLANE_SIZE, PLANE_SIZE, 1],
        make: () => new PlaneGeometry(1, 1),
      };
    case ShapeType.SPHERE:
      return { key: "sphere", scale: [a, a, a], make: ball };
    case ShapeType.ELLIPSOID:
      return { key: "sphere", scale: [a, b, c], make: ball };
    case ShapeType.BOX:
      return { key: "box", scale: [a, b, c], make: () => new BoxGeometry(2, 2, 2) };
    case ShapeType.CYLINDER:
      return {
        key: "cylinder",
        scale: [a, a, b],
        make: () => upright(new CylinderGeometry(1, 1, 2, coarse ? 12 : 28)),
      };
    case ShapeType.CAPSULE:
      return {
        key: `capsule ${String(a)} ${String(b)}`,
        scale: [1, 1, 1],
        make: () => upright(coarse ? new CapsuleGeometry(a, 2 * b, 2, 10) : new CapsuleGeometry(a, 2 * b, 8, 18)),
      };
    default: {
      const asset = assets.get(shape.meshSha256);
      if (!asset) return undefined;
      const hull = shape.type === ShapeType.CONVEX;
      return {
        key: `${shape.meshSha256} ${String(hull)}`,
        scale: [1, 1, 1],
        make: () =>
          asset.heightField
            ? heightFieldOf(asset.heightField)
            : asset.mesh
              ? meshOf(asset.mesh, hull)
              : new BufferGeometry(),
      };
    }
  }
}
