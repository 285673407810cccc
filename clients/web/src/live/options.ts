// Switches of the view, kept for the tab (but for the scale of arrows, which fits one scene).

export interface Options {
  points: boolean;
  normals: boolean;
  frictions: boolean;
  cones: boolean;
  boxes: boolean;
  centroids: boolean;
  torques: boolean;
  triangles: boolean;
  joints: boolean;
  tendons: boolean;
  inertia: boolean;
  wireframe: boolean;
  transparent: boolean;
  shadows: boolean;
  follow: boolean;
  /** m/N; of arrows; 0: one that fits the first forces */
  scale: number;
  /** The drawn evaluation of a step by the volume law; -1: the state that the step ended with. */
  evaluation: number;
  /** of contact points, as a factor of the size that fits the scene */
  pointSize: number;
}

export type Toggle = {
  [K in keyof Options]: Options[K] extends boolean ? K : never;
}[keyof Options];

export const TOGGLES: readonly (readonly [Toggle, string])[] = [
  ["points", "contact points"],
  ["normals", "normal forces"],
  ["frictions", "friction forces"],
  ["cones", "friction cones"],
  ["boxes", "bounding boxes"],
  ["centroids", "centroids"],
  ["torques", "net force and torque"],
  ["triangles", "contributions of triangles"],
  ["joints", "joint axes"],
  ["tendons", "tendons"],
  ["inertia", "inertia"],
  ["wireframe", "wireframe"],
  ["transparent", "transparent"],
  ["shadows", "shadows"],
  ["follow", "follow the chosen body"],
];

const DEFAULTS: Options = {
  points: true,
  normals: true,
  frictions: true,
  cones: false,
  boxes: false,
  centroids: false,
  torques: false,
  triangles: false,
  joints: false,
  tendons: true,
  inertia: false,
  wireframe: false,
  transparent: false,
  shadows: true,
  follow: false,
  scale: 0,
  evaluation: -1,
  pointSize: 1,
};

const STORED = "tribod-view";

export function loadOptions(): Options {
  try {
    const kept = JSON.parse(sessionStorage.getItem(STORED) ?? "{}") as Partial<Options>;
    return { ...DEFAULTS, ...kept };
  } catch {
    return DEFAULTS;
  }
}

export function keepOptions(options: Options): void {
  sessionStorage.setItem(STORED, JSON.stringify(options));
}
