// The page of one session that is stepped now, here or by a program.
import { useEffect, useRef, useState } from "preact/hooks";

import { Scheme } from "../../generated/tribo/v1/common_pb";
import { short } from "../format";
import { Failure } from "../parts/failure";
import { Page } from "../parts/page";
import { route, setQuery } from "../route";
import { allows, caller } from "../wire/api";
import { useCell } from "../wire/cell";
import { epoch } from "../wire/health";
import { usePoll } from "../wire/poll";
import { Drive } from "./drive";
import { follow } from "./follow";
import type { Frame } from "./frame";
import { Backlog } from "./backlog";
import { History } from "./history";
import { fetchScene, findSession } from "./scene_data";
import { Viewer } from "./viewer";

const RATES = [60, 30, 10, 2] as const;
const MOST_WORLDS = 64;
/** states/s, of a page that cannot follow more. */
const SLOWEST = 2;

interface Choice {
  worlds: readonly number[];
  /** Whether evaluations of steps are asked for. */
  evaluations: boolean;
  rate: number;
}

/** The worlds and the rate that the address names. */
function choiceOf(query: URLSearchParams, worlds: number, evaluations: boolean): Choice {
  const text = query.get("world") ?? "0";
  const rate = Number(query.get("rate") ?? "60");
  const all = Array.from({ length: Math.min(worlds, MOST_WORLDS) }, (_, i) => i);
  const chosen = text === "all" ? all : [Math.min(Number(text) || 0, worlds - 1)];
  return { worlds: chosen, evaluations: evaluations && chosen.length === 1, rate };
}

/** Frames of the session. All go into the history; the newest is shown once for each frame of the
 * screen, however many have come. A page that falls behind asks for fewer. */
function useFrames(session: string, choice: Choice) {
  const history = useRef(new History());
  const [newest, setNewest] = useState<Frame>();
  const [note, setNote] = useState("waiting for the first state");
  const [limit, setLimit] = useState(Infinity);
  const now = useCell(epoch);
  const rate = Math.min(choice.rate, limit);
  const { evaluations } = choice;
  const wish = `${session} ${choice.worlds.join()} ${String(evaluations)} ${String(rate)}`;
  useEffect(() => {
    history.current = new History();
    setNewest(undefined);
  }, [session, choice.worlds.join()]);
  useEffect(() => {
    let latest: Frame | undefined;
    let animation = 0;
    const backlog = new Backlog();
    const draw = () => {
      animation = 0;
      setNewest(latest);
      if (latest && backlog.behind(latest.sent)) setLimit(Math.max(SLOWEST, rate / 2));
    };
    const stop = follow(
      { session, worlds: choice.worlds, evaluations, rate },
      {
        frame(frame) {
          history.current.add(frame);
          latest = frame;
          if (!animation) animation = requestAnimationFrame(draw);
        },
        state: setNote,
      },
    );
    return () => {
      stop();
      cancelAnimationFrame(animation);
    };
  }, [wish, now]);
  const slow = limit < choice.rate ? `${String(Math.round(limit))} states/s: this browser draws no more` : "";
  return { history: history.current, newest, note: note || slow };
}

function Choices({ worlds, choice }: { worlds: number; choice: Choice }) {
  const world = choice.worlds.length > 1 ? "all" : String(choice.worlds[0] ?? 0);
  return (
    <section aria-label="Worlds and rate">
      <div class="buttons">
        {worlds > 1 && (
          <label>
            world{" "}
            <select
              value={world}
              onChange={(event) => {
                setQuery("world", event.currentTarget.value);
              }}
            >
              <option value="all">
                {worlds > MOST_WORLDS ? `the first ${String(MOST_WORLDS)}` : "all"}
              </option>
              {Array.from({ length: Math.min(worlds, 1024) }, (_, i) => (
                <option key={i} value={String(i)}>
                  {i}
                </option>
              ))}
            </select>
          </label>
        )}
        <label>
          at most{" "}
          <select
            value={String(choice.rate)}
            onChange={(event) => {
              setQuery("rate", event.currentTarget.value);
            }}
          >
            {RATES.map((rate) => (
              <option key={rate} value={String(rate)}>
                {rate} states/s
              </option>
            ))}
          </select>
        </label>
      </div>
    </section>
  );
}

function Following(props: {
  session: string;
  worlds: number;
  /** Whether its steps have evaluations: it steps by the volume law. */
  evaluated: boolean;
  data: Awaited<ReturnType<typeof fetchScene>>;
}) {
  const { session, worlds, evaluated, data } = props;
  const [asked, setAsked] = useState(false);
  const { query } = useCell(route);
  const who = useCell(caller);
  const choice = choiceOf(query, worlds, evaluated && asked);
  const { history, newest, note } = useFrames(session, choice);
  return (
    <Viewer
      data={data}
      worlds={choice.worlds.length}
      history={history}
      newest={newest}
      note={note}
      name={`session-${short(session)}`}
      live={true}
      asks={setAsked}
    >
      <Choices worlds={worlds} choice={choice} />
      {allows(who.scope, "run") && <Drive session={session} scene={data.scene} controls={[]} />}
    </Viewer>
  );
}

export function Live() {
  const { path } = useCell(route);
  const id = path[1] ?? "";
  const { data, error } = usePoll(
    async (signal) => {
      const session = await findSession(id, signal);
      return { session, scene: await fetchScene(session.sceneId, signal) };
    },
    0,
    [id],
  );
  const title = data?.session.label || `Session ${short(id)}`;
  return (
    <Page
      title={title}
      beside={data && <span class="soft">{`${data.session.owner}, on ${data.session.device}`}</span>}
    >
      {error !== undefined && <Failure error={error} />}
      {!data && error === undefined && <p class="soft">fetching the scene</p>}
      {data && (
        <Following
          session={data.session.sessionId}
          worlds={data.session.worlds}
          evaluated={data.session.scheme === Scheme.VOLUME}
          data={data.scene}
        />
      )}
    </Page>
  );
}
