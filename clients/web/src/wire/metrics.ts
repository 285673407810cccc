// The daemon's metrics, read from its Prometheus text.

export interface Metrics {
  /** ms, by the page's clock. */
  time: number;
  /** Samples by name; those that differ by labels alone are added up. */
  total: Map<string, number>;
  /** Samples by name and by the value of the label `device`. */
  byDevice: Map<string, Map<string, number>>;
}

const LINE = /^([a-z_]+)(?:\{([^}]*)\})? (\S+)$/;
const DEVICE = /(?:^|,)device="([^"]*)"/;

export function parseMetrics(text: string, time: number): Metrics {
  const total = new Map<string, number>();
  const byDevice = new Map<string, Map<string, number>>();
  for (const line of text.split("\n")) {
    const [, name, labels = "", value] = LINE.exec(line) ?? [];
    if (name === undefined || name.endsWith("_bucket")) continue;
    total.set(name, (total.get(name) ?? 0) + Number(value));
    const device = DEVICE.exec(labels)?.[1];
    if (device === undefined) continue;
    const devices = byDevice.get(name) ?? new Map<string, number>();
    byDevice.set(name, devices.set(device, Number(value)));
  }
  return { time, total, byDevice };
}

export async function fetchMetrics(signal: AbortSignal): Promise<Metrics> {
  const answer = await fetch("/metrics", { cache: "no-store", signal });
  if (!answer.ok) throw new Error(`/metrics: status ${String(answer.status)}`);
  return parseMetrics(await answer.text(), performance.now());
}

/** Per second, between two readings. */
export function rate(now: Metrics, before: Metrics | undefined, name: string): number {
  if (!before || now.time <= before.time) return 0;
  const change = (now.total.get(name) ?? 0) - (before.total.get(name) ?? 0);
  return Math.max(0, (1000 * change) / (now.time - before.time));
}

/** Mean of a histogram's samples between two readings; NaN: there were none. */
export function mean(now: Metrics, before: Metrics | undefined, name: string): number {
  if (!before) return NaN;
  const change = (part: string): number =>
    (now.total.get(name + part) ?? 0) - (before.total.get(name + part) ?? 0);
  return change("_sum") / change("_count");
}
