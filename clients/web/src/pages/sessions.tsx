// Open sessions: owner, scene and progress of each, with buttons to watch or end it.
import { useState } from "preact/hooks";

import { type SessionInfo, SessionStatus } from "../../generated/tribo/v1/simulation_pb";
import { bytes, number, seconds, short, until, word } from "../format";
import { Command } from "../parts/command";
import { Failure } from "../parts/failure";
import { Page } from "../parts/page";
import { type Column, Table } from "../parts/table";
import { link } from "../route";
import { allows, caller, simulation } from "../wire/api";
import { useCell } from "../wire/cell";
import { usePages } from "../wire/poll";

const INTERVAL_MS = 1000;

const COLUMNS: readonly Column<SessionInfo>[] = [
  {
    title: "session",
    kind: "id",
    show: (s) => <a href={link("live", s.sessionId)}>{short(s.sessionId)}</a>,
  },
  { title: "label", show: (s) => s.label, sort: (s) => s.label },
  { title: "owner", show: (s) => s.owner, sort: (s) => s.owner },
  { title: "status", show: (s) => word(SessionStatus, s.status), sort: (s) => s.status },
  { title: "device", show: (s) => s.device, sort: (s) => s.device },
  { title: "worlds", kind: "number", show: (s) => number(s.worlds), sort: (s) => s.worlds },
  { title: "steps", kind: "number", show: (s) => number(s.steps), sort: (s) => s.steps },
  {
    title: "steps/s",
    kind: "number",
    show: (s) => (s.stepsPerSecond > 0 ? number(s.stepsPerSecond) : ""),
    sort: (s) => s.stepsPerSecond,
  },
  {
    title: "memory",
    kind: "number",
    show: (s) => (s.memoryBytes > 0n ? bytes(s.memoryBytes) : ""),
    sort: (s) => s.memoryBytes,
  },
  { title: "simulated", kind: "number", show: (s) => seconds(s.time), sort: (s) => s.time },
  { title: "lease", kind: "number", show: (s) => until(s.expireTimeUs), sort: (s) => s.expireTimeUs },
  {
    title: "recording",
    show: (s) => (s.recorded ? <a href={link("recording", s.sessionId)}>watch</a> : ""),
  },
  { title: "scene", kind: "id", show: (s) => short(s.sceneId), sort: (s) => s.sceneId },
];

function EndButton({ session, failed }: { session: SessionInfo; failed(error: unknown): void }) {
  const [sure, setSure] = useState(false);
  const end = () => {
    simulation.deleteSession({ sessionId: session.sessionId }).catch(failed);
    setSure(false);
  };
  return (
    <button
      type="button"
      class={sure ? "small bad" : "small"}
      onClick={() => {
        if (sure) end();
        else setSure(true);
      }}
      onBlur={() => {
        setSure(false);
      }}
    >
      {sure ? "end it?" : "end"}
    </button>
  );
}

function Nothing() {
  return (
    <>
      <p>No session is open. A program opens one and steps it:</p>
      <Command
        text={`python3 -c 'import tribo; c = tribo.connect(); s = c.create_session(c.load("scene.xml")); s.step(1000)'`}
      />
    </>
  );
}

export function SessionTable({ shown }: { shown?: number }) {
  const who = useCell(caller);
  const [failure, setFailure] = useState<unknown>();
  const sessions = usePages(
    async (pageToken, signal) => {
      const answer = await simulation.listSessions({ pageSize: shown ?? 100, pageToken }, { signal });
      return { rows: answer.sessions, next: answer.nextPageToken };
    },
    INTERVAL_MS,
    [shown],
  );
  const ending: Column<SessionInfo> = {
    title: "",
    show: (s) => <EndButton session={s} failed={setFailure} />,
  };
  const mayEnd = allows(who.scope, "run") && shown === undefined;
  return (
    <>
      {failure !== undefined && <Failure error={failure} />}
      <Table
        caption="Open sessions"
        columns={mayEnd ? [...COLUMNS, ending] : COLUMNS}
        rows={sessions.rows}
        rowKey={(s) => s.sessionId}
        error={sessions.error}
        empty={<Nothing />}
      />
      {shown === undefined && !sessions.complete && sessions.rows && (
        <button type="button" onClick={sessions.more}>
          More
        </button>
      )}
    </>
  );
}

export function Sessions() {
  return (
    <Page title="Sessions">
      <SessionTable />
    </Page>
  );
}
