// A number with its last two minutes as a line.

const WIDTH = 119;
const HEIGHT = 20;

/** The values of one tile, newest last; `add` keeps as many as the line shows. */
export class Past {
  readonly values: number[] = [];

  add(value: number): void {
    this.values.push(Number.isFinite(value) ? value : 0);
    if (this.values.length > WIDTH + 1) this.values.shift();
  }

  points(): string {
    const top = Math.max(...this.values, 1e-12);
    const start = WIDTH + 1 - this.values.length;
    return this.values
      .map((x, i) => `${String(start + i)},${(HEIGHT - 1 - ((HEIGHT - 2) * x) / top).toFixed(2)}`)
      .join(" ");
  }
}

export function Tile({ name, text, past }: { name: string; text: string; past?: Past }) {
  return (
    <li>
      <b>{text}</b>
      <small>{name}</small>
      {past && (
        <svg
          viewBox={`0 0 ${String(WIDTH)} ${String(HEIGHT)}`}
          preserveAspectRatio="none"
          aria-hidden="true"
        >
          <polyline points={past.points()} />
        </svg>
      )}
    </li>
  );
}
