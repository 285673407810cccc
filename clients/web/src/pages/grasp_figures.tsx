// Drawings of a grasp: its wrench space, the wrenches of its contacts, and its approach.
import type { GraspResult } from "../../generated/tribo/v1/grasp_pb";
import { figure } from "../format";
import { numbers } from "../wire/arrays";

type Vector = readonly [number, number, number];
type Point = readonly [number, number];

const SIZE = 150;
const AXES = ["x", "y", "z"] as const;
/** Directions of friction in the drawn cone. */
const EDGES = 48;

const add = (a: Vector, b: Vector, scale = 1): Vector => [
  a[0] + scale * b[0],
  a[1] + scale * b[1],
  a[2] + scale * b[2],
];
const dot = (a: Vector, b: Vector): number => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a: Vector, b: Vector): Vector => [
  a[1] * b[2] - a[2] * b[1],
  a[2] * b[0] - a[0] * b[2],
  a[0] * b[1] - a[1] * b[0],
];
const unit = (a: Vector): Vector => add([0, 0, 0], a, 1 / (Math.hypot(...a) || 1));
const vector = (from: ArrayLike<number>, at = 0): Vector => [from[at] ?? 0, from[at + 1] ?? 0, from[at + 2] ?? 0];

/** Two unit vectors that stand upright on a unit vector and on each other. */
function tangents(n: Vector): [Vector, Vector] {
  const first = unit(cross(n, Math.abs(n[0]) < 0.6 ? [1, 0, 0] : [0, 1, 0]));
  return [first, cross(n, first)];
}

function rowsOf(array: GraspResult["wrenches"], width: number, from = 0): Vector[] {
  const all = numbers(array);
  const rows: Vector[] = [];
  for (let i = from; i + 2 < all.length; i += width) rows.push(vector(all, i));
  return rows;
}

/** The axes along which the vectors reach furthest, in their order. */
function mainAxes(values: readonly Vector[]): [0 | 1 | 2, 0 | 1 | 2] {
  const reach = ([0, 1, 2] as const).map((k) => values.reduce((sum, v) => sum + v[k] ** 2, 0));
  const least = reach.indexOf(Math.min(...reach));
  return least === 0 ? [1, 2] : least === 1 ? [0, 2] : [0, 1];
}

/** The convex hull of points, counter-clockwise (Andrew's monotone chain). */
export function hull(points: readonly Point[]): Point[] {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const chain = (order: readonly Point[]): Point[] => {
    const kept: Point[] = [];
    for (const p of order) {
      for (;;) {
        const [a, b] = [kept.at(-2), kept.at(-1)];
        if (!a || !b || (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]) > 0) break;
        kept.pop();
      }
      kept.push(p);
    }
    return kept.slice(0, -1);
  };
  return [...chain(sorted), ...chain(sorted.reverse())];
}

/** The grasp wrench space's extreme wrenches, in the object's frame: unit normal forces at the
 * contacts with what friction adds (solver/grasp/quality.c). Torques are divided by the object's
 * radius. The cone is drawn around its circle, not within it. */
export function primitives(result: GraspResult): { forces: Vector[]; torques: Vector[] } {
  const forces: Vector[] = [];
  const torques: Vector[] = [];
  const frictions = rowsOf(result.contactFrictions, 3);
  const normals = rowsOf(result.contactNormals, 3);
  const centre = vector(result.objectCentre);
  rowsOf(result.contactPositions, 3).forEach((position, i) => {
    const n = normals[i];
    const friction = frictions[i];
    if (!n || !friction || !(result.objectRadius > 0)) return;
    const arm = add(position, centre, -1);
    const [t1, t2] = tangents(n);
    const put = (force: Vector, turn: Vector) => {
      forces.push(force);
      torques.push(add([0, 0, 0], add(cross(arm, force), turn), 1 / result.objectRadius));
    };
    const mu = friction[0] / Math.cos(Math.PI / EDGES);
    for (let k = 0; k < EDGES; k++) {
      const angle = (2 * Math.PI * k) / EDGES;
      put(add(add(n, t1, mu * Math.cos(angle)), t2, mu * Math.sin(angle)), [0, 0, 0]);
    }
    for (const sign of [-1, 1]) {
      put(n, add([0, 0, 0], n, sign * friction[1]));
      put(n, add([0, 0, 0], t1, sign * friction[2]));
      put(n, add([0, 0, 0], t2, sign * friction[2]));
    }
  });
  return { forces, torques };
}

const place = ([x, y]: Point, scale: number): string =>
  `${(SIZE / 2 + scale * x).toFixed(2)} ${(SIZE / 2 - scale * y).toFixed(2)}`;
const BOX = `0 0 ${String(SIZE)} ${String(SIZE)}`;
const CROSS = `M0 ${String(SIZE / 2)}H${String(SIZE)}M${String(SIZE / 2)} 0V${String(SIZE)}`;

/** The forces or torques of the contacts on the object, seen along the axis that shows most. */
function Wrenches(props: { title: string; unit: string; values: readonly Vector[] }) {
  const { title, values } = props;
  const [right, up] = mainAxes(values);
  const largest = Math.max(1e-12, ...values.map((v) => Math.hypot(v[right], v[up])));
  const scale = (0.42 * SIZE) / largest;
  return (
    <figure class="wrench">
      <svg viewBox={BOX} role="img" aria-label={`${title} of the contacts`}>
        <path class="axis" d={CROSS} />
        {values.map((v, i) => (
          <path key={i} class="arrow" d={`M${place([0, 0], 1)}L${place([v[right], v[up]], scale)}`} />
        ))}
      </svg>
      <figcaption>
        {title}, {AXES[right]} and {AXES[up]}, up to {figure(largest)} {props.unit}
      </figcaption>
    </figure>
  );
}

/** A projection of the wrench space with that of its largest ball about zero. */
function Space(props: { title: string; values: readonly Vector[]; epsilon: number }) {
  const { title, values, epsilon } = props;
  const [right, up] = mainAxes(values);
  const outline = hull(values.map((v): Point => [v[right], v[up]]));
  const scale = (0.45 * SIZE) / Math.max(1e-12, ...outline.map((p) => Math.hypot(...p)));
  return (
    <figure class="wrench space">
      <svg viewBox={BOX} role="img" aria-label={`wrench space, ${title}`}>
        <path class="axis" d={CROSS} />
        <polygon points={outline.map((p) => place(p, scale)).join(" ")} />
        <circle cx={SIZE / 2} cy={SIZE / 2} r={scale * epsilon} />
      </svg>
      <figcaption>
        wrench space, {title}, {AXES[right]} and {AXES[up]} of the object; circle: epsilon {figure(epsilon)}
      </figcaption>
    </figure>
  );
}

/** The way of the tool frame to its pose and the contacts, seen across the approach so that the
 * contacts lie apart. The dashed circle has the object's radius. */
function Approach({ result }: { result: GraspResult }) {
  const way = vector(result.approach);
  const centre = vector(result.objectCentre);
  const tool = add(vector(result.pose?.position ?? []), centre, -1);
  const contacts = rowsOf(result.contactPositions, 3).map((p) => add(p, centre, -1));
  const normals = rowsOf(result.contactNormals, 3);
  const along = unit(Math.hypot(...way) > 0 ? way : add([0, 0, 0], tool, -1));
  const apart = contacts
    .map((p) => add(add(p, contacts[0] ?? p, -1), along, -dot(add(p, contacts[0] ?? p, -1), along)))
    .sort((a, b) => Math.hypot(...b) - Math.hypot(...a))[0];
  const right = apart && Math.hypot(...apart) > 1e-9 ? unit(apart) : tangents(along)[0];
  const flat = (p: Vector): Point => [dot(p, right), -dot(p, along)];
  const start = add(tool, way, -1);
  const reach = [result.objectRadius, ...[start, tool, ...contacts].map((p) => Math.hypot(...flat(p)))];
  const scale = (0.45 * SIZE) / Math.max(1e-9, ...reach);
  const tip = 12 / scale;
  return (
    <figure class="wrench approach">
      <svg viewBox={BOX} role="img" aria-label="approach of the tool frame, and the contacts">
        <circle class="object" cx={SIZE / 2} cy={SIZE / 2} r={scale * result.objectRadius} />
        <path class="way" d={`M${place(flat(start), scale)}L${place(flat(tool), scale)}`} />
        <path
          class="way"
          d={[right, add([0, 0, 0], right, -1)]
            .map((side) => add(add(tool, along, -0.5 * tip), side, 0.4 * tip))
            .map((p) => `M${place(flat(p), scale)}L${place(flat(tool), scale)}`)
            .join("")}
        />
        {contacts.map((p, i) => (
          <path
            key={i}
            class="arrow"
            d={`M${place(flat(add(p, normals[i] ?? [0, 0, 0], -tip)), scale)}L${place(flat(p), scale)}`}
          />
        ))}
      </svg>
      <figcaption>
        approach over {figure(Math.hypot(...way))} m to the tool frame; normals of the contacts; circle: the
        object's radius {figure(result.objectRadius)} m
      </figcaption>
    </figure>
  );
}

export function GraspFigures({ result }: { result: GraspResult }) {
  const wrenches = rowsOf(result.wrenches, 6);
  const { forces, torques } = primitives(result);
  return (
    <div class="wrenches">
      {result.pose && <Approach result={result} />}
      {wrenches.length > 0 && <Wrenches title="forces" unit="N" values={wrenches} />}
      {wrenches.length > 0 && <Wrenches title="torques" unit="N m" values={rowsOf(result.wrenches, 6, 3)} />}
      {forces.length > 0 && <Space title="forces" values={forces} epsilon={result.epsilonQuality} />}
      {forces.length > 0 && (
        <Space title="torques over radius" values={torques} epsilon={result.epsilonQuality} />
      )}
    </div>
  );
}
