// The shapes of all shown worlds as instances: one draw call for each geometry and kind of material.
import {
  Color,
  type BufferGeometry,
  Group,
  InstancedMesh,
  Matrix4,
  MeshLambertMaterial,
  Quaternion,
  Vector3,
} from "three";

import { type GetSceneResponse, type ShapeInfo, ShapeType } from "../../generated/tribo/v1/simulation_pb";
import { Flat, type Light, UNDRAWN } from "./flat";
import { type Frame, POSE } from "./frame";
import { type Assets, drawn } from "./geometry";

/** Of bodies whose file gives no colour. */
const PALETTE = ["#6f9ad3", "#e0a458", "#7fb58a", "#c98fb5", "#9a8fd0", "#c7b458", "#6fb5bd"];
const GROUND = "#b9b6ad";
const CHOSEN = new Color("#ffd24a");

/** The grid lies on planes. */
const BEHIND_THE_GRID = { polygonOffset: true, polygonOffsetFactor: 1, polygonOffsetUnits: 4 };

interface Entry {
  shape: number;
  body: number;
  local: Matrix4;
  colour: Color;
  /** The file gives no colour. */
  plain: boolean;
}

interface Batch {
  mesh: InstancedMesh;
  entries: Entry[];
}

/** Where a world of the grid stands, m. */
export type Offsets = readonly (readonly [number, number])[];

export interface Picked {
  world: number; // a row of the frame
  shape: number;
  body: number;
}

/** The frame of a shape in its body's, scaled. */
export function localMatrix(shape: ShapeInfo, scale: readonly [number, number, number]): Matrix4 {
  const [x = 0, y = 0, z = 0] = shape.pose?.position ?? [];
  const [w = 1, i = 0, j = 0, k = 0] = shape.pose?.orientation ?? [];
  return new Matrix4().compose(
    new Vector3(x, y, z),
    new Quaternion(i, j, k, w),
    new Vector3(...scale),
  );
}

function colourOf(shape: ShapeInfo): Color {
  const [red, green, blue] = shape.colour;
  if (red !== undefined && green !== undefined && blue !== undefined)
    return new Color().setRGB(red, green, blue, "srgb");
  if (shape.body === 0) return new Color(GROUND);
  return new Color(PALETTE[(shape.body - 1) % PALETTE.length]);
}

/** The pose of a body of a row of worlds, with the world's place in the grid. */
export function poseMatrix(
  frame: Frame,
  row: number,
  body: number,
  bodies: number,
  offset: readonly [number, number],
  into: Matrix4,
): Matrix4 {
  const p = frame.poses;
  const at = POSE * (row * bodies + body);
  position.set((p[at] ?? 0) + offset[0], (p[at + 1] ?? 0) + offset[1], p[at + 2] ?? 0);
  orientation.set(p[at + 4] ?? 0, p[at + 5] ?? 0, p[at + 6] ?? 0, p[at + 3] ?? 1);
  return into.compose(position, orientation, ONE);
}

const ONE = new Vector3(1, 1, 1);
const position = new Vector3();
const orientation = new Quaternion();
const pose = new Matrix4();
const product = new Matrix4();

export class Bodies extends Group {
  private readonly batches: Batch[] = [];
  private readonly bodies: number;
  private readonly worlds: number;
  /** Of the batches on the layer UNDRAWN. */
  private readonly flat: Flat;
  private readonly flatPlanes: Flat;
  private chosen: Picked | undefined;

  constructor(
    scene: GetSceneResponse,
    assets: Assets,
    worlds: number,
    private readonly coarse: boolean,
    light: Light,
  ) {
    super();
    this.flat = new Flat("flat bodies", {}, light);
    this.flatPlanes = new Flat("flat planes", BEHIND_THE_GRID, light);
    this.name = "bodies";
    this.bodies = scene.bodies.length;
    this.worlds = worlds;
    const groups = new Map<string, { make: () => BufferGeometry; entries: Entry[]; opacity: number; plane: boolean }>();
    scene.shapeInfos.forEach((shape, index) => {
      const how = drawn(shape, assets, coarse);
      const opacity = shape.colour[3] ?? 1;
      if (!how || opacity === 0) return;
      const key = `${how.key} ${String(opacity)}`;
      const group = groups.get(key) ?? {
        make: how.make,
        entries: [],
        opacity,
        plane: shape.type === ShapeType.PLANE,
      };
      groups.set(key, group);
      group.entries.push({
        shape: index,
        body: shape.body,
        local: localMatrix(shape, how.scale),
        colour: colourOf(shape),
        plain: shape.colour.length === 0,
      });
    });
    for (const group of groups.values()) this.addBatch(group);
    if (coarse) this.add(this.flat, this.flatPlanes);
  }

  private addBatch(group: { make: () => BufferGeometry; entries: Entry[]; opacity: number; plane: boolean }): void {
    // one plane is enough for all worlds of a grid that stand on it
    const rows = group.plane ? 1 : this.worlds;
    const material = new MeshLambertMaterial({
      transparent: group.opacity < 1,
      opacity: group.opacity,
      ...(group.plane ? BEHIND_THE_GRID : {}),
    });
    material.userData["opacity"] = group.opacity;
    const mesh = new InstancedMesh(group.make(), material, rows * group.entries.length);
    mesh.castShadow = !group.plane;
    mesh.receiveShadow = true;
    mesh.frustumCulled = false;
    mesh.userData["plane"] = group.plane;
    const batch = { mesh, entries: group.entries };
    this.batches.push(batch);
    this.paint(batch);
    this.add(mesh);
  }

  private paint(batch: Batch): void {
    const { mesh, entries } = batch;
    for (let i = 0; i < mesh.count; i++) {
      const entry = entries[i % entries.length];
      if (!entry) continue;
      const row = Math.floor(i / entries.length);
      const is = this.chosen?.world === row && this.chosen.body === entry.body && entry.body > 0;
      mesh.setColorAt(i, is ? CHOSEN : entry.colour);
    }
    if (mesh.instanceColor) mesh.instanceColor.needsUpdate = true;
  }

  /** The colour of planes whose file gives none. */
  paintGround(colour: Color): void {
    for (const batch of this.batches) {
      if (batch.mesh.userData["plane"] !== true) continue;
      for (const entry of batch.entries) if (entry.plain) entry.colour = colour;
      this.paint(batch);
    }
    this.flatten();
  }

  /** Marks a body. */
  choose(picked: Picked | undefined): void {
    this.chosen = picked;
    for (const batch of this.batches) this.paint(batch);
    this.flatten();
  }

  /** The batches that are neither transparent nor wires, in coarse drawing. */
  private flatten(): void {
    if (!this.coarse) return;
    const undrawn = this.instances.filter((mesh) => mesh.layers.isEnabled(UNDRAWN));
    this.flat.update(undrawn.filter((mesh) => mesh.userData["plane"] !== true));
    this.flatPlanes.update(undrawn.filter((mesh) => mesh.userData["plane"] === true));
  }

  /** Takes note of where the camera is. */
  face(eye: Vector3): void {
    if (!this.coarse) return;
    this.flat.face(eye);
    this.flatPlanes.face(eye);
  }

  /** The shapes, by geometry and material. */
  get instances(): InstancedMesh[] {
    return this.batches.map(({ mesh }) => mesh);
  }

  show(frame: Frame, offsets: Offsets): void {
    for (const { mesh, entries } of this.batches) {
      let last = -1;
      for (let i = 0; i < mesh.count; i++) {
        const entry = entries[i % entries.length];
        const row = Math.floor(i / entries.length);
        const offset = offsets[row];
        if (!entry || !offset) continue;
        const id = row * this.bodies + entry.body;
        if (id !== last) poseMatrix(frame, row, entry.body, this.bodies, offset, pose);
        last = id;
        mesh.setMatrixAt(i, product.multiplyMatrices(pose, entry.local));
      }
      mesh.instanceMatrix.needsUpdate = true;
      mesh.boundingSphere = null;
    }
    this.flatten();
  }

  /** The part of an instance that a ray has hit. */
  pickedAt(mesh: InstancedMesh, instance: number): Picked | undefined {
    const batch = this.batches.find((one) => one.mesh === mesh);
    const entry = batch?.entries[instance % batch.entries.length];
    if (!batch || !entry) return undefined;
    return {
      world: Math.floor(instance / batch.entries.length),
      shape: entry.shape,
      body: entry.body,
    };
  }

  style(wireframe: boolean, transparent: boolean): void {
    for (const { mesh } of this.batches) {
      const material = mesh.material as MeshLambertMaterial;
      const plane = mesh.userData["plane"] === true;
      const own = Number(material.userData["opacity"]);
      material.wireframe = wireframe && !plane;
      material.opacity = transparent && !plane ? Math.min(own, 0.35) : own;
      material.transparent = material.opacity < 1;
      material.depthWrite = material.opacity === 1;
      material.needsUpdate = true;
      const flat = this.coarse && !material.wireframe && !material.transparent;
      mesh.layers.set(flat ? UNDRAWN : 0);
    }
    this.flatten();
  }

  release(): void {
    for (const { mesh } of this.batches) {
      mesh.geometry.dispose();
      (mesh.material as MeshLambertMaterial).dispose();
      mesh.dispose();
    }
    this.flat.release();
    this.flatPlanes.release();
  }
}
