// The list of runs: searched, by pages, and two of them chosen for comparison.
import { useState } from "preact/hooks";

import { type Run, RunKind, RunStatus } from "../../generated/tribo/v1/runs_pb";
import { ago, figure, number, seconds, short, word } from "../format";
import { Command } from "../parts/command";
import { FleetBox } from "../parts/fleet";
import { Page } from "../parts/page";
import { type Column, Table } from "../parts/table";
import { link, route, setQuery } from "../route";
import { runs } from "../wire/api";
import { useCell } from "../wire/cell";
import { usePages } from "../wire/poll";

const INTERVAL_MS = 2000;
const PAGE_SIZE = 100;

const COLUMNS: readonly Column<Run>[] = [
  { title: "run", kind: "id", show: (r) => <a href={link("runs", r.runId)}>{short(r.runId)}</a> },
  { title: "kind", show: (r) => word(RunKind, r.kind), sort: (r) => r.kind },
  { title: "status", show: (r) => word(RunStatus, r.status), sort: (r) => r.status },
  { title: "label", show: (r) => r.label, sort: (r) => r.label },
  { title: "owner", show: (r) => r.owner, sort: (r) => r.owner },
  { title: "world steps", kind: "number", show: (r) => number(r.steps), sort: (r) => r.steps },
  {
    title: "held",
    kind: "number",
    show: (r) => (r.grasps > 0n ? `${number(r.graspsHeld)} of ${number(r.grasps)}` : ""),
    sort: (r) => r.graspsHeld,
  },
  {
    title: "residual",
    kind: "number",
    show: (r) => (r.certificate ? figure(r.certificate.residual) : ""),
    sort: (r) => r.certificate?.residual ?? 0,
  },
  {
    title: "compute",
    kind: "number",
    show: (r) => seconds(Number(r.computeTimeUs) / 1e6),
    sort: (r) => r.computeTimeUs,
  },
  { title: "began", kind: "number", show: (r) => ago(r.startTimeUs), sort: (r) => r.startTimeUs },
];

const FLEET_COLUMNS: readonly Column<Run>[] = [
  { title: "node", show: (r) => r.node, sort: (r) => r.node },
  ...COLUMNS,
];

function matches(run: Run, text: string): boolean {
  const place = [run.runId, run.label, run.owner, run.sceneId, run.device, run.build, run.message];
  place.push(run.node);
  place.push(word(RunKind, run.kind), word(RunStatus, run.status));
  const all = place.join(" ").toLowerCase();
  return text.toLowerCase().split(/\s+/).every((part) => all.includes(part));
}

function Choice(props: { run: Run; chosen: readonly string[]; choose(id: string): void }) {
  const { run, chosen, choose } = props;
  return (
    <input
      type="checkbox"
      aria-label={`compare run ${short(run.runId)}`}
      checked={chosen.includes(run.runId)}
      onChange={() => {
        choose(run.runId);
      }}
    />
  );
}

function Nothing({ searched }: { searched: boolean }) {
  if (searched) return <p>None of the runs that are loaded has these words.</p>;
  return (
    <>
      <p>There is no run yet. Every session and every grasp job leaves one:</p>
      <Command text="make demo" />
    </>
  );
}

interface TableProps {
  shown?: number;
  kind?: RunKind;
  fleet?: boolean;
  text?: string;
  chosen?: readonly string[];
  choose?(id: string): void;
}

export function RunTable({ shown, kind, fleet, text, chosen, choose }: TableProps) {
  const list = usePages(
    async (pageToken, signal) => {
      const answer = await runs.listRuns(
        { pageSize: shown ?? PAGE_SIZE, pageToken, kind: kind ?? RunKind.UNSPECIFIED, fleet: fleet ?? false },
        { signal },
      );
      return { rows: answer.runs, next: answer.nextPageToken };
    },
    INTERVAL_MS,
    [shown, kind, fleet],
  );
  const rows = text ? list.rows?.filter((run) => matches(run, text)) : list.rows;
  const columns: Column<Run>[] = [...(fleet ? FLEET_COLUMNS : COLUMNS)];
  if (chosen && choose)
    columns.unshift({
      title: "",
      show: (run) => <Choice run={run} chosen={chosen} choose={choose} />,
    });
  return (
    <>
      <Table
        caption="Runs"
        columns={columns}
        rows={rows}
        rowKey={(r) => r.runId}
        error={list.error}
        empty={<Nothing searched={!!text && (list.rows?.length ?? 0) > 0} />}
      />
      {shown === undefined && list.rows && !list.complete && (
        <button type="button" onClick={list.more}>
          More
        </button>
      )}
    </>
  );
}

export function RunsPage() {
  const { query } = useCell(route);
  const text = query.get("search") ?? "";
  const kind = Number(query.get("kind") ?? "0") as RunKind;
  const fleet = query.get("fleet") === "1";
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const [a, b] = chosen;
  const choose = (id: string) => {
    setChosen(chosen.includes(id) ? chosen.filter((x) => x !== id) : [...chosen.slice(-1), id]);
  };
  return (
    <Page title="Runs">
      <form class="filters" role="search" onSubmit={(event) => {
        event.preventDefault();
      }}>
        <label>
          <span class="unseen">Search runs</span>
          <input
            type="search"
            placeholder="search: label, owner, id, device"
            value={text}
            onInput={(event) => {
              setQuery("search", event.currentTarget.value);
            }}
          />
        </label>
        <label>
          <span class="unseen">Kind of run</span>
          <select
            value={String(kind)}
            onChange={(event) => {
              setQuery("kind", event.currentTarget.value === "0" ? "" : event.currentTarget.value);
            }}
          >
            <option value="0">all kinds</option>
            {[RunKind.SESSION, RunKind.GRASPS, RunKind.SOLVE].map((value) => (
              <option key={value} value={String(value)}>
                {word(RunKind, value)}
              </option>
            ))}
          </select>
        </label>
        <FleetBox fleet={fleet} />
        {fleet ? null : a && b ? (
          <a class="button main" href={link("compare", a, b)}>
            Compare the two
          </a>
        ) : (
          <span class="soft">tick two runs to compare them</span>
        )}
      </form>
      <RunTable kind={kind} fleet={fleet} text={text} chosen={chosen} choose={choose} />
    </Page>
  );
}
