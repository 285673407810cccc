// Differences of two scenes: the place of each and its value in both.
import { type JsonValue, toJson } from "@bufbuild/protobuf";

import { type GetSceneResponse, GetSceneResponseSchema } from "../../generated/tribo/v1/simulation_pb";

export interface Difference {
  /** Such as "bodies / mug / mass". */
  place: string;
  a: string;
  b: string;
}

/** Parts of a list by name where each has one of its own, else by number. */
function byName(list: readonly JsonValue[]): Map<string, JsonValue> {
  const names = list.map((part) => {
    if (typeof part === "string") return part;
    if (part !== null && typeof part === "object" && !Array.isArray(part)) {
      return typeof part.name === "string" ? part.name : "";
    }
    return "";
  });
  const useNames = names.every((name) => name !== "") && new Set(names).size === names.length;
  return new Map(list.map((part, i) => [useNames ? (names[i] ?? "") : String(i), part]));
}

function partsOf(value: JsonValue): Map<string, JsonValue> | undefined {
  if (value === null || typeof value !== "object") return undefined;
  return Array.isArray(value) ? byName(value) : new Map(Object.entries(value));
}

/** Vectors and matrices are one value. */
function isPlain(value: JsonValue): boolean {
  return Array.isArray(value) && value.every((part) => typeof part === "number");
}

function text(value: JsonValue | undefined): string {
  if (value === undefined) return "\u2013";
  if (isPlain(value)) return (value as number[]).join(" ");
  return typeof value === "string" ? value : JSON.stringify(value);
}

function compare(place: string, a: JsonValue | undefined, b: JsonValue | undefined, found: Difference[]): void {
  if (JSON.stringify(a) === JSON.stringify(b)) return;
  const left = a === undefined || isPlain(a) ? undefined : partsOf(a);
  const right = b === undefined || isPlain(b) ? undefined : partsOf(b);
  if (!left || !right) {
    found.push({ place, a: text(a), b: text(b) });
    return;
  }
  for (const key of new Set([...left.keys(), ...right.keys()])) {
    compare(place ? `${place} / ${key}` : key, left.get(key), right.get(key), found);
  }
}

/** In the order of the scenes; ids and names of the files are left out. */
export function differences(a: GetSceneResponse, b: GetSceneResponse): Difference[] {
  const found: Difference[] = [];
  const plain = (scene: GetSceneResponse) =>
    toJson(GetSceneResponseSchema, { ...scene, sceneId: "", name: "" });
  compare("", plain(a), plain(b), found);
  return found;
}
