// Benchmarks: the history of each name, metric and testbed, with the changes beyond noise marked
// and the quality of the physics beside the speed.
import { useMemo } from "preact/hooks";

import { type Benchmark } from "../../generated/tribo/v1/runs_pb";
import { date, figure, percent } from "../format";
import { Command } from "../parts/command";
import { Curve, type Line } from "../parts/curve";
import { Failure } from "../parts/failure";
import { FleetBox } from "../parts/fleet";
import { Page } from "../parts/page";
import { route, setQuery } from "../route";
import { runs } from "../wire/api";
import { useCell } from "../wire/cell";
import { usePages } from "../wire/poll";
import { type Change, findChanges, LEAST_CHANGE } from "./changes";

const INTERVAL_MS = 10_000;
const PAGE_SIZE = 1000;

/** Records of one name, metric and testbed, oldest first. */
interface Series {
  title: string;
  testbed: string;
  unit: string;
  records: Benchmark[];
  changes: Change[];
}

function collect(all: readonly Benchmark[]): Series[] {
  const groups = new Map<string, Benchmark[]>();
  for (const record of all) {
    const id = [record.name, record.metric, record.testbed].join("\n");
    const group = groups.get(id);
    if (group) group.push(record);
    else groups.set(id, [record]);
  }
  return [...groups.values()].map((group) => {
    const records = group.reverse();
    const [first] = records;
    return {
      title: `${first?.name ?? ""} \u00b7 ${first?.metric ?? ""}`,
      testbed: first?.testbed ?? "",
      unit: first?.unit ?? "",
      records,
      changes: findChanges(records.map((r) => r.median)),
    };
  });
}

/** Whether the metric is better when it grows. */
function isRate(series: Series): boolean {
  return /per_second|rate|\/s$/.test(`${series.records[0]?.metric ?? ""} ${series.unit}`);
}

function Mark({ series, change }: { series: Series; change: Change }) {
  const better = change.size > 0 === isRate(series);
  const record = series.records[change.index];
  return (
    <li class={better ? "change good" : "change bad"}>
      {change.size > 0 ? "\u25b2" : "\u25bc"} {percent(Math.abs(change.size))}{" "}
      {better ? "better" : "worse"} since {record?.build.split(" ")[0]},{" "}
      {date(record?.timeUs ?? 0n)}
    </li>
  );
}

function History({ series }: { series: Series }) {
  const { records, changes } = series;
  const x = records.map((_, i) => i);
  const mark = new Set(changes.map((change) => change.index));
  const commit = (i: number) => `${records[i]?.build ?? ""}, ${date(records[i]?.timeUs ?? 0n)}`;
  const lines: Line[] = [
    { label: "upper quartile", colour: "soft", hidden: true, values: records.map((r) => r.upper) },
    { label: "lower quartile", colour: "soft", hidden: true, values: records.map((r) => r.lower) },
    { label: "median", colour: "mark", points: true, values: records.map((r) => r.median), note: commit },
    {
      label: "changed",
      colour: "bad",
      points: true,
      values: records.map((r, i) => (mark.has(i) ? r.median : null)),
    },
  ];
  const place = (at: number) =>
    Number.isInteger(at) ? (records[at]?.build.split(" ")[0] ?? "").slice(0, 7) : "";
  return (
    <Curve
      label={`History of ${series.title} on ${series.testbed}`}
      x={x}
      lines={lines}
      band={[0, 1]}
      place={place}
      height={220}
    />
  );
}

/** The quality of the physics, where the records have any. */
function Quality({ series }: { series: Series }) {
  const x = series.records.map((_, i) => i);
  const kinds = [
    ["residual", (r: Benchmark) => r.residual],
    ["penetration, m", (r: Benchmark) => r.penetration],
    ["iterations", (r: Benchmark) => r.iterations],
    ["energy drift, J", (r: Benchmark) => Math.abs(r.energyDrift)],
  ] as const;
  const known = kinds.filter(([, read]) => series.records.some((r) => read(r) > 0));
  if (known.length === 0) return null;
  return (
    <div class="curves">
      {known.map(([label, read]) => (
        <Curve
          key={label}
          label={`${label} of ${series.title}`}
          x={x}
          lines={[{ label, colour: "good", values: series.records.map(read), points: true }]}
          logarithmic={label !== "iterations"}
          height={130}
        />
      ))}
    </div>
  );
}

function Card({ series }: { series: Series }) {
  const last = series.records.at(-1);
  return (
    <section class="card" data-benchmark={series.title}>
      <h2>
        {series.title} <span>{series.testbed}</span>
      </h2>
      <p class="soft">
        now {figure(last?.median ?? NaN)} {series.unit}, quartiles {figure(last?.lower ?? NaN)} to{" "}
        {figure(last?.upper ?? NaN)}, {series.records.length} records
      </p>
      {series.changes.length > 0 && (
        <ul class="changes">
          {series.changes.map((change) => (
            <Mark key={change.index} series={series} change={change} />
          ))}
        </ul>
      )}
      <History series={series} />
      <Quality series={series} />
    </section>
  );
}

export function Benchmarks() {
  const { query } = useCell(route);
  const text = (query.get("search") ?? "").toLowerCase();
  const changed = query.get("changed") === "1";
  const fleet = query.get("fleet") === "1";
  const list = usePages(
    async (pageToken, signal) => {
      const answer = await runs.listBenchmarks({ pageSize: PAGE_SIZE, pageToken, fleet }, { signal });
      return { rows: answer.benchmarks, next: answer.nextPageToken };
    },
    INTERVAL_MS,
    [fleet],
  );
  const all = useMemo(() => collect(list.rows ?? []), [list.rows]);
  const shown = all.filter(
    (series) =>
      `${series.title} ${series.testbed}`.toLowerCase().includes(text) &&
      (!changed || series.changes.length > 0),
  );
  return (
    <Page title="Benchmarks">
      <form class="filters" role="search" onSubmit={(event) => {
        event.preventDefault();
      }}>
        <label>
          <span class="unseen">Search benchmarks</span>
          <input
            type="search"
            placeholder="search: name, metric, testbed"
            value={text}
            onInput={(event) => {
              setQuery("search", event.currentTarget.value);
            }}
          />
        </label>
        <FleetBox fleet={fleet} />
        <label>
          <input
            type="checkbox"
            checked={changed}
            onChange={() => {
              setQuery("changed", changed ? "" : "1");
            }}
          />{" "}
          only those that changed
        </label>
        <span class="soft">
          marked: more than {percent(LEAST_CHANGE)} and more than three times the spread before
        </span>
      </form>
      {list.error !== undefined && <Failure error={list.error} />}
      {list.rows?.length === 0 && (
        <div class="empty">
          <p>No benchmark has been recorded. This records one:</p>
          <Command text="tribo bench poulsen --table quality --server 127.0.0.1:7410" />
        </div>
      )}
      {all.length > 0 && shown.length === 0 && <p class="empty">None of them fits.</p>}
      {shown.map((series) => (
        <Card key={series.title + series.testbed} series={series} />
      ))}
      {list.rows && !list.complete && (
        <button type="button" onClick={list.more}>
          Older records
        </button>
      )}
    </Page>
  );
}
