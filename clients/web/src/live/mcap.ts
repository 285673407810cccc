// Frames as an MCAP file for Foxglove: transforms of the bodies, the shapes once, contacts and
// certificates as JSON.
import { McapWriter } from "@mcap/core";

import { ContactStatus } from "../../generated/tribo/v1/common_pb";
import {
  type GetSceneResponse,
  type ShapeInfo,
  ShapeType,
} from "../../generated/tribo/v1/simulation_pb";
import { word } from "../format";
import { type ContactSet, type Frame, POSE } from "./frame";
import { forcesOf } from "./picked";

/** Collects the writer's output. */
class Memory {
  readonly pieces: Uint8Array[] = [];
  private size = 0n;

  write(piece: Uint8Array): Promise<void> {
    this.pieces.push(piece.slice());
    this.size += BigInt(piece.byteLength);
    return Promise.resolve();
  }

  position(): bigint {
    return this.size;
  }

  joined(): Uint8Array<ArrayBuffer> {
    const all = new Uint8Array(Number(this.size));
    let at = 0;
    for (const piece of this.pieces) {
      all.set(piece, at);
      at += piece.byteLength;
    }
    return all;
  }
}

interface Stamp {
  sec: number;
  nsec: number;
}

function stamp(time: number): Stamp {
  const sec = Math.floor(time);
  return { sec, nsec: Math.round((time - sec) * 1e9) };
}

function frameName(scene: GetSceneResponse, body: number): string {
  return body === 0 ? "world" : scene.bodies[body]?.name || `body ${String(body)}`;
}

function vector(x: number, y: number, z: number) {
  return { x, y, z };
}

function transforms(scene: GetSceneResponse, frame: Frame) {
  const p = frame.poses;
  return {
    transforms: scene.bodies.slice(1).map((_, i) => {
      const at = POSE * (i + 1);
      return {
        timestamp: stamp(frame.time),
        parent_frame_id: "world",
        child_frame_id: frameName(scene, i + 1),
        translation: vector(p[at] ?? 0, p[at + 1] ?? 0, p[at + 2] ?? 0),
        rotation: { x: p[at + 4], y: p[at + 5], z: p[at + 6], w: p[at + 3] },
      };
    }),
  };
}

function entity(scene: GetSceneResponse, shape: ShapeInfo, index: number) {
  const [x = 0, y = 0, z = 0] = shape.pose?.position ?? [];
  const [w = 1, i = 0, j = 0, k = 0] = shape.pose?.orientation ?? [];
  const [a = 0, b = 0, c = 0] = shape.size;
  const [r = 0.5, g = 0.6, blue = 0.8, alpha = 1] = shape.colour;
  const pose = { position: vector(x, y, z), orientation: { x: i, y: j, z: k, w } };
  const color = { r, g, b: blue, a: alpha };
  const part = (size: unknown) => [{ pose, size, color }];
  const round = shape.type === ShapeType.CYLINDER || shape.type === ShapeType.CAPSULE;
  return {
    timestamp: stamp(0),
    frame_id: frameName(scene, shape.body),
    id: shape.name || `shape ${String(index)}`,
    lifetime: stamp(0),
    frame_locked: true,
    metadata: [],
    cubes: shape.type === ShapeType.BOX ? part(vector(2 * a, 2 * b, 2 * c)) : [],
    spheres:
      shape.type === ShapeType.SPHERE
        ? part(vector(2 * a, 2 * a, 2 * a))
        : shape.type === ShapeType.ELLIPSOID
          ? part(vector(2 * a, 2 * b, 2 * c))
          : [],
    cylinders: round
      ? [{ pose, size: vector(2 * a, 2 * a, 2 * b), bottom_scale: 1, top_scale: 1, color }]
      : [],
    ...{ arrows: [], lines: [], triangles: [], texts: [], models: [] },
  };
}

function contactList(scene: GetSceneResponse, set: ContactSet | undefined) {
  return Array.from({ length: set?.count ?? 0 }, (_, i) => ({
    shapes: [0, 1].map((k) => scene.shapeInfos[set?.shapes[2 * i + k] ?? 0]?.name ?? ""),
    status: word(ContactStatus, set?.statuses[i] ?? 0),
    position: [...(set?.positions.slice(3 * i, 3 * i + 3) ?? [])],
    gap: set?.gaps[i],
    ...(set ? forcesOf(set, i) : {}),
  }));
}

function certificateOf(frame: Frame) {
  const c = frame.certificates[0];
  return {
    time: frame.time,
    step: frame.steps,
    residual: c?.residual,
    penetration: c?.penetration,
    energy: c?.energy,
    iterations: c?.iterations,
  };
}

/** The frames of the first shown world as an MCAP file. */
export async function mcapOf(
  scene: GetSceneResponse,
  frames: readonly Frame[],
): Promise<Uint8Array<ArrayBuffer>> {
  const memory = new Memory();
  const writer = new McapWriter({ writable: memory });
  const text = new TextEncoder();
  await writer.start({ profile: "", library: "tribod" });
  const channel = async (topic: string, schema: string): Promise<number> => {
    const schemaId = await writer.registerSchema({
      name: schema,
      encoding: "jsonschema",
      data: text.encode(JSON.stringify({ title: schema, type: "object" })),
    });
    return writer.registerChannel({
      schemaId,
      topic,
      messageEncoding: "json",
      metadata: new Map(),
    });
  };
  const bodies = await channel("/tf", "foxglove.FrameTransforms");
  const shapes = await channel("/scene", "foxglove.SceneUpdate");
  const contacts = await channel("/contacts", "tribo.Contacts");
  const certificates = await channel("/certificate", "tribo.Certificate");
  let sequence = 0;
  const put = (channelId: number, time: number, content: unknown) => {
    const logTime = BigInt(Math.round(time * 1e9));
    const data = text.encode(JSON.stringify(content));
    return writer.addMessage({ channelId, sequence: sequence++, logTime, publishTime: logTime, data });
  };
  const entities = scene.shapeInfos.map((shape, i) => entity(scene, shape, i));
  await put(shapes, frames[0]?.time ?? 0, { deletions: [], entities });
  for (const frame of frames) {
    await put(bodies, frame.time, transforms(scene, frame));
    await put(contacts, frame.time, { contacts: contactList(scene, frame.contacts[0]) });
    await put(certificates, frame.time, certificateOf(frame));
  }
  await writer.end();
  return memory.joined();
}
