// Numbers and times as text.

const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const NONE = "\u2013";

export function number(value: number | bigint): string {
  const x = Number(value);
  if (!Number.isFinite(x)) return NONE;
  return Math.abs(x) >= 1e5 ? compact.format(x) : plain.format(x);
}

/** A measured value with three significant digits. */
export function figure(x: number): string {
  if (!Number.isFinite(x)) return NONE;
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size < 1e-3 || size >= 1e6) return x.toExponential(2).replace("e+", "e");
  return String(Number(x.toPrecision(3)));
}

export function percent(x: number): string {
  return Number.isFinite(x) ? `${plain.format(100 * x)} %` : NONE;
}

export function seconds(x: number): string {
  if (!Number.isFinite(x)) return NONE;
  if (x !== 0 && Math.abs(x) < 1e-3) return `${plain.format(x * 1e6)} \u00b5s`;
  return Math.abs(x) < 1 ? `${plain.format(x * 1e3)} ms` : duration(x);
}

export function duration(x: number): string {
  if (x < 60) return `${plain.format(x)} s`;
  if (x < 3600) return `${String(Math.floor(x / 60))} min ${String(Math.floor(x % 60))} s`;
  if (x < 86400)
    return `${String(Math.floor(x / 3600))} h ${String(Math.floor((x % 3600) / 60))} min`;
  return `${String(Math.floor(x / 86400))} d ${String(Math.floor((x % 86400) / 3600))} h`;
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

export function bytes(value: number | bigint): string {
  let x = Number(value);
  let unit = 0;
  while (x >= 1024 && unit < UNITS.length - 1) {
    x /= 1024;
    unit++;
  }
  return `${plain.format(x)} ${UNITS[unit] ?? ""}`;
}

/** A name of an enum as words: (RunStatus, 2) is "done". */
export function word(names: Record<number, string>, value: number): string {
  const name = names[value];
  return name === undefined || name === "UNSPECIFIED" ? "" : name.replaceAll("_", " ").toLowerCase();
}

/** How long ago, of µs since 1970. */
export function ago(us: bigint): string {
  if (us <= 0n) return "";
  return `${duration(Math.max(0, Math.round(Date.now() / 1e3 - Number(us) / 1e6)))} ago`;
}

/** How long until, of µs since 1970. */
export function until(us: bigint): string {
  return duration(Math.max(0, Math.round(Number(us) / 1e6 - Date.now() / 1e3)));
}

export function date(us: bigint): string {
  return us > 0n ? new Date(Number(us) / 1e3).toLocaleString("en-GB") : NONE;
}

/** The first digits of an id. */
export function short(id: string): string {
  return id.slice(0, 12);
}
