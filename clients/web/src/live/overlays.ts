// Lines over the bodies of the first shown world: bounding boxes, joint axes, tendons, inertia, centroids,
// frames, contributions of triangles to forces, and the net force and torque of a body's contacts about its centre of mass (the debug
// views of Göteman and Roxling 6.7).
import {
  BufferAttribute,
  BufferGeometry,
  Color,
  DynamicDrawUsage,
  Group,
  LineBasicMaterial,
  LineSegments,
  Matrix4,
  Vector3,
} from "three";

import { type GetSceneResponse, type ShapeInfo, ShapeType } from "../../generated/tribo/v1/simulation_pb";
import { numbers } from "../wire/arrays";
import { type Offsets, poseMatrix } from "./bodies";
import { type Evaluated, evaluationAt, type Frame } from "./frame";
import type { Assets } from "./geometry";

export interface OverlayOptions {
  boxes: boolean;
  joints: boolean;
  tendons: boolean;
  inertia: boolean;
  centroids: boolean;
  torques: boolean;
  triangles: boolean;
  evaluation: number; // -1: the last one
  size: number; // m, of marks
  scale: number; // m/N
}

const BOX = new Color("#8c8a84");
const JOINT = new Color("#d99a00");
const TENDON = new Color("#b5533c");
const INERTIA = new Color("#3a9aa8");
const CENTROID = new Color("#d8413a");
const TORQUE = new Color("#c2459a");
const FORCE = new Color("#d8413a");
const TRIANGLE = new Color("#2f7fd0");
const SHARE = new Color("#e0782a");
const FIRST_CAPACITY = 2048;

type Bounds = readonly [Vector3, Vector3];

/** The box of a shape in its own frame; undefined: it has no end. */
function boundsOf(shape: ShapeInfo, assets: Assets): Bounds | undefined {
  const [a = 0, b = 0, c = 0] = shape.size;
  const half = (x: number, y: number, z: number): Bounds => [new Vector3(-x, -y, -z), new Vector3(x, y, z)];
  switch (shape.type) {
    case ShapeType.SPHERE:
      return half(a, a, a);
    case ShapeType.BOX:
    case ShapeType.ELLIPSOID:
      return half(a, b, c);
    case ShapeType.CYLINDER:
      return half(a, a, b);
    case ShapeType.CAPSULE:
      return half(a, a, a + b);
    case ShapeType.CONVEX:
    case ShapeType.MESH: {
      const points = numbers(assets.get(shape.meshSha256)?.mesh?.vertices);
      if (points.length === 0) return undefined;
      const low = new Vector3(Infinity, Infinity, Infinity);
      const high = low.clone().negate();
      const point = new Vector3();
      for (let i = 0; i + 2 < points.length; i += 3) {
        point.set(points[i] ?? 0, points[i + 1] ?? 0, points[i + 2] ?? 0);
        low.min(point);
        high.max(point);
      }
      return [low, high];
    }
    default:
      return undefined;
  }
}

/** Half extents of the box with this mass and these moments about its axes, m. */
export function inertiaBox(mass: number, inertia: readonly number[]): Vector3 {
  const [xx = 0, yy = 0, zz = 0] = inertia;
  const half = (sum: number) => Math.sqrt(Math.max(0, (1.5 * sum) / Math.max(mass, 1e-12)));
  return new Vector3(half(yy + zz - xx), half(xx + zz - yy), half(xx + yy - zz));
}

const a = new Vector3();
const b = new Vector3();
const corner = new Vector3();
const pose = new Matrix4();
const local = new Matrix4();
const force = new Vector3();
const torque = new Vector3();
const arm = new Vector3();

export class Overlays extends Group {
  private lines: LineSegments<BufferGeometry, LineBasicMaterial>;
  private capacity = FIRST_CAPACITY;
  private used = 0;
  private readonly boxes: (Bounds | undefined)[];
  private readonly locals: Matrix4[];
  /** Of all tendons. */
  private readonly places: number;

  constructor(
    private readonly scene: GetSceneResponse,
    assets: Assets,
    localOf: (shape: ShapeInfo) => Matrix4,
  ) {
    super();
    this.name = "overlays";
    this.boxes = scene.shapeInfos.map((shape) => boundsOf(shape, assets));
    this.locals = scene.shapeInfos.map(localOf);
    this.places = scene.tendonInfos.reduce((sum, tendon) => sum + tendon.bodies.length, 0);
    this.lines = this.make();
  }

  private make(): LineSegments<BufferGeometry, LineBasicMaterial> {
    const geometry = new BufferGeometry();
    for (const name of ["position", "color"]) {
      const attribute = new BufferAttribute(new Float32Array(3 * this.capacity), 3);
      attribute.setUsage(DynamicDrawUsage);
      geometry.setAttribute(name, attribute);
    }
    const material = new LineBasicMaterial({ vertexColors: true, depthTest: false, transparent: true });
    const lines = new LineSegments(geometry, material);
    lines.frustumCulled = false;
    lines.renderOrder = 2;
    this.add(lines);
    return lines;
  }

  private line(from: Vector3, to: Vector3, colour: Color): void {
    if (this.used + 2 > this.capacity) return;
    const position = this.lines.geometry.getAttribute("position");
    const tint = this.lines.geometry.getAttribute("color");
    for (const point of [from, to]) {
      position.setXYZ(this.used, point.x, point.y, point.z);
      tint.setXYZ(this.used, colour.r, colour.g, colour.b);
      this.used++;
    }
  }

  /** The twelve edges of a box that a matrix places. */
  private box([low, high]: Bounds, place: Matrix4, colour: Color): void {
    const at = (bits: number, into: Vector3) =>
      into
        .set(bits & 1 ? high.x : low.x, bits & 2 ? high.y : low.y, bits & 4 ? high.z : low.z)
        .applyMatrix4(place);
    for (let bits = 0; bits < 8; bits++)
      for (const edge of [1, 2, 4])
        if (!(bits & edge)) this.line(at(bits, a), at(bits | edge, b), colour);
  }

  private cross(at: Vector3, size: number, colour: Color): void {
    for (let axis = 0; axis < 3; axis++) {
      a.copy(at).setComponent(axis, at.getComponent(axis) - size);
      b.copy(at).setComponent(axis, at.getComponent(axis) + size);
      this.line(a, b, colour);
    }
  }

  /** Sums the forces of a body's contacts, and their torque about its centre of mass. */
  private wrench(frame: Frame, body: number, centre: Vector3, offset: readonly [number, number]): void {
    force.set(0, 0, 0);
    torque.set(0, 0, 0);
    const set = frame.contacts[0];
    for (let i = 0; set && i < set.count; i++) {
      for (const [k, sign] of [[0, -1], [1, 1]] as const) {
        if (this.scene.shapeInfos[set.shapes[2 * i + k] ?? 0]?.body !== body) continue;
        const at = 3 * i;
        a.set(set.forces[at] ?? 0, set.forces[at + 1] ?? 0, set.forces[at + 2] ?? 0).multiplyScalar(sign);
        arm.set(
          (set.positions[at] ?? 0) + offset[0] - centre.x,
          (set.positions[at + 1] ?? 0) + offset[1] - centre.y,
          (set.positions[at + 2] ?? 0) - centre.z,
        );
        force.add(a);
        torque.add(b.crossVectors(arm, a));
      }
    }
  }

  private body(frame: Frame, index: number, offset: readonly [number, number], options: OverlayOptions): void {
    const info = this.scene.bodies[index];
    if (!info) return;
    poseMatrix(frame, 0, index, this.scene.bodies.length, offset, pose);
    const [x = 0, y = 0, z = 0] = info.com;
    corner.set(x, y, z).applyMatrix4(pose);
    if (options.centroids) this.cross(corner, options.size * 1.5, CENTROID);
    if (options.inertia && info.mass > 0) {
      const half = inertiaBox(info.mass, info.inertia);
      local.copy(pose).multiply(new Matrix4().makeTranslation(x, y, z));
      this.box([half.clone().negate(), half], local, INERTIA);
    }
    if (options.torques) {
      const centre = corner.clone();
      this.wrench(frame, index, centre, offset);
      this.line(centre, a.copy(centre).addScaledVector(force, options.scale), FORCE);
      // a torque is drawn as the force that it is at 0.1 m
      this.line(centre, a.copy(centre).addScaledVector(torque, 10 * options.scale), TORQUE);
    }
  }

  /** Triangles of the overlaps with their shares of the normal force; and of the same evaluation the boxes
   * along the axes, centroids of overlaps and torques of contacts. */
  private evaluation(e: Evaluated, offset: readonly [number, number], options: OverlayOptions): void {
    const at = (from: Evaluated["boxes"], k: number, into: Vector3) =>
      into.set((from[k] ?? 0) + offset[0], (from[k + 1] ?? 0) + offset[1], from[k + 2] ?? 0);
    for (let k = 0; k + 5 < e.boxes.length && options.boxes; k += 6)
      this.box([at(e.boxes, k, arm).clone(), at(e.boxes, k + 3, arm).clone()], local.identity(), BOX);
    for (let i = 0; i < e.contacts.count; i++) {
      at(e.contacts.positions, 3 * i, corner);
      if (options.centroids) this.cross(corner, options.size, CENTROID);
      if (!options.torques) continue;
      torque.set(e.torques[3 * i] ?? 0, e.torques[3 * i + 1] ?? 0, e.torques[3 * i + 2] ?? 0);
      this.line(corner, a.copy(corner).addScaledVector(torque, 10 * options.scale), TORQUE);
    }
    for (let i = 0; 9 * i + 8 < e.triangles.length && options.triangles; i++) {
      corner.set(0, 0, 0);
      for (let k = 0; k < 3; k++) {
        at(e.triangles, 9 * i + 3 * k, a);
        at(e.triangles, 9 * i + 3 * ((k + 1) % 3), b);
        this.line(a, b, TRIANGLE);
        corner.addScaledVector(a, 1 / 3);
      }
      force.set(e.shares[3 * i] ?? 0, e.shares[3 * i + 1] ?? 0, e.shares[3 * i + 2] ?? 0);
      this.line(corner, a.copy(corner).addScaledVector(force, options.scale), SHARE);
    }
  }

  /** Straight lines between the places that tendons are threaded through. */
  private tendons(frame: Frame, offset: readonly [number, number]): void {
    for (const { bodies, positions } of this.scene.tendonInfos) {
      let last: Vector3 | undefined;
      bodies.forEach((body, i) => {
        if (body < 0) {
          last = undefined;
          return;
        }
        poseMatrix(frame, 0, body, this.scene.bodies.length, offset, pose);
        const place = new Vector3(positions[3 * i], positions[3 * i + 1], positions[3 * i + 2]);
        place.applyMatrix4(pose);
        if (last) this.line(last, place, TENDON);
        last = place;
      });
    }
  }

  show(frame: Frame, offsets: Offsets, options: OverlayOptions): void {
    const offset = offsets[0] ?? [0, 0];
    const evaluation = evaluationAt(frame, options.evaluation);
    const needed =
      40 * (this.scene.shapeInfos.length + this.scene.bodies.length + this.scene.joints.length) +
      2 * this.places +
      (evaluation ? 4 * evaluation.boxes.length + 8 * evaluation.contacts.count + evaluation.triangles.length : 0);
    if (needed > this.capacity) {
      this.remove(this.lines);
      this.lines.geometry.dispose();
      this.capacity = needed;
      this.lines = this.make();
    }
    this.used = 0;
    if (evaluation) this.evaluation(evaluation, offset, options);
    for (let i = 1; i < this.scene.bodies.length; i++) this.body(frame, i, offset, options);
    this.scene.shapeInfos.forEach((shape, i) => {
      const box = this.boxes[i];
      const place = this.locals[i];
      if (!options.boxes || !box || !place || shape.body === 0) return;
      poseMatrix(frame, 0, shape.body, this.scene.bodies.length, offset, pose);
      this.box(box, pose.multiply(place), BOX);
    });
    if (options.tendons) this.tendons(frame, offset);
    for (const joint of this.scene.joints) {
      if (!options.joints || joint.axis.length < 3) continue;
      poseMatrix(frame, 0, joint.body, this.scene.bodies.length, offset, pose);
      const [px = 0, py = 0, pz = 0] = joint.position;
      const [ax = 0, ay = 0, az = 0] = joint.axis;
      const length = 4 * options.size;
      a.set(px - length * ax, py - length * ay, pz - length * az).applyMatrix4(pose);
      b.set(px + length * ax, py + length * ay, pz + length * az).applyMatrix4(pose);
      this.line(a, b, JOINT);
    }
    this.lines.geometry.setDrawRange(0, this.used);
    for (const name of ["position", "color"]) this.lines.geometry.getAttribute(name).needsUpdate = true;
    this.lines.visible = this.used > 0;
  }
}
