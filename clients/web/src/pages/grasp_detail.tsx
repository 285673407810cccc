// Details of one grasp: the reason of its verdict, its wrench space, and each of its copies.
import {
  type GraspResult,
  type GraspTrial,
  GraspVerdict,
} from "../../generated/tribo/v1/grasp_pb";
import { figure, percent, seconds, word } from "../format";
import { Facts } from "../parts/page";
import { type Column, Table } from "../parts/table";
import { link, setQuery } from "../route";
import { numbers } from "../wire/arrays";

const SIZE = 150;

const TRIALS: readonly Column<[number, GraspTrial]>[] = [
  { title: "copy", kind: "number", show: ([i]) => String(i), sort: ([i]) => i },
  {
    title: "verdict",
    show: ([, t]) => word(GraspVerdict, t.verdict),
    sort: ([, t]) => t.verdict,
  },
  { title: "slip, mm", kind: "number", show: ([, t]) => figure(1000 * t.slip), sort: ([, t]) => t.slip },
  {
    title: "dropped at",
    kind: "number",
    show: ([, t]) => (t.dropTime >= 0 ? seconds(t.dropTime) : ""),
    sort: ([, t]) => t.dropTime,
  },
  { title: "friction", kind: "number", show: ([, t]) => figure(t.friction), sort: ([, t]) => t.friction },
  { title: "mass, kg", kind: "number", show: ([, t]) => figure(t.mass), sort: ([, t]) => t.mass },
  {
    title: "residual",
    kind: "number",
    show: ([, t]) => figure(t.certificate?.residual ?? NaN),
    sort: ([, t]) => t.certificate?.residual ?? 0,
  },
];

/** A way to look at a copy. */
function replayOf(job: string, index: number): Column<[number, GraspTrial]> {
  return {
    title: "",
    show: ([copy]) => <a href={link("replay", job, String(index), String(copy))}>replay</a>,
  };
}

const AXES = ["x", "y", "z"] as const;

/** The two axes along which the vectors reach furthest, in their order. */
function mainAxes(values: readonly (readonly number[])[]): [number, number] {
  const reach = AXES.map((_, k) => values.reduce((sum, v) => sum + (v[k] ?? 0) ** 2, 0));
  const least = reach.indexOf(Math.min(...reach));
  return least === 0 ? [1, 2] : least === 1 ? [0, 2] : [0, 1];
}

/** The forces or torques of the contacts on the object, seen along the axis that shows most. */
function Wrenches(props: { title: string; unit: string; values: readonly (readonly number[])[] }) {
  const { title, unit, values } = props;
  const [right, up] = mainAxes(values);
  const largest = Math.max(1e-12, ...values.map((v) => Math.hypot(v[right] ?? 0, v[up] ?? 0)));
  const scale = (0.42 * SIZE) / largest;
  const middle = SIZE / 2;
  return (
    <figure class="wrench">
      <svg viewBox={`0 0 ${String(SIZE)} ${String(SIZE)}`} role="img" aria-label={`${title} of the contacts`}>
        <path class="axis" d={`M0 ${String(middle)}H${String(SIZE)}M${String(middle)} 0V${String(SIZE)}`} />
        {values.map((v, i) => (
          <line
            key={i}
            x1={middle}
            y1={middle}
            x2={middle + scale * (v[right] ?? 0)}
            y2={middle - scale * (v[up] ?? 0)}
          />
        ))}
      </svg>
      <figcaption>
        {title}, {AXES[right]} and {AXES[up]}, up to {figure(largest)} {unit}
      </figcaption>
    </figure>
  );
}

function rowsOf(result: GraspResult, from: number): number[][] {
  const all = numbers(result.wrenches);
  const rows: number[][] = [];
  for (let i = from; i + 2 < all.length; i += 6) rows.push([...all.slice(i, i + 3)]);
  return rows;
}

export function GraspDetail({ job, result }: { job: string; result: GraspResult }) {
  const reason = result.reason;
  const wrenches = rowsOf(result, 0);
  return (
    <section class="card" aria-label={`Grasp ${result.name}`} id="grasp">
      <div class="title">
        <h2>{result.name || `grasp ${String(result.index)}`}</h2>
        <button
          type="button"
          onClick={() => {
            setQuery("grasp", "");
          }}
        >
          Close
        </button>
      </div>
      <Facts
        rows={[
          ["first copy", word(GraspVerdict, result.verdict)],
          ["held", `${percent(result.success)} of ${String(result.trials.length)} copies`],
          ["reason", reason?.text ? reason.text : "\u2013"],
          ["where", reason?.handBody ? `${reason.handBody}, ${reason.otherBody}` : "\u2013"],
          ["began to slide", reason && reason.slideTime >= 0 ? seconds(reason.slideTime) : "\u2013"],
          ["epsilon", figure(result.epsilonQuality)],
          ["volume", figure(result.volumeQuality)],
          ["weakest margin", figure(result.weakestMargin)],
          [
            "finger forces",
            result.fingerNames.map((name, i) => `${name} ${figure(result.fingerForces[i] ?? NaN)} N`).join(", ") ||
              "\u2013",
          ],
        ]}
      />
      {wrenches.length > 0 && (
        <div class="wrenches">
          <Wrenches title="forces" unit="N" values={wrenches} />
          <Wrenches title="torques" unit="N m" values={rowsOf(result, 3)} />
        </div>
      )}
      <Table
        caption="Copies of the grasp"
        columns={[...TRIALS, replayOf(job, result.index)]}
        rows={result.trials.map((trial, i): [number, GraspTrial] => [i, trial])}
        rowKey={([i]) => String(i)}
        empty={<p>The job kept no copies.</p>}
      />
    </section>
  );
}
