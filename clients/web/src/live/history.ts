// The frames of a session or a recording, in the order of time, within a bound of memory.
import type { Frame } from "./frame";

/** Numbers kept, over all frames: 64 MiB as doubles. */
const LIMIT = 8 << 20;

function weight(frame: Frame): number {
  const contacts = frame.contacts.reduce((sum, set) => sum + 16 * set.count, 0);
  const evaluations = frame.evaluations.reduce(
    (sum, e) => sum + e.poses.length + e.boxes.length + 20 * e.contacts.count + e.triangles.length + e.shares.length,
    0,
  );
  return frame.poses.length + contacts + evaluations + 64;
}

export class History {
  readonly frames: Frame[] = [];
  private numbers = 0;

  constructor(private readonly limit = LIMIT) {}

  /** Adds a frame; time that runs backwards (a reset, a restored state) starts a new history. */
  add(frame: Frame): void {
    const last = this.frames.at(-1);
    if (last && frame.steps === last.steps && frame.time === last.time) {
      this.frames[this.frames.length - 1] = frame;
      return;
    }
    if (last && frame.time < last.time) {
      this.frames.length = 0;
      this.numbers = 0;
    }
    this.frames.push(frame);
    this.numbers += weight(frame);
    while (this.numbers > this.limit && this.frames.length > 1) {
      const first = this.frames.shift();
      if (first) this.numbers -= weight(first);
    }
  }

  /** Index of the last frame at or before a time; 0 where there is none. */
  indexAt(time: number): number {
    let low = 0;
    let high = this.frames.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.frames[middle]?.time ?? 0) <= time) low = middle;
      else high = middle - 1;
    }
    return Math.max(0, low);
  }
}
