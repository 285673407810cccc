// A value that components follow: the few things that the whole page shares.
import { useEffect, useState } from "preact/hooks";

export interface Cell<T> {
  get(): T;
  set(value: T): void;
  /** Calls `listener` at each change; the result ends that. */
  follow(listener: (value: T) => void): () => void;
}

export function cell<T>(first: T): Cell<T> {
  let value = first;
  const listeners = new Set<(value: T) => void>();
  return {
    get: () => value,
    set(next) {
      if (Object.is(value, next)) return;
      value = next;
      for (const listener of [...listeners]) listener(next);
    },
    follow(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** The cell's value; the component is drawn again when it changes. */
export function useCell<T>(from: Cell<T>): T {
  const [value, setValue] = useState<T>(() => from.get());
  useEffect(() => {
    setValue(() => from.get());
    return from.follow((next) => {
      setValue(() => next);
    });
  }, [from]);
  return value;
}
