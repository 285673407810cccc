// Two runs side by side: their differences, numbers, and curves under one cursor.
import { type GetRunResponse } from "../../generated/tribo/v1/runs_pb";
import { figure, short } from "../format";
import { Curve, type Line } from "../parts/curve";
import { Failure } from "../parts/failure";
import { Page } from "../parts/page";
import { Table } from "../parts/table";
import { link } from "../route";
import { runs, simulation } from "../wire/api";
import { usePoll } from "../wire/poll";
import { certificateFacts, runFacts, SUMMARIES, TRACES } from "./run";
import { differences } from "./scene_differences";

/** Rows of a table of differences; more say little, and a page of them is slow. */
const MOST_DIFFERENCES = 500;

function yesNo(same: boolean): string {
  return same ? "the same" : "different";
}

/** Curves of both runs over the steps that either has. */
function Curves({ a, b }: { a: GetRunResponse; b: GetRunResponse }) {
  const x = [...new Set([...a.summaries, ...b.summaries].map((s) => Number(s.step)))];
  x.sort((p, q) => p - q);
  if (x.length < 2) return <p class="empty">Neither run has recorded two stretches of steps.</p>;
  return (
    <div class="curves">
      {TRACES.map(({ label, logarithmic, read }) => {
        const line = (name: string, colour: string, run: GetRunResponse): Line => {
          const values = new Map(run.summaries.map((s) => [Number(s.step), read(s)]));
          return { label: name, colour, values: x.map((step) => values.get(step) ?? null) };
        };
        return (
          <figure key={label}>
            <figcaption>{label}</figcaption>
            <Curve
              label={`${label} of both runs`}
              x={x}
              lines={[line("a", "mark", a), line("b", "warn", b)]}
              logarithmic={logarithmic}
              group="compare"
              height={190}
            />
          </figure>
        );
      })}
    </div>
  );
}

/** Where the scenes of both runs differ. */
function SceneDifferences({ a, b }: { a: string; b: string }) {
  const { data, error } = usePoll(
    async (signal) => {
      const [first, second] = await Promise.all(
        [a, b].map((sceneId) => simulation.getScene({ sceneId }, { signal })),
      );
      return first && second ? differences(first, second) : [];
    },
    0,
    [a, b],
  );
  if (error !== undefined) return <Failure error={error} />;
  if (!data) return <p class="soft">comparing the scenes</p>;
  return (
    <>
      <Table
        caption="Differences of the scenes"
        columns={[
          { title: "place", show: (d) => d.place },
          { title: "a", show: (d) => d.a },
          { title: "b", show: (d) => d.b },
        ]}
        rows={data.slice(0, MOST_DIFFERENCES)}
        rowKey={(d) => d.place}
        empty={<p>Their files differ, but the compiled scenes are equal.</p>}
      />
      {data.length > MOST_DIFFERENCES && (
        <p class="soft">{data.length - MOST_DIFFERENCES} further differences are not shown.</p>
      )}
    </>
  );
}

export function Compare({ a, b }: { a: string; b: string }) {
  const { data, error } = usePoll(
    async (signal) => {
      const ask = (runId: string) => runs.getRun({ runId, maximumSummaries: SUMMARIES }, { signal });
      const [both, first, second] = await Promise.all([
        runs.compareRuns({ runIdA: a, runIdB: b }, { signal }),
        ask(a),
        ask(b),
      ]);
      return { both, first, second };
    },
    0,
    [a, b],
  );
  const left = data?.first.run;
  const right = data?.second.run;
  return (
    <Page title="Two runs">
      {error !== undefined && <Failure error={error} />}
      {data && left && right && (
        <>
          <p>
            Scene {yesNo(data.both.sameScene)}, options {yesNo(data.both.sameOptions)}, build{" "}
            {yesNo(data.both.sameBuild)}. Speed b over a:{" "}
            <b>{figure(data.both.stepsPerSecondRatio || NaN)}</b>; residual b over a:{" "}
            <b>{figure(data.both.residualRatio || NaN)}</b>.
          </p>
          <div class="scroll" role="region" aria-label="Numbers of both runs" tabIndex={0}>
            <table>
              <thead>
                <tr>
                  <td />
                  <th scope="col">
                    a: <a href={link("runs", a)}>{short(a)}</a>
                  </th>
                  <th scope="col">
                    b: <a href={link("runs", b)}>{short(b)}</a>
                  </th>
                </tr>
              </thead>
              <tbody>
                {rows(left, right).map(([name, x, y]) => (
                  <tr key={name} class={x === y ? "" : "differs"}>
                    <th scope="row">{name}</th>
                    <td>{x}</td>
                    <td>{y}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          {!data.both.sameScene && left.sceneId && right.sceneId && (
            <>
              <h2>Scenes</h2>
              <SceneDifferences a={left.sceneId} b={right.sceneId} />
            </>
          )}
          <h2>Curves</h2>
          <Curves a={data.first} b={data.second} />
        </>
      )}
    </Page>
  );
}

type RunOf = NonNullable<GetRunResponse["run"]>;

function rows(a: RunOf, b: RunOf): [string, string, string][] {
  const facts = (run: RunOf) => [...runFacts(run), ...certificateFacts(run.certificate)];
  const second = new Map(facts(b));
  return facts(a).map(([name, value]) => [name, value, second.get(name) ?? "\u2013"]);
}
