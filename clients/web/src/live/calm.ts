// A value for text and curves at a readable rate: a reader cannot follow sixty changes a second,
// and each change makes the browser repaint a part of the page.
import { useEffect, useRef, useState } from "preact/hooks";

/** The value as it was at most `ms` ago; 0: as it is. The last of its values is always reached. */
export function useCalm<T>(value: T, ms: number): T {
  const [calm, setCalm] = useState<{ value: T }>({ value });
  const taken = useRef(0);
  useEffect(() => {
    const take = () => {
      taken.current = performance.now();
      setCalm({ value });
    };
    const wait = taken.current + ms - performance.now();
    if (wait <= 0) {
      take();
      return;
    }
    const timer = window.setTimeout(take, wait);
    return () => {
      window.clearTimeout(timer);
    };
  }, [value, ms]);
  return ms === 0 ? value : calm.value;
}
