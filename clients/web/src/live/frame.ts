// One moment of a session's worlds, as the view draws it: poses, contacts, forces, certificates.
import {
  type Certificate,
  type Contacts,
  ContactStatus,
  type Array as WireArray,
} from "../../generated/tribo/v1/common_pb";
import type { Evaluation, WatchResponse } from "../../generated/tribo/v1/simulation_pb";
import { numbers, type Numbers } from "../wire/arrays";

/** Numbers of one pose: position (m), orientation (w, x, y, z). */
export const POSE = 7;

/** Contacts of one world; arrays as in the message Contacts. */
export interface ContactSet {
  count: number;
  shapes: Numbers; // n x 2
  features: Numbers; // n
  positions: Numbers; // n x 3, m
  normals: Numbers; // n x 3, from A to B
  gaps: Numbers; // n, m
  forces: Numbers; // n x 3, N, on B
  velocities: Numbers; // n x 3, m/s
  statuses: Numbers; // n
  laws: Numbers; // n
}

/** One evaluation of all contact forces; arrays as in the message Evaluation. */
export interface Evaluated {
  time: number; // s, from the start of the step
  poses: Numbers; // bodies x 7
  boxes: Numbers; // k x 6, m: lower and upper corners
  contacts: ContactSet;
  torques: Numbers; // n x 3, N m, on B
  triangles: Numbers; // m x 9, m
  shares: Numbers; // m x 3, N, on B: of their contact's normal force
}

export interface Frame {
  time: number; // s
  steps: number;
  /** Indices of the worlds that the rows belong to. */
  worlds: readonly number[];
  poses: Numbers; // worlds x bodies x 7
  contacts: readonly ContactSet[]; // one a world
  actuatorForces: Numbers; // worlds x actuators
  limitForces: Numbers; // worlds x joints
  controls: Numbers; // worlds x actuators
  certificates: readonly Certificate[]; // one a world; empty: not known
  /** Evaluations of the first world's last step by the volume law; empty: not asked for. */
  evaluations: readonly Evaluated[];
  /** ms since 1970 by the server's clock, when it was sent; 0: it was recorded. */
  sent: number;
}

export function contactSet(contacts: Contacts): ContactSet {
  return {
    count: contacts.count,
    shapes: numbers(contacts.shapes),
    features: numbers(contacts.features),
    positions: numbers(contacts.positions),
    normals: numbers(contacts.normals),
    gaps: numbers(contacts.gaps),
    forces: numbers(contacts.forces),
    velocities: numbers(contacts.velocities),
    statuses: numbers(contacts.statuses),
    laws: numbers(contacts.laws),
  };
}

function evaluated(e: Evaluation): Evaluated {
  const depths = numbers(e.depths);
  const count = depths.length;
  return {
    time: e.time,
    poses: numbers(e.poses),
    boxes: numbers(e.boxes),
    contacts: {
      count,
      shapes: numbers(e.shapes),
      features: Int32Array.from({ length: count }, (_, i) => i),
      positions: numbers(e.centroids),
      normals: numbers(e.normals),
      gaps: depths.map((depth) => -depth),
      forces: numbers(e.forces),
      velocities: new Float32Array(3 * count),
      statuses: new Uint8Array(count).fill(ContactStatus.SLIP),
      laws: new Uint8Array(count),
    },
    torques: numbers(e.torques),
    triangles: numbers(e.triangles),
    shares: numbers(e.triangleForces),
  };
}

/** The chosen evaluation of a frame; the last one where there is no such number. */
export function evaluationAt(frame: Frame, index: number): Evaluated | undefined {
  return frame.evaluations[index] ?? frame.evaluations.at(-1);
}

/** The frame with its first world as it was at one of its evaluations. An integrator goes back and forth
 * between them, and the last one need not be the state that the step ends with. */
export function atEvaluation(frame: Frame, index: number): Frame {
  const chosen = frame.evaluations[index];
  if (!chosen) return frame;
  const poses = Float64Array.from(frame.poses);
  poses.set(chosen.poses, 0);
  return { ...frame, poses, contacts: [chosen.contacts, ...frame.contacts.slice(1)] };
}

/** The rows of an array that came in pieces. */
function join(pieces: readonly (WireArray | undefined)[]): Numbers {
  const parts = pieces.filter((piece) => piece !== undefined).map(numbers);
  const [first] = parts;
  if (!first || parts.length === 1) return first ?? new Float32Array(0);
  const all = new Float64Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** A frame of the messages that make up one state; undefined: they hold none. */
export function frameOf(pieces: readonly WatchResponse[]): Frame | undefined {
  const head = pieces.find((piece) => piece.state !== undefined);
  if (!head?.state) return undefined;
  const states = pieces.map((piece) => piece.state);
  const poses = join(states.map((state) => state?.poses));
  const contacts = pieces.flatMap((piece) => piece.contacts.map(contactSet));
  const worlds = pieces.flatMap((piece) => piece.worlds);
  const rows = Math.max(contacts.length, 1);
  return {
    time: head.state.time,
    steps: Number(head.state.steps),
    worlds: worlds.length > 0 ? worlds : Array.from({ length: rows }, (_, i) => i),
    poses,
    contacts,
    actuatorForces: join(states.map((state) => state?.actuatorForces)),
    limitForces: join(states.map((state) => state?.limitForces)),
    controls: join(states.map((state) => state?.controls)),
    certificates: pieces.flatMap((piece) => piece.certificates),
    evaluations: (pieces.flatMap((piece) => piece.evaluations)[0]?.evaluations ?? []).map(evaluated),
    sent: Number(head.timeUs) / 1000,
  };
}
