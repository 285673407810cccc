// One trial of a grasp job, played again by the daemon and shown over time.
import { useMemo } from "preact/hooks";

import type { GraspFrame } from "../../generated/tribo/v1/grasp_pb";
import { short } from "../format";
import { Failure } from "../parts/failure";
import { Page } from "../parts/page";
import { link, route } from "../route";
import { grasp } from "../wire/api";
import { numbers } from "../wire/arrays";
import { useCell } from "../wire/cell";
import { usePoll } from "../wire/poll";
import { contactSet, type Frame } from "./frame";
import { History } from "./history";
import { fetchScene } from "./scene_data";
import { Viewer } from "./viewer";

/** s between two frames. */
const INTERVAL = 0.01;

function frameOfGrasp(from: GraspFrame): Frame {
  const { state, contacts, certificate, time } = from;
  return {
    time,
    steps: Number(state?.steps ?? 0n),
    worlds: [0],
    poses: numbers(state?.poses),
    contacts: contacts ? [contactSet(contacts)] : [],
    actuatorForces: numbers(state?.actuatorForces),
    limitForces: numbers(state?.limitForces),
    controls: numbers(state?.controls),
    certificates: certificate ? [certificate] : [],
    evaluations: [],
    sent: 0,
  };
}

function useReplay(job: string, index: number, copy: number) {
  return usePoll(
    async (signal) => {
      const [replay, info] = await Promise.all([
        grasp.replayGrasp({ id: job, grasp: index, copy, interval: INTERVAL }, { signal }),
        grasp.getGraspJob({ id: job, firstResult: index, maximumResults: 1 }, { signal }),
      ]);
      const data = await fetchScene(replay.sceneId, signal);
      return { data, frames: replay.frames.map(frameOfGrasp), result: info.results[0] };
    },
    0,
    [job, index, copy],
  );
}

export function Replay() {
  const { path } = useCell(route);
  const [, job = "", indexText = "0", copyText = "0"] = path;
  const [index, copy] = [Number(indexText), Number(copyText)];
  const { data, error } = useReplay(job, index, copy);
  const history = useMemo(() => {
    const made = new History(Infinity);
    for (const frame of data?.frames ?? []) made.add(frame);
    return made;
  }, [data]);
  const name = data?.result?.name || `grasp ${String(index)}`;
  const reason = data?.result?.trials[copy]?.reason?.text ?? "";
  return (
    <Page
      title={copy === 0 ? name : `${name}, copy ${String(copy)}`}
      beside={<a href={link("grasps", job)}>job {short(job)}</a>}
    >
      {error !== undefined && <Failure error={error} />}
      {!data && error === undefined && <p class="soft">the daemon plays the grasp again</p>}
      {data && (
        <Viewer
          data={data.data}
          worlds={1}
          history={history}
          newest={undefined}
          note={reason}
          name={`grasp-${short(job)}-${String(index)}-${String(copy)}`}
          live={false}
        />
      )}
    </Page>
  );
}
