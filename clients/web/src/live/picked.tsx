// The numbers of a body or a contact that was chosen in the view.
import { ContactLaw, ContactStatus } from "../../generated/tribo/v1/common_pb";
import type { GetSceneResponse } from "../../generated/tribo/v1/simulation_pb";
import { figure, word } from "../format";
import { Facts } from "../parts/page";
import type { Picked } from "./bodies";
import { type ContactSet, type Frame, POSE } from "./frame";

/** A contact that is found again in other frames by its shapes and its feature. */
export interface ContactKey {
  world: number;
  shapeA: number;
  shapeB: number;
  feature: number;
}

export function keyOf(set: ContactSet, world: number, index: number): ContactKey {
  return {
    world,
    shapeA: set.shapes[2 * index] ?? -1,
    shapeB: set.shapes[2 * index + 1] ?? -1,
    feature: set.features[index] ?? 0,
  };
}

/** Index of the contact in a frame, or -1. */
export function findContact(frame: Frame, key: ContactKey): number {
  const set = frame.contacts[key.world];
  for (let i = 0; set && i < set.count; i++)
    if (
      set.shapes[2 * i] === key.shapeA &&
      set.shapes[2 * i + 1] === key.shapeB &&
      set.features[i] === key.feature
    )
      return i;
  return -1;
}

type Triple = readonly [number, number, number];

function triple(values: ArrayLike<number>, i: number): Triple {
  return [values[3 * i] ?? 0, values[3 * i + 1] ?? 0, values[3 * i + 2] ?? 0];
}

/** Normal force and friction force (its size) of a contact, N. */
export function forcesOf(set: ContactSet, i: number): { normal: number; friction: number } {
  const force = triple(set.forces, i);
  const n = triple(set.normals, i);
  const normal = force[0] * n[0] + force[1] * n[1] + force[2] * n[2];
  const friction = Math.hypot(
    force[0] - normal * n[0],
    force[1] - normal * n[1],
    force[2] - normal * n[2],
  );
  return { normal, friction };
}

function vector(values: Triple, unit: string): string {
  return `${values.map(figure).join(", ")} ${unit}`;
}

function nameOf(scene: GetSceneResponse, shape: number): string {
  const info = scene.shapeInfos[shape];
  const body = scene.bodies[info?.body ?? 0]?.name ?? "";
  return info?.name || body || `shape ${String(shape)}`;
}

export function PickedContact(props: { scene: GetSceneResponse; frame: Frame; contact: ContactKey }) {
  const { scene, frame, contact } = props;
  const set = frame.contacts[contact.world];
  const i = findContact(frame, contact);
  const title = `${nameOf(scene, contact.shapeA)} on ${nameOf(scene, contact.shapeB)}`;
  if (!set || i < 0)
    return (
      <section aria-label="Chosen contact">
        <h2>{title}</h2>
        <p class="soft">This contact is not closed now.</p>
      </section>
    );
  const { normal, friction } = forcesOf(set, i);
  return (
    <section aria-label="Chosen contact">
      <h2>{title}</h2>
      <Facts
        rows={[
          ["status", word(ContactStatus, set.statuses[i] ?? 0)],
          ["law", word(ContactLaw, set.laws[i] ?? 0)],
          ["normal force", `${figure(normal)} N`],
          ["friction force", `${figure(friction)} N`],
          ["gap", `${figure(set.gaps[i] ?? NaN)} m`],
          ["sliding speed", `${figure(slidingSpeed(set, i))} m/s`],
          ["position", vector(triple(set.positions, i), "m")],
          ["normal", vector(triple(set.normals, i), "")],
        ]}
      />
    </section>
  );
}

function slidingSpeed(set: ContactSet, i: number): number {
  const v = triple(set.velocities, i);
  const n = triple(set.normals, i);
  const along = v[0] * n[0] + v[1] * n[1] + v[2] * n[2];
  return Math.hypot(v[0] - along * n[0], v[1] - along * n[1], v[2] - along * n[2]);
}

export function PickedBody(props: { scene: GetSceneResponse; frame: Frame; picked: Picked }) {
  const { scene, frame, picked } = props;
  const body = scene.bodies[picked.body];
  if (!body) return null;
  const at = POSE * (picked.world * scene.bodies.length + picked.body);
  const p = frame.poses;
  const set = frame.contacts[picked.world];
  const sum: [number, number, number] = [0, 0, 0];
  let count = 0;
  for (let i = 0; set && i < set.count; i++)
    for (const [k, sign] of [[0, -1], [1, 1]] as const) {
      if (scene.shapeInfos[set.shapes[2 * i + k] ?? 0]?.body !== picked.body) continue;
      count++;
      for (let axis = 0; axis < 3; axis++) sum[axis] = (sum[axis] ?? 0) + sign * (set.forces[3 * i + axis] ?? 0);
    }
  return (
    <section aria-label="Chosen body">
      <h2>{body.name || `body ${String(picked.body)}`}</h2>
      <Facts
        rows={[
          ["world", String(frame.worlds[picked.world] ?? picked.world)],
          ["mass", `${figure(body.mass)} kg`],
          ["position", vector([p[at] ?? 0, p[at + 1] ?? 0, p[at + 2] ?? 0], "m")],
          ["contacts", String(count)],
          ["contact force", vector(sum, "N")],
          ["shape", scene.shapeInfos[picked.shape]?.name || String(picked.shape)],
          ["material", scene.shapeInfos[picked.shape]?.material || "\u2013"],
          ["parent", scene.bodies[body.parent]?.name || (body.parent === 0 ? "world" : "\u2013")],
        ]}
      />
    </section>
  );
}
