// The daemon itself: version, devices with their load, limits, solvers.
import { useRef } from "preact/hooks";

import { type DeviceInfo, type GetServerInfoResponse } from "../../generated/tribo/v1/simulation_pb";
import { bytes, date, duration, number, percent, seconds } from "../format";
import { Failure } from "../parts/failure";
import { Facts, Page } from "../parts/page";
import { type Column, Table } from "../parts/table";
import { allows, caller, simulation } from "../wire/api";
import { useCell } from "../wire/cell";
import { fetchMetrics, type Metrics } from "../wire/metrics";
import { usePoll } from "../wire/poll";
import { Log } from "./log";

const INTERVAL_MS = 2000;

interface Load {
  device: DeviceInfo;
  sessions: number;
  worlds: number;
  jobs: number;
  /** Share of the time since the reading before in which the device computed; NaN: not known yet. */
  busy: number;
  wait: number;
}

const DEVICES: readonly Column<Load>[] = [
  { title: "name", show: (l) => l.device.name },
  { title: "what", show: (l) => l.device.description },
  { title: "busy", kind: "number", show: (l) => percent(l.busy) },
  { title: "queued", kind: "number", show: (l) => number(l.device.queued) },
  { title: "sessions", kind: "number", show: (l) => number(l.sessions) },
  { title: "worlds", kind: "number", show: (l) => number(l.worlds) },
  { title: "requests done", kind: "number", show: (l) => number(l.jobs) },
  { title: "mean wait", kind: "number", show: (l) => seconds(l.wait) },
  {
    title: "memory",
    kind: "number",
    show: (l) => (l.device.memoryBytes > 0n ? bytes(l.device.memoryBytes) : "of the machine"),
  },
];

function loads(info: GetServerInfoResponse, now: Metrics, before: Metrics | undefined): Load[] {
  const read = (from: Metrics | undefined, name: string, device: string) =>
    from?.byDevice.get(name)?.get(device) ?? NaN;
  return info.devices.map((device) => {
    const get = (name: string) => read(now, name, device.name);
    const busyBefore = read(before, "tribod_device_busy_seconds_total", device.name);
    const elapsed = before ? (now.time - before.time) / 1000 : NaN;
    const jobs = get("tribod_device_jobs_total");
    return {
      device,
      sessions: get("tribod_device_sessions"),
      worlds: get("tribod_device_worlds"),
      jobs,
      busy: Math.min(1, (get("tribod_device_busy_seconds_total") - busyBefore) / elapsed),
      wait: get("tribod_device_wait_seconds_total") / jobs,
    };
  });
}

function limitRows(info: GetServerInfoResponse): [string, string][] {
  const l = info.limits;
  if (!l) return [];
  return [
    ["request", bytes(l.messageBytes)],
    ["asset", bytes(l.assetBytes)],
    ["sessions", number(l.sessions)],
    ["sessions per client", number(l.sessionsPerClient)],
    ["worlds per session", number(l.worldsPerSession)],
    ["queue", number(l.queueLength)],
    ["longest lease", duration(l.sessionTtlSeconds)],
  ];
}

export function Server() {
  const before = useRef<Metrics>();
  const who = useCell(caller);
  const { data, error } = usePoll(
    async (signal) => {
      const [info, metrics] = await Promise.all([
        simulation.getServerInfo({}, { signal }),
        fetchMetrics(signal),
      ]);
      const devices = loads(info, metrics, before.current);
      before.current = metrics;
      return { info, metrics, devices };
    },
    INTERVAL_MS,
    [],
  );
  const total = (name: string) => data?.metrics.total.get(name) ?? NaN;
  return (
    <Page title="Server">
      {error !== undefined && <Failure error={error} />}
      {data && !data.info.version && (
        <p class="empty">This server tells its devices and limits only to callers with a key.</p>
      )}
      {data?.info.version && (
        <>
          <Facts
            rows={[
              ["version", data.info.version],
              ["build", data.info.build],
              ["since", date(data.info.startTimeUs)],
              ["up", duration(Number(data.info.timeUs - data.info.startTimeUs) / 1e6)],
              ["sessions", number(data.info.sessions)],
              ["memory", bytes(total("process_resident_memory_bytes"))],
              ["memory booked", bytes(total("tribod_memory_booked_bytes"))],
              ["store", bytes(total("tribod_db_bytes"))],
              ["you are", `${who.name || "unknown"}, scope ${who.scope}`],
            ]}
          />
          <h2>Devices</h2>
          <Table
            caption="Devices"
            columns={DEVICES}
            rows={data.devices}
            rowKey={(l) => l.device.name}
            empty={<p>No device.</p>}
          />
          <h2>Limits</h2>
          <Facts rows={limitRows(data.info)} />
          {allows(who.scope, "admin") && <Log />}
          <h2>Solvers</h2>
          <Facts rows={data.info.solvers.map((solver) => [solver.name, solver.summary] as const)} />
        </>
      )}
    </Page>
  );
}
