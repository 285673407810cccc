// The daemon's load in numbers, and the newest sessions, jobs and runs.
import { useRef } from "preact/hooks";

import { number, seconds } from "../format";
import { Page } from "../parts/page";
import { Past, Tile } from "../parts/tile";
import { link } from "../route";
import { fetchMetrics, mean, type Metrics, rate } from "../wire/metrics";
import { usePoll } from "../wire/poll";
import { JobTable } from "./grasps";
import { RunTable } from "./runs";
import { SessionTable } from "./sessions";

const INTERVAL_MS = 1000;
const SHOWN = 6;

interface Reading {
  name: string;
  read(now: Metrics, before: Metrics | undefined): number;
  show(value: number): string;
}

const plain = (name: string, metric: string): Reading => ({
  name,
  read: (now) => now.total.get(metric) ?? 0,
  show: number,
});
const perSecond = (name: string, metric: string): Reading => ({
  name,
  read: (now, before) => rate(now, before, metric),
  show: number,
});
const meanTime = (name: string, metric: string): Reading => ({
  name,
  read: (now, before) => mean(now, before, metric),
  show: seconds,
});

const READINGS: readonly Reading[] = [
  plain("sessions open", "tribod_sessions"),
  plain("requests queued", "tribod_queue_length"),
  plain("calls in flight", "tribod_calls_in_flight"),
  perSecond("world steps per second", "tribod_world_steps_total"),
  perSecond("grasps per second", "tribod_grasps_total"),
  meanTime("mean wait", "tribod_queue_seconds"),
  meanTime("mean compute", "tribod_compute_seconds"),
  plain("HTTP connections", "tribod_http_connections"),
];

function Tiles() {
  const before = useRef<Metrics>();
  const pasts = useRef(new Map<string, Past>());
  const { data } = usePoll(
    async (signal) => {
      const now = await fetchMetrics(signal);
      const tiles = READINGS.map(({ name, read, show }) => {
        const value = read(now, before.current);
        const past = pasts.current.get(name) ?? new Past();
        pasts.current.set(name, past);
        past.add(value);
        return { name, text: show(value), past };
      });
      before.current = now;
      return tiles;
    },
    INTERVAL_MS,
    [],
  );
  return (
    <ul class="tiles" id="numbers">
      {(data ?? READINGS.map(({ name }) => ({ name, text: "\u2013", past: new Past() }))).map((tile) => (
        <Tile key={tile.name} {...tile} />
      ))}
    </ul>
  );
}

export function Overview() {
  return (
    <Page title="Overview">
      <Tiles />
      <h2>
        Sessions <a href={link("sessions")}>all</a>
      </h2>
      <SessionTable shown={SHOWN} />
      <h2>
        Grasp jobs <a href={link("grasps")}>all</a>
      </h2>
      <JobTable shown={SHOWN} />
      <h2>
        Recent runs <a href={link("runs")}>all</a>
      </h2>
      <RunTable shown={SHOWN} />
    </Page>
  );
}
