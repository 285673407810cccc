// The recording of a session's run: one world at even times, since the last reset.
import { useMemo } from "preact/hooks";

import { create } from "@bufbuild/protobuf";

import { CertificateSchema } from "../../generated/tribo/v1/common_pb";
import type { GetRecordingResponse } from "../../generated/tribo/v1/runs_pb";
import { short } from "../format";
import { Failure } from "../parts/failure";
import { Page } from "../parts/page";
import { link, route } from "../route";
import { runs } from "../wire/api";
import { numbers } from "../wire/arrays";
import { useCell } from "../wire/cell";
import { usePoll } from "../wire/poll";
import type { ContactSet, Frame } from "./frame";
import { History } from "./history";
import { fetchScene } from "./scene_data";
import { Viewer } from "./viewer";

const FRAMES_AT_ONCE = 1000;
const NOTHING = new Float32Array(0);

/** The frames of one answer. */
function framesOf(from: GetRecordingResponse): Frame[] {
  const times = numbers(from.times);
  const steps = numbers(from.steps);
  const poses = numbers(from.poses);
  const counts = numbers(from.contactCounts);
  const [shapes, positions, normals, forces, gaps, statuses, laws] = [
    ...[from.shapes, from.positions, from.normals, from.forces],
    ...[from.gaps, from.statuses, from.laws],
  ].map(numbers) as [ContactSet["shapes"], ...ContactSet["shapes"][]];
  const [residuals, penetrations, energies, iterations, outcomes] = [
    ...[from.residuals, from.penetrations, from.energies, from.iterations, from.outcomes],
  ].map(numbers);
  const width = times.length > 0 ? poses.length / times.length : 0;
  let at = 0;
  return Array.from(times, (time, i) => {
    const count = counts[i] ?? 0;
    const part = (values: ContactSet["shapes"] | undefined, columns: number) =>
      (values ?? NOTHING).subarray(columns * at, columns * (at + count));
    const contacts: ContactSet = {
      count,
      shapes: part(shapes, 2),
      // recordings keep no feature ids: contacts are distinguished by their order within a pair
      features: Int32Array.from({ length: count }, (_, k) => k),
      positions: part(positions, 3),
      normals: part(normals, 3),
      gaps: part(gaps, 1),
      forces: part(forces, 3),
      velocities: NOTHING,
      statuses: part(statuses, 1),
      laws: part(laws, 1),
    };
    at += count;
    return {
      time,
      steps: steps[i] ?? 0,
      worlds: [from.world],
      poses: poses.subarray(width * i, width * (i + 1)),
      contacts: [contacts],
      actuatorForces: NOTHING,
      limitForces: NOTHING,
      controls: NOTHING,
      evaluations: [],
      certificates: [
        create(CertificateSchema, {
          time,
          outcome: outcomes?.[i] ?? 0,
          residual: residuals?.[i] ?? 0,
          penetration: penetrations?.[i] ?? 0,
          energy: energies?.[i] ?? 0,
          iterations: iterations?.[i] ?? 0,
        }),
      ],
      sent: 0,
    };
  });
}

async function fetchRecording(runId: string, signal: AbortSignal) {
  const frames: Frame[] = [];
  let sceneId = "";
  for (;;) {
    const answer = await runs.getRecording(
      { runId, first: frames.length, count: FRAMES_AT_ONCE },
      { signal },
    );
    sceneId = answer.sceneId;
    const next = framesOf(answer);
    frames.push(...next);
    if (next.length === 0 || frames.length >= answer.frames) break;
  }
  return { frames, data: await fetchScene(sceneId, signal) };
}

export function Recording() {
  const { path } = useCell(route);
  const id = path[1] ?? "";
  const { data, error } = usePoll((signal) => fetchRecording(id, signal), 0, [id]);
  const history = useMemo(() => {
    const made = new History(Infinity);
    for (const frame of data?.frames ?? []) made.add(frame);
    return made;
  }, [data]);
  return (
    <Page
      title={`Recording of ${short(id)}`}
      beside={<a href={link("runs", id)}>numbers of the run</a>}
    >
      {error !== undefined && <Failure error={error} />}
      {!data && error === undefined && <p class="soft">fetching the recording</p>}
      {data && data.frames.length === 0 && <p class="empty">It has no frame yet.</p>}
      {data && data.frames.length > 0 && (
        <Viewer
          data={data.data}
          worlds={1}
          history={history}
          newest={undefined}
          note=""
          name={`recording-${short(id)}`}
          live={false}
        />
      )}
    </Page>
  );
}
