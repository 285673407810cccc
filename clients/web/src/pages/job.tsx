// One grasp job: a row for each grasp, sorted and filtered, while the job goes on.
import { useState } from "preact/hooks";

import { type GraspResult, GraspJobStatus, GraspVerdict } from "../../generated/tribo/v1/grasp_pb";
import { date, figure, number, percent, seconds, short, word } from "../format";
import { Failure } from "../parts/failure";
import { Facts, Page } from "../parts/page";
import { type Column, Table } from "../parts/table";
import { link, route, setQuery } from "../route";
import { grasp } from "../wire/api";
import { useCell } from "../wire/cell";
import { usePoll } from "../wire/poll";
import { CancelButton, Progress } from "./grasps";
import { GraspDetail } from "./grasp_detail";

const INTERVAL_MS = 1000;
const PAGE = 1000;
const VERDICTS = [
  GraspVerdict.HELD,
  GraspVerdict.SLIPPED,
  GraspVerdict.DROPPED,
  GraspVerdict.COLLIDED,
  GraspVerdict.DIVERGED,
  GraspVerdict.UNCERTIFIED,
] as const;

function interval(result: GraspResult): string {
  return `${percent(result.successLower)} to ${percent(result.successUpper)}`;
}

function verdictText(result: GraspResult): string {
  const text = word(GraspVerdict, result.verdict);
  return result.dropTime >= 0 ? `${text} at ${seconds(result.dropTime)}` : text;
}

function forces(result: GraspResult): string {
  return result.fingerForces.map((force) => figure(force)).join("  ");
}

function columns(id: string): Column<GraspResult>[] {
  return [
    {
      title: "grasp",
      show: (g) => (
        <a href={`#/grasps/${id}?grasp=${String(g.index)}`}>{g.name || `grasp ${String(g.index)}`}</a>
      ),
      sort: (g) => g.index,
    },
    {
      title: "first copy",
      show: (g) => (
        <span class={g.verdict === GraspVerdict.HELD ? "good" : "bad"}>{verdictText(g)}</span>
      ),
      sort: (g) => g.verdict,
    },
    { title: "held", kind: "number", show: (g) => percent(g.success), sort: (g) => g.success },
    { title: "interval", kind: "number", show: interval, sort: (g) => g.successLower },
    {
      title: "slip, mm",
      kind: "number",
      show: (g) => figure(1000 * g.slip),
      sort: (g) => g.slip,
    },
    {
      title: "epsilon",
      kind: "number",
      show: (g) => figure(g.epsilonQuality),
      sort: (g) => g.epsilonQuality,
    },
    {
      title: "margin",
      kind: "number",
      show: (g) => figure(g.weakestMargin),
      sort: (g) => g.weakestMargin,
    },
    { title: "forces, N", kind: "number", show: forces },
    {
      title: "",
      show: (g) => <a href={link("replay", id, String(g.index), "0")}>replay</a>,
    },
    {
      title: "residual",
      kind: "number",
      show: (g) => figure(g.certificate?.residual ?? NaN),
      sort: (g) => g.certificate?.residual ?? 0,
    },
  ];
}

/** The results that are there; only pages that are not complete yet are asked for again. */
async function allResults(
  id: string,
  known: readonly GraspResult[],
  signal: AbortSignal,
): Promise<{ job: NonNullable<Awaited<ReturnType<typeof grasp.getGraspJob>>["job"]>; results: GraspResult[] }> {
  const results = [...known];
  for (;;) {
    const answer = await grasp.getGraspJob(
      { id, firstResult: results.length, maximumResults: PAGE },
      { signal },
    );
    if (!answer.job) throw new Error("the answer names no job");
    results.push(...answer.results);
    if (answer.results.length === 0 || results.length >= answer.job.graspsDone)
      return { job: answer.job, results };
  }
}

function Filters({ text, verdict }: { text: string; verdict: string }) {
  return (
    <form class="filters" role="search" onSubmit={(event) => {
      event.preventDefault();
    }}>
      <label>
        <span class="unseen">Search grasps by name</span>
        <input
          type="search"
          placeholder="search by name"
          value={text}
          onInput={(event) => {
            setQuery("search", event.currentTarget.value);
          }}
        />
      </label>
      <label>
        <span class="unseen">Verdict</span>
        <select
          value={verdict}
          onChange={(event) => {
            setQuery("verdict", event.currentTarget.value);
          }}
        >
          <option value="">all verdicts</option>
          {VERDICTS.map((value) => (
            <option key={value} value={String(value)}>
              {word(GraspVerdict, value)}
            </option>
          ))}
        </select>
      </label>
    </form>
  );
}

export function Job({ id }: { id: string }) {
  const { query } = useCell(route);
  const [failure, setFailure] = useState<unknown>();
  const [known] = useState<{ results: GraspResult[] }>({ results: [] });
  const { data, error } = usePoll(
    async (signal) => {
      const answer = await allResults(id, known.results, signal);
      known.results = answer.results;
      return answer;
    },
    INTERVAL_MS,
    [id],
  );
  const text = query.get("search") ?? "";
  const verdict = query.get("verdict") ?? "";
  const chosen = query.get("grasp");
  const job = data?.job;
  const rows = data?.results.filter(
    (g) =>
      g.name.toLowerCase().includes(text.toLowerCase()) &&
      (verdict === "" || g.verdict === Number(verdict)),
  );
  const detail = chosen === null ? undefined : data?.results.find((g) => g.index === Number(chosen));
  return (
    <Page title={`Grasps ${job?.label || short(id)}`}>
      {error !== undefined && <Failure error={error} />}
      {failure !== undefined && <Failure error={failure} />}
      {job && (
        <>
          <Facts
            rows={[
              ["job", short(job.id)],
              ["status", word(GraspJobStatus, job.status) + (job.message ? `: ${job.message}` : "")],
              ["done", <Progress key="done" job={job} />],
              ["held by the first copy", number(job.graspsHeld)],
              ["uncertified trials", number(job.trialsUncertified)],
              ["owner", job.owner],
              ["began", date(job.createTimeUs)],
              ["", <CancelButton key="cancel" job={job} failed={setFailure} />],
            ]}
          />
          {detail && <GraspDetail job={id} result={detail} />}
          <Filters text={text} verdict={verdict} />
          <Table
            caption="Grasps of the job"
            columns={columns(id)}
            rows={rows}
            rowKey={(g) => String(g.index)}
            empty={<p>{data.results.length > 0 ? "No grasp fits." : "No grasp is done yet."}</p>}
          />
        </>
      )}
    </Page>
  );
}
