// Calls of the daemon by the Connect protocol, with the API key that the user gave.
import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";

import { Grasp } from "../../generated/tribo/v1/grasp_pb";
import { Runs } from "../../generated/tribo/v1/runs_pb";
import { Simulation } from "../../generated/tribo/v1/simulation_pb";
import { cell } from "./cell";

const STORED = "tribod-key";

/** The API key, kept for this tab alone; "": none. */
export const key = cell(sessionStorage.getItem(STORED) ?? "");
key.follow((value) => {
  if (value) sessionStorage.setItem(STORED, value);
  else sessionStorage.removeItem(STORED);
});

const withKey: Interceptor = (next) => (request) => {
  if (key.get()) request.header.set("Authorization", `Bearer ${key.get()}`);
  return next(request);
};

const transport = createConnectTransport({
  baseUrl: location.origin,
  useBinaryFormat: true,
  interceptors: [withKey],
});

export const simulation = createClient(Simulation, transport);
export const grasp = createClient(Grasp, transport);
export const runs = createClient(Runs, transport);

export type Scope = "none" | "read" | "run" | "admin";
const SCOPES: readonly Scope[] = ["none", "read", "run", "admin"];

/** The caller as the daemon knows it. */
export interface Caller {
  scope: Scope;
  name: string;
  /** The key was refused, and why. */
  refused: string;
  /** The daemon can list the runs and benchmarks of its whole fleet. */
  fleet: boolean;
}
export const caller = cell<Caller>({ scope: "none", name: "", refused: "", fleet: false });

export function parseScope(text: string): Scope {
  return SCOPES.find((scope) => scope === text) ?? "none";
}

/** Whether this scope includes `least`. */
export function allows(scope: Scope, least: Scope): boolean {
  return SCOPES.indexOf(scope) >= SCOPES.indexOf(least);
}

/** Whether the failure says that the daemon could not be reached at all. */
export function isUnreachable(error: unknown): boolean {
  if (!(error instanceof ConnectError)) return error instanceof TypeError;
  if (error.code === Code.Unavailable) return true;
  // a connection that breaks shows as a TypeError of fetch
  return error.code === Code.Unknown && error.cause instanceof TypeError;
}

/** Whether the failure is a matter of the key. */
export function isRefused(error: unknown): boolean {
  return (
    error instanceof ConnectError &&
    (error.code === Code.Unauthenticated || error.code === Code.PermissionDenied)
  );
}

/** The failure in words. */
export function words(error: unknown): string {
  if (isUnreachable(error)) return "The daemon does not answer.";
  if (error instanceof ConnectError) return error.rawMessage;
  return error instanceof Error ? error.message : String(error);
}
