// Asks the daemon again and again while a component is shown and the page is visible.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

import { isUnreachable } from "./api";
import { useCell } from "./cell";
import { epoch, health, lookNow } from "./health";

export interface Polled<T> {
  data: T | undefined;
  error: unknown;
  /** Asks at once. */
  again(): void;
}

/** The latest answer of `ask`, asked again `interval` ms after each answer; 0: once. `inputs`
 * restart it, and the last answer is dropped. */
export function usePoll<T>(
  ask: (signal: AbortSignal) => Promise<T>,
  interval: number,
  inputs: readonly unknown[],
): Polled<T> {
  const [data, setData] = useState<T>();
  const [error, setError] = useState<unknown>();
  const [asked, setAsked] = useState(0);
  const latest = useRef(ask);
  latest.current = ask;
  const now = useCell(epoch);

  useEffect(() => {
    setData(undefined);
    setError(undefined);
  }, inputs);

  useEffect(() => {
    const control = new AbortController();
    let timer = 0;
    const round = async (): Promise<void> => {
      if (!document.hidden && health.get().state !== "lost") {
        try {
          const answer = await latest.current(control.signal);
          if (control.signal.aborted) return;
          setData(() => answer);
          setError(undefined);
        } catch (failure) {
          if (control.signal.aborted) return;
          if (isUnreachable(failure)) lookNow();
          else setError(failure);
        }
      }
      if (interval > 0) timer = window.setTimeout(() => void round(), interval);
    };
    if (now > 0) void round();
    return () => {
      control.abort();
      window.clearTimeout(timer);
    };
  }, [now, asked, interval, ...inputs]);

  const again = useCallback(() => {
    setAsked((count) => count + 1);
  }, []);
  return { data, error, again };
}

/** Pages of a list, of which more are asked for by `more`. */
export interface Paged<T> {
  rows: readonly T[] | undefined;
  error: unknown;
  complete: boolean;
  more(): void;
}

/** Follows the first page and keeps the pages behind it that were asked for. */
export function usePages<T>(
  ask: (token: string, signal: AbortSignal) => Promise<{ rows: T[]; next: string }>,
  interval: number,
  inputs: readonly unknown[],
): Paged<T> {
  const [count, setCount] = useState(1);
  useEffect(() => {
    setCount(1);
  }, inputs);
  const polled = usePoll(
    async (signal) => {
      const rows: T[] = [];
      let next = "";
      for (let page = 0; page < count; page++) {
        const answer = await ask(next, signal);
        rows.push(...answer.rows);
        next = answer.next;
        if (!next) break;
      }
      return { rows, next };
    },
    interval,
    inputs,
  );
  return {
    rows: polled.data?.rows,
    error: polled.error,
    complete: polled.data?.next === "",
    more() {
      setCount((pages) => pages + 1);
      polled.again();
    },
  };
}
