// Details of one grasp: the reason of its verdict, its figures, and each of its copies.
import {
  type GraspResult,
  type GraspTrial,
  GraspVerdict,
} from "../../generated/tribo/v1/grasp_pb";
import { figure, percent, seconds, word } from "../format";
import { Facts } from "../parts/page";
import { type Column, Table } from "../parts/table";
import { link, setQuery } from "../route";
import { GraspFigures } from "./grasp_figures";

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

export function GraspDetail({ job, result }: { job: string; result: GraspResult }) {
  const reason = result.reason;
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
      <GraspFigures result={result} />
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
