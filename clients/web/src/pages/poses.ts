// Poses to try where nothing better is known: the hand comes from directions spread evenly over the
// upper half of a sphere about a point of the object, turned about its approach.

export interface Sample {
  name: string;
  position: [number, number, number];
  orientation: [number, number, number, number]; // w, x, y, z
}

const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));

type Triple = readonly [number, number, number];

function cross(a: Triple, b: Triple): [number, number, number] {
  return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
}

function unit(a: Triple): [number, number, number] {
  const length = Math.hypot(...a);
  return [a[0] / length, a[1] / length, a[2] / length];
}

/** The quaternion of the rotation whose columns are x, y and z (Shepperd's method). */
export function quaternionOf(x: Triple, y: Triple, z: Triple): [number, number, number, number] {
  const trace = x[0] + y[1] + z[2];
  if (trace > 0) {
    const s = 2 * Math.sqrt(trace + 1);
    return [s / 4, (y[2] - z[1]) / s, (z[0] - x[2]) / s, (x[1] - y[0]) / s];
  }
  if (x[0] > y[1] && x[0] > z[2]) {
    const s = 2 * Math.sqrt(1 + x[0] - y[1] - z[2]);
    return [(y[2] - z[1]) / s, s / 4, (y[0] + x[1]) / s, (z[0] + x[2]) / s];
  }
  if (y[1] > z[2]) {
    const s = 2 * Math.sqrt(1 + y[1] - x[0] - z[2]);
    return [(z[0] - x[2]) / s, (y[0] + x[1]) / s, s / 4, (z[1] + y[2]) / s];
  }
  const s = 2 * Math.sqrt(1 + z[2] - x[0] - y[1]);
  return [(x[1] - y[0]) / s, (z[0] + x[2]) / s, (z[1] + y[2]) / s, s / 4];
}

/** `count` poses of a tool frame whose z is the approach and whose y closes, about `centre`, m. */
export function sample(count: number, centre: Triple): Sample[] {
  return Array.from({ length: count }, (_, i) => {
    // from straight above down to 15 degrees over the table
    const height = 1 - (0.74 * (i + 0.5)) / count;
    const radius = Math.sqrt(1 - height * height);
    const angle = GOLDEN_ANGLE * i;
    const from: Triple = [radius * Math.cos(angle), radius * Math.sin(angle), height];
    const z: Triple = [-from[0], -from[1], -from[2]];
    // the fingers close along a horizontal direction
    const y = unit(cross(z, radius > 1e-6 ? [0, 0, 1] : [1, 0, 0]));
    return {
      name: `direction ${String(i + 1)}`,
      position: [centre[0], centre[1], centre[2]],
      orientation: quaternionOf(cross(y, z), y, z),
    };
  });
}
