// Follows a session by Watch. The server keeps one state for each reader, the latest, so a page
// that draws slowly misses states and costs the session nothing. A stream that breaks is opened
// again after growing waits; one that ends with an event of the session is not.
import { SessionEvent, type WatchResponse } from "../../generated/tribo/v1/simulation_pb";
import { word } from "../format";
import { isUnreachable, simulation, words } from "../wire/api";
import { lookNow } from "../wire/health";
import { type Frame, frameOf } from "./frame";

const FIRST_WAIT_MS = 300;
const LONGEST_WAIT_MS = 5000;

/** Events after which a session has no more states, or none here. */
const LAST: readonly SessionEvent[] = [
  SessionEvent.DELETED,
  SessionEvent.EXPIRED,
  SessionEvent.EVICTED,
];

export interface Wish {
  session: string;
  /** Indices of the worlds; empty: all. */
  worlds: readonly number[];
  /** Whether every evaluation of the forces is wanted: the session steps by the volume law. */
  evaluations: boolean;
  /** Frames per second, at most. */
  rate: number;
}

export interface Listener {
  frame(frame: Frame, skipped: number): void;
  /** The connection's state, in words; "" while frames come. */
  state(text: string, ended: boolean): void;
}

async function readStream(wish: Wish, listener: Listener, signal: AbortSignal): Promise<boolean> {
  const stream = simulation.watch(
    {
      sessionId: wish.session,
      worlds: [...wish.worlds],
      minimumInterval: 1 / wish.rate,
      certificates: true,
      evaluations: wish.evaluations,
      want: { poses: true, contacts: true, forces: true },
    },
    { signal },
  );
  let pieces: WatchResponse[] = [];
  for await (const response of stream) {
    pieces.push(response);
    if (response.more) continue;
    const frame = frameOf(pieces);
    pieces = [];
    if (frame) {
      listener.state("", false);
      listener.frame(frame, Number(response.skipped));
    }
    if (LAST.includes(response.event)) {
      listener.state(`The session is ${word(SessionEvent, response.event)}.`, true);
      return true;
    }
    if (response.event !== SessionEvent.UNSPECIFIED)
      listener.state(response.message || word(SessionEvent, response.event), false);
  }
  return false;
}

/** Follows until the result is called. */
export function follow(wish: Wish, listener: Listener): () => void {
  const control = new AbortController();
  const { signal } = control;
  const loop = async (): Promise<void> => {
    let wait = FIRST_WAIT_MS;
    while (!signal.aborted) {
      const began = Date.now();
      try {
        if (await readStream(wish, listener, signal)) return;
      } catch (error) {
        if (signal.aborted) return;
        if (!isUnreachable(error)) {
          listener.state(words(error), true);
          return;
        }
        listener.state("The stream is broken; the page opens it again.", false);
        lookNow();
      }
      if (Date.now() - began > LONGEST_WAIT_MS) wait = FIRST_WAIT_MS;
      await new Promise((done) => setTimeout(done, wait));
      wait = Math.min(2 * wait, LONGEST_WAIT_MS);
    }
  };
  void loop();
  return () => {
    control.abort();
  };
}
