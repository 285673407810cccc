// Grasp jobs: their progress, and a way to end one.
import { useState } from "preact/hooks";

import { type GraspJobInfo, GraspJobStatus } from "../../generated/tribo/v1/grasp_pb";
import { ago, duration, number, short, word } from "../format";
import { Command } from "../parts/command";
import { Failure } from "../parts/failure";
import { Page } from "../parts/page";
import { type Column, Table } from "../parts/table";
import { link } from "../route";
import { allows, caller, grasp } from "../wire/api";
import { useCell } from "../wire/cell";
import { usePages } from "../wire/poll";
import { NewJob } from "./new_job";

const INTERVAL_MS = 1000;

export function Progress({ job }: { job: GraspJobInfo }) {
  return (
    <span class="progress">
      <progress
        max={Math.max(1, job.grasps)}
        value={job.graspsDone}
        aria-label={`grasps done of ${short(job.id)}`}
      />{" "}
      {number(job.graspsDone)} of {number(job.grasps)}
    </span>
  );
}

function tookSeconds(job: GraspJobInfo): number {
  const end = job.endTimeUs > 0n ? Number(job.endTimeUs) : Date.now() * 1000;
  return Math.max(0, Math.round((end - Number(job.createTimeUs)) / 1e5) / 10);
}

const COLUMNS: readonly Column<GraspJobInfo>[] = [
  { title: "job", kind: "id", show: (j) => <a href={link("grasps", j.id)}>{short(j.id)}</a> },
  { title: "label", show: (j) => j.label, sort: (j) => j.label },
  { title: "owner", show: (j) => j.owner, sort: (j) => j.owner },
  {
    title: "status",
    show: (j) => word(GraspJobStatus, j.status) + (j.message ? `: ${j.message}` : ""),
    sort: (j) => j.status,
  },
  { title: "done", show: (j) => <Progress job={j} />, sort: (j) => j.graspsDone },
  { title: "held", kind: "number", show: (j) => number(j.graspsHeld), sort: (j) => j.graspsHeld },
  {
    title: "uncertified",
    kind: "number",
    show: (j) => number(j.trialsUncertified),
    sort: (j) => j.trialsUncertified,
  },
  { title: "took", kind: "number", show: (j) => duration(tookSeconds(j)), sort: tookSeconds },
  { title: "began", kind: "number", show: (j) => ago(j.createTimeUs), sort: (j) => j.createTimeUs },
];

export function CancelButton({ job, failed }: { job: GraspJobInfo; failed(error: unknown): void }) {
  const who = useCell(caller);
  if (job.status !== GraspJobStatus.RUNNING || !allows(who.scope, "run")) return null;
  return (
    <button
      type="button"
      class="small"
      onClick={() => {
        grasp.cancelGraspJob({ id: job.id }).catch(failed);
      }}
    >
      cancel
    </button>
  );
}

function Nothing() {
  return (
    <>
      <p>No grasp job is stored. This plays nine grasps of a mug as one:</p>
      <Command text="make demo" />
    </>
  );
}

export function JobTable({ shown }: { shown?: number }) {
  const [failure, setFailure] = useState<unknown>();
  const jobs = usePages(
    async (pageToken, signal) => {
      const answer = await grasp.listGraspJobs({ pageSize: shown ?? 100, pageToken }, { signal });
      return { rows: answer.jobs, next: answer.nextPageToken };
    },
    INTERVAL_MS,
    [shown],
  );
  const cancel: Column<GraspJobInfo> = {
    title: "",
    show: (job) => <CancelButton job={job} failed={setFailure} />,
  };
  return (
    <>
      {failure !== undefined && <Failure error={failure} />}
      <Table
        caption="Grasp jobs"
        columns={shown === undefined ? [...COLUMNS, cancel] : COLUMNS}
        rows={jobs.rows}
        rowKey={(j) => j.id}
        error={jobs.error}
        empty={<Nothing />}
      />
      {shown === undefined && jobs.rows && !jobs.complete && (
        <button type="button" onClick={jobs.more}>
          More
        </button>
      )}
    </>
  );
}

export function Grasps() {
  return (
    <Page title="Grasps">
      <NewJob />
      <JobTable />
    </Page>
  );
}
