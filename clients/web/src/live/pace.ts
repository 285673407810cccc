// The view's frame rate, and the age of the drawn state, by the page's clock.

const KEPT = 240;
/** ms; a drawing that takes this long, again and again, has the view do without its extras. */
const SLOW_MS = 14;
const SLOW_DRAWINGS = 12;

export interface Figures {
  /** Drawings per second. */
  rate: number;
  /** ms from the server's sending to the next frame of the screen, median; NaN: not known. */
  latency: number;
  /** ms, of one drawing, median. */
  drawing: number;
}

function middle(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? NaN;
}

export class Pace {
  private readonly ends: number[] = [];
  private readonly ages: number[] = [];
  private readonly times: number[] = [];
  private began = 0;
  private lastSent = 0;
  private pending = 0;
  private slowDrawings = 0;

  /** `slow`: whether the view does without its extras. */
  constructor(public slow: boolean) {}

  /** A frame of the screen begins and shows the last drawing. */
  begin(): void {
    this.settle();
    this.began = performance.now();
  }

  /** A frame has been drawn that the server sent at `sent` (ms since 1970; 0: not known). */
  drawn(sent: number): void {
    const now = performance.now();
    this.times.push(now - this.began);
    this.ends.push(now);
    for (const list of [this.times, this.ends]) if (list.length > KEPT) list.shift();
    if (sent > 0 && sent !== this.lastSent) this.pending = sent;
    this.lastSent = sent;
    this.slowDrawings = now - this.began > SLOW_MS ? this.slowDrawings + 1 : 0;
    if (this.slowDrawings > SLOW_DRAWINGS) this.slow = true;
  }

  /** The screen now shows the last drawing. */
  private settle(): void {
    if (this.pending === 0) return;
    this.ages.push(performance.timeOrigin + performance.now() - this.pending);
    if (this.ages.length > KEPT) this.ages.shift();
    this.pending = 0;
  }

  figures(): Figures {
    const last = this.ends.at(-1) ?? 0;
    const recent = this.ends.filter((end) => end > last - 2000);
    const span = last - (recent[0] ?? last);
    return {
      rate: span > 0 ? (1000 * (recent.length - 1)) / span : 0,
      latency: middle(this.ages),
      drawing: middle(this.times),
    };
  }
}
