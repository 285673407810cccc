// Addresses within the page: "#/runs/ID?step=10", so that the daemon serves one page for all.
import { cell } from "./wire/cell";

export interface Route {
  /** Parts of the path: ["runs", "ID"]. */
  path: string[];
  query: URLSearchParams;
}

function parse(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  return {
    path: path.split("/").filter(Boolean).map(decodeURIComponent),
    query: new URLSearchParams(query),
  };
}

export const route = cell<Route>(parse(location.hash));

window.addEventListener("hashchange", () => {
  route.set(parse(location.hash));
});

/** The address of a page. */
export function link(...path: string[]): string {
  return `#/${path.map(encodeURIComponent).join("/")}`;
}

/** Puts a value of the query into the address without a new entry in the history. */
export function setQuery(name: string, value: string): void {
  const { path, query } = route.get();
  const next = new URLSearchParams(query);
  if (value) next.set(name, value);
  else next.delete(name);
  const text = next.toString();
  history.replaceState(null, "", link(...path) + (text ? `?${text}` : ""));
  route.set({ path, query: next });
}
