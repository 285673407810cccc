// Whether the daemon answers. One loop asks /readyz and, when nothing comes back, asks again after
// growing waits; everything else on the page waits for `epoch` to change and starts afresh.
import { caller, key, parseScope, simulation, words } from "./api";
import { cell } from "./cell";

const INTERVAL_MS = 2000;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;

export type Health =
  | { state: "connecting" }
  | { state: "ready" | "busy"; text: string }
  | { state: "lost"; since: number; next: number };

export const health = cell<Health>({ state: "connecting" });
/** Changes when the daemon has come back, and when another key is used. */
export const epoch = cell(0);

let timer = 0;
let wait = FIRST_WAIT_MS;

async function learnCaller(): Promise<void> {
  try {
    const info = await simulation.getServerInfo({});
    const { callerScope, callerName: name, fleet } = info;
    caller.set({ scope: parseScope(callerScope), name, refused: "", fleet });
  } catch (error) {
    caller.set({ scope: "none", name: "", refused: words(error), fleet: false });
  }
}

async function look(): Promise<void> {
  let delay = INTERVAL_MS;
  try {
    const answer = await fetch("/readyz", { cache: "no-store", signal: AbortSignal.timeout(8000) });
    const text = (await answer.text()).trim();
    const before = health.get();
    const back = before.state === "lost" || before.state === "connecting";
    if (back) await learnCaller();
    health.set({ state: answer.ok ? "ready" : "busy", text });
    if (back) epoch.set(epoch.get() + 1);
    wait = FIRST_WAIT_MS;
  } catch {
    const before = health.get();
    const since = before.state === "lost" ? before.since : Date.now();
    delay = wait * (0.75 + Math.random() / 2);
    wait = Math.min(2 * wait, LONGEST_WAIT_MS);
    health.set({ state: "lost", since, next: Date.now() + delay });
  }
  timer = window.setTimeout(look, delay);
}

/** Asks at once; also after something else has seen the daemon not answer. */
export function lookNow(): void {
  window.clearTimeout(timer);
  void look();
}

export function watchHealth(): void {
  lookNow();
  key.follow(() => {
    void learnCaller().then(() => {
      epoch.set(epoch.get() + 1);
    });
  });
}
