// Downloads of the view: numbers as CSV, a frame as glTF, a picture. mcap.ts writes recordings.
import { Color, Matrix4, Mesh, MeshStandardMaterial, Scene } from "three";

import { ContactStatus } from "../../generated/tribo/v1/common_pb";
import { word } from "../format";
import type { Bodies } from "./bodies";
import type { Frame } from "./frame";
import { forcesOf } from "./picked";

export function save(name: string, type: string, content: BlobPart): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  window.setTimeout(() => {
    URL.revokeObjectURL(url);
  }, 10_000);
}

const COLUMNS = [
  ...["time_s", "step", "world", "residual", "penetration_m", "energy_J", "iterations"],
  ...["contact", "shape_a", "shape_b", "status", "x_m", "y_m", "z_m", "gap_m"],
  ...["normal_N", "friction_N", "fx_N", "fy_N", "fz_N"],
];

/** A row for each contact of each frame; a world without contacts has one row. */
export function csvOf(frames: readonly Frame[]): string {
  const lines = [COLUMNS.join(",")];
  for (const frame of frames)
    frame.worlds.forEach((world, row) => {
      const c = frame.certificates[row];
      const head = [frame.time, frame.steps, world];
      const quality = c ? [c.residual, c.penetration, c.energy, c.iterations] : ["", "", "", ""];
      const set = frame.contacts[row];
      if (!set || set.count === 0)
        lines.push([...head, ...quality, ...new Array<string>(13).fill("")].join(","));
      for (let i = 0; set && i < set.count; i++) {
        const { normal, friction } = forcesOf(set, i);
        const shapes = [set.shapes[2 * i], set.shapes[2 * i + 1]];
        const status = word(ContactStatus, set.statuses[i] ?? 0);
        const place = [...set.positions.slice(3 * i, 3 * i + 3), set.gaps[i]];
        const force = [normal, friction, ...set.forces.slice(3 * i, 3 * i + 3)];
        lines.push([...head, ...quality, i, ...shapes, status, ...place, ...force].join(","));
      }
    });
  return `${lines.join("\n")}\n`;
}

/** The bodies as they stand now, as plain meshes: viewers know instances by an extension alone. */
function plainScene(bodies: Bodies): Scene {
  const scene = new Scene();
  // glTF's Y is up, ours is Z
  scene.rotation.x = -Math.PI / 2;
  const matrix = new Matrix4();
  const colour = new Color();
  for (const instances of bodies.instances) {
    if (instances.userData["plane"] === true) continue;
    for (let i = 0; i < instances.count; i++) {
      instances.getMatrixAt(i, matrix);
      instances.getColorAt(i, colour);
      const material = new MeshStandardMaterial({ color: colour.clone(), roughness: 0.8 });
      const mesh = new Mesh(instances.geometry, material);
      matrix.decompose(mesh.position, mesh.quaternion, mesh.scale);
      scene.add(mesh);
    }
  }
  scene.updateMatrixWorld(true);
  return scene;
}

/** The frame that the view shows, as binary glTF. */
export async function gltfOf(bodies: Bodies): Promise<ArrayBuffer> {
  const { GLTFExporter } = await import("three/examples/jsm/exporters/GLTFExporter.js");
  const result = await new GLTFExporter().parseAsync(plainScene(bodies), { binary: true });
  if (!(result instanceof ArrayBuffer)) throw new Error("the exporter gave no binary file");
  return result;
}
