// One run: its request, certificate, curves and events.
import { type Certificate, Outcome } from "../../generated/tribo/v1/common_pb";
import { type Run, type RunEvent, RunKind, RunStatus, type StepSummary } from "../../generated/tribo/v1/runs_pb";
import { ago, date, figure, number, seconds, short, word } from "../format";
import { Curve, type Line } from "../parts/curve";
import { Failure } from "../parts/failure";
import { Facts, Page } from "../parts/page";
import { Table } from "../parts/table";
import { link } from "../route";
import { runs } from "../wire/api";
import { usePoll } from "../wire/poll";

const INTERVAL_MS = 2000;
export const SUMMARIES = 1000;

export function runFacts(run: Run): [string, string][] {
  const took = Number((run.endTimeUs || BigInt(Date.now()) * 1000n) - run.startTimeUs) / 1e6;
  const compute = Number(run.computeTimeUs) / 1e6;
  return [
    ["kind", word(RunKind, run.kind)],
    ["status", word(RunStatus, run.status) + (run.message ? `: ${run.message}` : "")],
    ["label", run.label || "\u2013"],
    ["owner", run.owner],
    ...(run.node ? [["node", run.node] as [string, string]] : []),
    ["began", `${date(run.startTimeUs)}, ${ago(run.startTimeUs)}`],
    ["took", seconds(took)],
    ["worlds", number(run.worlds)],
    ["world steps", number(run.steps)],
    ["compute", seconds(compute)],
    ["world steps per second", compute > 0 ? number(Number(run.steps) / compute) : "\u2013"],
    ["grasps held", run.grasps > 0n ? `${number(run.graspsHeld)} of ${number(run.grasps)}` : "\u2013"],
    ["device", run.device],
    ["scene", short(run.sceneId)],
    ["build", run.build],
  ];
}

export function certificateFacts(c: Certificate | undefined): [string, string][] {
  if (!c) return [];
  return [
    ["outcome", word(Outcome, c.outcome)],
    ["residual", figure(c.residual)],
    ["penetration", `${figure(c.penetration)} m`],
    ["cone error", `${figure(c.coneError)} N s`],
    ["complementarity error", `${figure(c.complementarityError)} J`],
    ["closure error", figure(c.closureError)],
    ["energy", `${figure(c.energy)} J`],
    ["energy change", `${figure(c.energyChange)} J`],
    ["contacts", number(c.contacts)],
    ["iterations", number(c.iterations)],
    ["solver", c.solver || "\u2013"],
    ["faults", number(c.faults)],
  ];
}

/** A curve of the certificates of a run's stretches. */
export interface Trace {
  label: string;
  logarithmic: boolean;
  read(summary: StepSummary): number;
}

export const TRACES: readonly Trace[] = [
  { label: "residual", logarithmic: true, read: (s) => s.certificate?.residual ?? NaN },
  { label: "penetration, m", logarithmic: true, read: (s) => s.certificate?.penetration ?? NaN },
  {
    label: "iterations per step",
    logarithmic: false,
    read: (s) => (s.certificate?.iterations ?? NaN) / Math.max(1, s.steps),
  },
  { label: "contacts", logarithmic: false, read: (s) => s.certificate?.contacts ?? NaN },
  { label: "energy, J", logarithmic: false, read: (s) => s.certificate?.energy ?? NaN },
];

function Curves({ summaries }: { summaries: readonly StepSummary[] }) {
  if (summaries.length < 2)
    return <p class="empty">Curves begin with the second stretch of steps that the run records.</p>;
  const x = summaries.map((s) => Number(s.step));
  return (
    <div class="curves">
      {TRACES.map(({ label, logarithmic, read }) => {
        const line: Line = { label, colour: "mark", values: summaries.map(read) };
        return (
          <Curve
            key={label}
            label={`${label} over the steps of the run`}
            x={x}
            lines={[line]}
            logarithmic={logarithmic}
            group="run"
            height={190}
          />
        );
      })}
    </div>
  );
}

function Options({ json }: { json: string }) {
  let text = json;
  try {
    text = JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    // options of an older build may be no JSON: shown as they are
  }
  return (
    <details>
      <summary>Options of the request</summary>
      <pre>{text || "none"}</pre>
    </details>
  );
}

function History(props: { summaries: readonly StepSummary[]; events: readonly RunEvent[] }) {
  return (
    <>
      <h2>Curves</h2>
      <Curves summaries={props.summaries} />
      <h2>Events</h2>
      <Table
        caption="Events of the run"
        columns={[
          { title: "when", show: (e) => date(e.timeUs) },
          { title: "event", show: (e) => e.kind },
          { title: "", show: (e) => e.message },
        ]}
        rows={props.events}
        rowKey={(e) => `${String(e.timeUs)}${e.kind}`}
        empty={<p>No event was recorded.</p>}
      />
    </>
  );
}

export function RunPage({ id }: { id: string }) {
  const { data, error } = usePoll(
    (signal) => runs.getRun({ runId: id, maximumSummaries: SUMMARIES }, { signal }),
    INTERVAL_MS,
    [id],
  );
  return (
    <Page
      title={`Run ${short(id)}`}
      beside={
        data?.run?.kind === RunKind.SESSION && !data.run.node && (
          <a href={link("recording", id)}>recording, if it was asked for</a>
        )
      }
    >
      {error !== undefined && <Failure error={error} />}
      {data?.run && (
        <>
          <Facts rows={runFacts(data.run)} />
          <h2>Certificate over the whole run</h2>
          <Facts rows={certificateFacts(data.run.certificate)} />
          {data.run.node ? (
            <p class="soft">The daemon of node {data.run.node} has its curves and events.</p>
          ) : (
            <History summaries={data.summaries} events={data.events} />
          )}
          <Options json={data.run.optionsJson} />
        </>
      )}
    </Page>
  );
}
