// Whether frames wait in the browser before they are drawn: the page has asked for more than it can
// draw. The clocks of server and browser may differ, so ages count from the youngest that was seen.

/** ms */
const LATE = 250;
const LATE_FRAMES = 15;

export class Backlog {
  private youngest = Infinity;
  private late = 0;

  /** Whether the last frames were all late; `sent`: ms since 1970 by the server's clock. */
  behind(sent: number): boolean {
    if (sent === 0) return false;
    const age = Date.now() - sent;
    this.youngest = Math.min(this.youngest, age);
    this.late = age - this.youngest > LATE ? this.late + 1 : 0;
    return this.late >= LATE_FRAMES;
  }
}
