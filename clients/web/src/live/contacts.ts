// Contacts: points in the colour of their status, arrows of normal and friction forces, cones.
//
// An arrow is as long as its force times the scale (m/N). It shows the force on body B of the
// contact, or on A where B is the world; where a body is chosen, the force on that body.
import {
  type BufferGeometry,
  Color,
  ConeGeometry,
  CylinderGeometry,
  DynamicDrawUsage,
  Group,
  InstancedMesh,
  Matrix4,
  MeshBasicMaterial,
  Quaternion,
  SphereGeometry,
  Vector3,
} from "three";

import { ContactStatus } from "../../generated/tribo/v1/common_pb";
import type { GetSceneResponse } from "../../generated/tribo/v1/simulation_pb";
import type { Offsets, Picked } from "./bodies";
import { Flat, UNDRAWN } from "./flat";
import type { ContactSet, Frame } from "./frame";

export const STATUS_COLOURS: Record<number, string> = {
  [ContactStatus.OPEN]: "#8c8a84",
  [ContactStatus.STICK]: "#2fae6b",
  [ContactStatus.SLIP]: "#f08a24",
};
const NORMAL_COLOUR = new Color("#d8413a");
const FRICTION_COLOUR = new Color("#7b4fd6");
const CONE_COLOUR = new Color("#3a7bd5");
const WHITE = new Color("#ffffff");
/** Of an arrow: length of the head over its width, and at most this share of the arrow; widths over
 * the size of a point. */
const HEAD_LENGTH = 3.2;
const HEAD_SHARE = 0.4;
const HEAD_WIDTH = 1.1;
const SHAFT_WIDTH = 0.38;
/** An arrow is seen if it is longer than this, over the size of a point. */
const SEEN = 0.05;
const FIRST_CAPACITY = 64;

export interface ContactOptions {
  points: boolean;
  normals: boolean;
  frictions: boolean;
  cones: boolean;
  scale: number; // m/N
  size: number; // m, radius of a point
}

const UP = new Vector3(0, 1, 0);
const from = new Vector3();
const direction = new Vector3();
const turn = new Quaternion();
const scaling = new Vector3();
const matrix = new Matrix4();
const middle = new Vector3();

/** Instances of one geometry; grows as it is asked. */
class Instances {
  mesh: InstancedMesh;
  private capacity = FIRST_CAPACITY;

  constructor(
    private readonly parent: Group,
    private readonly name: string,
    private readonly geometry: BufferGeometry,
    private readonly material: MeshBasicMaterial,
  ) {
    this.mesh = this.make();
  }

  private make(): InstancedMesh {
    const mesh = new InstancedMesh(this.geometry, this.material, this.capacity);
    mesh.name = this.name;
    mesh.instanceMatrix.setUsage(DynamicDrawUsage);
    mesh.count = 0;
    mesh.frustumCulled = false;
    mesh.renderOrder = 1;
    this.parent.add(mesh);
    return mesh;
  }

  begin(needed: number): void {
    if (needed > this.capacity) {
      this.parent.remove(this.mesh);
      this.mesh.dispose();
      this.capacity = 2 * needed;
      this.mesh = this.make();
    }
    this.mesh.count = 0;
  }

  put(at: Matrix4, colour: Color): void {
    this.mesh.setMatrixAt(this.mesh.count, at);
    this.mesh.setColorAt(this.mesh.count, colour);
    this.mesh.count++;
  }

  end(visible: boolean): void {
    this.mesh.visible = visible && this.mesh.count > 0;
    this.mesh.instanceMatrix.needsUpdate = true;
    if (this.mesh.instanceColor) this.mesh.instanceColor.needsUpdate = true;
    this.mesh.boundingSphere = null;
  }
}

function material(opacity = 1): MeshBasicMaterial {
  return new MeshBasicMaterial({
    color: WHITE,
    transparent: opacity < 1,
    opacity,
    depthTest: opacity < 1,
    depthWrite: false,
  });
}

export class ContactView extends Group {
  private readonly points: Instances;
  private readonly shafts: Instances;
  private readonly heads: Instances;
  private readonly cones: Instances;
  private readonly colours: Record<number, Color>;
  /** Of points, shafts and heads, in coarse drawing. */
  private readonly flat = new Flat("flat contacts", { depthTest: false, depthWrite: false });

  /** `coarse`: marks with the fewest vertices that stay recognisable. */
  constructor(
    private readonly scene: GetSceneResponse,
    private readonly coarse: boolean,
  ) {
    super();
    this.name = "contacts";
    // shafts, heads and cones begin at the origin and reach to y = 1
    const shaft = new CylinderGeometry(1, 1, 1, coarse ? 3 : 6, 1, true).translate(0, 0.5, 0);
    const head = new ConeGeometry(1, 1, coarse ? 4 : 8).translate(0, 0.5, 0);
    const point = coarse ? new SphereGeometry(1, 4, 2) : new SphereGeometry(1, 8, 6);
    const cone = new ConeGeometry(1, 1, 24, 1, true).rotateX(Math.PI).translate(0, 0.5, 0);
    this.cones = new Instances(this, "friction cones", cone, material(0.22));
    this.points = new Instances(this, "contact points", point, material());
    this.shafts = new Instances(this, "force arrows", shaft, material());
    this.heads = new Instances(this, "force heads", head, material());
    this.flat.renderOrder = 1;
    this.add(this.flat);
    this.colours = Object.fromEntries(
      Object.entries(STATUS_COLOURS).map(([status, colour]) => [status, new Color(colour)]),
    );
  }

  /** +1: the force on B is shown; -1: that on A. */
  private side(set: ContactSet, i: number, row: number, chosen: Picked | undefined): number {
    const body = (k: number) => this.scene.shapeInfos[set.shapes[2 * i + k] ?? 0]?.body ?? 0;
    if (chosen?.world === row && chosen.body > 0 && body(0) === chosen.body) return -1;
    return body(1) === 0 ? -1 : 1;
  }

  private friction(set: ContactSet, i: number): number {
    const mu = (k: number) => this.scene.shapeInfos[set.shapes[2 * i + k] ?? 0]?.friction ?? 0;
    return Math.max(mu(0), mu(1));
  }

  /** An arrow along `direction` (N) from `from`. */
  private arrow(options: ContactOptions, colour: Color): void {
    const force = direction.length();
    if (!(force * options.scale > SEEN * options.size)) return;
    turn.setFromUnitVectors(UP, direction.divideScalar(force));
    const length = force * options.scale;
    const width = Math.min(options.size, length / 4);
    const head = Math.min(HEAD_SHARE * length, HEAD_LENGTH * width);
    scaling.set(SHAFT_WIDTH * width, length - head, SHAFT_WIDTH * width);
    this.shafts.put(matrix.compose(from, turn, scaling), colour);
    middle.copy(from).addScaledVector(direction, length - head);
    scaling.set(HEAD_WIDTH * width, head, HEAD_WIDTH * width);
    this.heads.put(matrix.compose(middle, turn, scaling), colour);
  }

  private contact(
    set: ContactSet,
    i: number,
    row: number,
    offset: readonly [number, number],
    options: ContactOptions,
    chosen: Picked | undefined,
  ): void {
    const at = 3 * i;
    const { positions: p, normals: n, forces: f } = set;
    const sign = this.side(set, i, row, chosen);
    from.set((p[at] ?? 0) + offset[0], (p[at + 1] ?? 0) + offset[1], p[at + 2] ?? 0);
    const status = set.statuses[i] ?? 0;
    scaling.setScalar(options.size);
    this.points.put(
      matrix.compose(from, turn.identity(), scaling),
      this.colours[status] ?? WHITE,
    );
    const normal: [number, number, number] = [n[at] ?? 0, n[at + 1] ?? 0, n[at + 2] ?? 0];
    const force: [number, number, number] = [f[at] ?? 0, f[at + 1] ?? 0, f[at + 2] ?? 0];
    const along = force[0] * normal[0] + force[1] * normal[1] + force[2] * normal[2];
    if (options.normals) {
      direction.set(...normal).multiplyScalar(sign * along);
      this.arrow(options, NORMAL_COLOUR);
    }
    if (options.frictions) {
      direction.set(...force).addScaledVector(middle.set(...normal), -along).multiplyScalar(sign);
      this.arrow(options, FRICTION_COLOUR);
    }
    if (options.cones && status !== (ContactStatus.OPEN as number)) {
      const height = Math.max(6 * options.size, along * options.scale);
      const width = height * this.friction(set, i);
      direction.set(...normal).multiplyScalar(sign);
      turn.setFromUnitVectors(UP, direction.normalize());
      scaling.set(width, height, width);
      this.cones.put(matrix.compose(from, turn, scaling), CONE_COLOUR);
    }
  }

  show(frame: Frame, offsets: Offsets, options: ContactOptions, chosen: Picked | undefined): void {
    const total = frame.contacts.reduce((sum, set) => sum + set.count, 0);
    for (const part of [this.points, this.shafts, this.heads, this.cones]) part.begin(2 * total);
    frame.contacts.forEach((set, row) => {
      const offset = offsets[row];
      for (let i = 0; offset && i < set.count; i++)
        this.contact(set, i, row, offset, options, chosen);
    });
    this.points.end(options.points);
    this.shafts.end(true);
    this.heads.end(true);
    this.cones.end(options.cones);
    if (!this.coarse) return;
    const drawn = [this.points, this.shafts, this.heads].map(({ mesh }) => mesh);
    for (const mesh of drawn) mesh.layers.set(UNDRAWN);
    this.flat.update(drawn.filter((mesh) => mesh.visible));
  }

  /** Takes note of where the camera is. */
  face(eye: Vector3): void {
    if (this.coarse) this.flat.face(eye);
  }

  get pointMesh(): InstancedMesh {
    return this.points.mesh;
  }
}
