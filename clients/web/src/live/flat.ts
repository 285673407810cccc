// Instances as one mesh whose vertices are placed, coloured and lit here, and whose triangles that
// face away are left out. A machine that draws by software spends more on an instance than on the
// vertices in it, and as much on a triangle that it culls as on a small one that it draws.
import {
  BufferAttribute,
  BufferGeometry,
  type Color,
  DynamicDrawUsage,
  type InstancedMesh,
  Mesh,
  ShaderMaterial,
  type ShaderMaterialParameters,
  type Vector3,
} from "three";

/** Lights of the view, as three.js's HemisphereLight and DirectionalLight: colours times
 * intensities; directions as unit vectors. */
export interface Light {
  sky: Color;
  ground: Color;
  sun: Color;
  towardsSun: Vector3;
}

interface Part {
  mesh: InstancedMesh;
  positions: ArrayLike<number>;
  normals: ArrayLike<number>;
  indices: ArrayLike<number> | undefined;
}

/** Shaders without work per pixel: vertex colours arrive in the screen's colour space. */
const VERTEX = `
  attribute vec3 shade;
  varying vec3 shown;
  void main() {
    shown = shade;
    gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0);
  }`;
const FRAGMENT = `
  varying vec3 shown;
  void main() {
    gl_FragColor = vec4(shown, 1.0);
  }`;

/** sRGB of linear light from 0 to 1 (IEC 61966-2-1). */
const SCREEN = Float32Array.from({ length: 4097 }, (_, i) => {
  const x = i / 4096;
  return x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055;
});

function screen(linear: number): number {
  return SCREEN[Math.min(4096, Math.round(4096 * linear))] ?? 1;
}

/** Layer of instances that are not drawn themselves; rays still find them. */
export const UNDRAWN = 1;

function partOf(mesh: InstancedMesh): Part {
  const { geometry } = mesh;
  return {
    mesh,
    positions: geometry.getAttribute("position").array,
    normals: geometry.getAttribute("normal").array,
    indices: geometry.getIndex()?.array,
  };
}

/** Numbers that hold while the instances keep their geometries and counts. */
function layoutOf(parts: readonly Part[]): string {
  return parts.map(({ mesh }) => `${mesh.geometry.uuid} ${String(mesh.count)}`).join();
}

export class Flat extends Mesh<BufferGeometry, ShaderMaterial> {
  private layout = "";
  private positions = new Float32Array(0);
  private colours = new Float32Array(0);
  /** Vertices of all triangles; the geometry's index holds those of the triangles that are seen. */
  private triangles = new Uint32Array(0);

  /** `light`: undefined where colours are shown as they are. */
  constructor(
    name: string,
    parameters: ShaderMaterialParameters,
    private readonly light?: Light,
  ) {
    super(
      new BufferGeometry(),
      new ShaderMaterial({ ...parameters, vertexShader: VERTEX, fragmentShader: FRAGMENT }),
    );
    this.name = name;
    this.frustumCulled = false;
  }

  /** Takes the instances as they are now. */
  update(meshes: readonly InstancedMesh[]): void {
    const parts = meshes.filter((mesh) => mesh.count > 0).map(partOf);
    this.visible = parts.length > 0;
    if (!this.visible) return;
    const layout = layoutOf(parts);
    if (layout !== this.layout) this.arrange(parts);
    this.layout = layout;
    let vertex = 0;
    for (const part of parts)
      for (let i = 0; i < part.mesh.count; i++) vertex = this.place(part, i, vertex);
    for (const name of ["position", "shade"]) this.geometry.getAttribute(name).needsUpdate = true;
  }

  /** Makes arrays of the right size, and the triangles. */
  private arrange(parts: readonly Part[]): void {
    let vertices = 0;
    let corners = 0;
    for (const { mesh, positions, indices } of parts) {
      vertices += (mesh.count * positions.length) / 3;
      corners += mesh.count * (indices?.length ?? positions.length / 3);
    }
    const triangles = new Uint32Array(corners);
    let first = 0;
    let at = 0;
    for (const { mesh, positions, indices } of parts)
      for (let i = 0; i < mesh.count; i++) {
        const count = indices?.length ?? positions.length / 3;
        for (let k = 0; k < count; k++) triangles[at++] = first + (indices?.[k] ?? k);
        first += positions.length / 3;
      }
    this.geometry.dispose();
    this.triangles = triangles;
    this.positions = new Float32Array(3 * vertices);
    this.colours = new Float32Array(3 * vertices);
    this.geometry = new BufferGeometry()
      .setAttribute("position", new BufferAttribute(this.positions, 3).setUsage(DynamicDrawUsage))
      .setAttribute("shade", new BufferAttribute(this.colours, 3).setUsage(DynamicDrawUsage))
      .setIndex(new BufferAttribute(new Uint32Array(corners), 1).setUsage(DynamicDrawUsage));
  }

  /** Leaves out the triangles whose backs are turned to a place in the world. */
  face(eye: Vector3): void {
    const index = this.geometry.getIndex();
    if (!this.visible || !index) return;
    const { triangles, positions: p } = this;
    const seen = index.array;
    let count = 0;
    for (let k = 0; k < triangles.length; k += 3) {
      const i = triangles[k] ?? 0;
      const j = triangles[k + 1] ?? 0;
      const l = triangles[k + 2] ?? 0;
      const x = p[3 * i] ?? 0;
      const y = p[3 * i + 1] ?? 0;
      const z = p[3 * i + 2] ?? 0;
      const ax = (p[3 * j] ?? 0) - x;
      const ay = (p[3 * j + 1] ?? 0) - y;
      const az = (p[3 * j + 2] ?? 0) - z;
      const bx = (p[3 * l] ?? 0) - x;
      const by = (p[3 * l + 1] ?? 0) - y;
      const bz = (p[3 * l + 2] ?? 0) - z;
      const towards =
        (ay * bz - az * by) * (eye.x - x) +
        (az * bx - ax * bz) * (eye.y - y) +
        (ax * by - ay * bx) * (eye.z - z);
      if (towards <= 0) continue;
      seen[count++] = i;
      seen[count++] = j;
      seen[count++] = l;
    }
    this.geometry.setDrawRange(0, count);
    index.clearUpdateRanges();
    index.addUpdateRange(0, count);
    index.needsUpdate = true;
  }

  /** Writes the vertices of one instance from `vertex` on; gives the number of the next. */
  private place(part: Part, instance: number, vertex: number): number {
    const { positions: p, normals: n, mesh } = part;
    const m = mesh.instanceMatrix.array.subarray(16 * instance, 16 * instance + 16) as Float32Array;
    const [xx = 0, xy = 0, xz = 0, , yx = 0, yy = 0, yz = 0, , zx = 0, zy = 0, zz = 0, , tx = 0, ty = 0, tz = 0] = m;
    const c = mesh.instanceColor?.array ?? [];
    const red = c[3 * instance] ?? 1;
    const green = c[3 * instance + 1] ?? 1;
    const blue = c[3 * instance + 2] ?? 1;
    const [plainRed, plainGreen, plainBlue] = [screen(red), screen(green), screen(blue)];
    // normals turn with the columns, over the squares of their lengths
    const sx = 1 / (xx * xx + xy * xy + xz * xz || 1);
    const sy = 1 / (yx * yx + yy * yy + yz * yz || 1);
    const sz = 1 / (zx * zx + zy * zy + zz * zz || 1);
    const { positions, colours, light } = this;
    for (let k = 0, at = 3 * vertex; k < p.length; k += 3, at += 3) {
      const x = p[k] ?? 0;
      const y = p[k + 1] ?? 0;
      const z = p[k + 2] ?? 0;
      positions[at] = xx * x + yx * y + zx * z + tx;
      positions[at + 1] = xy * x + yy * y + zy * z + ty;
      positions[at + 2] = xz * x + yz * y + zz * z + tz;
      if (!light) {
        colours[at] = plainRed;
        colours[at + 1] = plainGreen;
        colours[at + 2] = plainBlue;
        continue;
      }
      const a = (n[k] ?? 0) * sx;
      const b = (n[k + 1] ?? 0) * sy;
      const d = (n[k + 2] ?? 0) * sz;
      const nx = xx * a + yx * b + zx * d;
      const ny = xy * a + yy * b + zy * d;
      const nz = xz * a + yz * b + zz * d;
      const over = 1 / (Math.sqrt(nx * nx + ny * ny + nz * nz) || 1);
      const { towardsSun: s, sky, ground, sun } = light;
      const lit = Math.max(0, (nx * s.x + ny * s.y + nz * s.z) * over) / Math.PI;
      const up = (0.5 + 0.5 * nz * over) / Math.PI;
      const down = 1 / Math.PI - up;
      colours[at] = screen(red * (sun.r * lit + sky.r * up + ground.r * down));
      colours[at + 1] = screen(green * (sun.g * lit + sky.g * up + ground.g * down));
      colours[at + 2] = screen(blue * (sun.b * lit + sky.b * up + ground.b * down));
    }
    return vertex + p.length / 3;
  }

  release(): void {
    this.geometry.dispose();
    this.material.dispose();
  }
}
