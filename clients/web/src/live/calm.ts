// A value for text and curves: what changes sixty times a second is read by nobody, and each change
// has the browser paint a part of the page anew.
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
