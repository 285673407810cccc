// The view with its controls: drawn items, selection, time, downloads. Frames come from the page
// that shows it.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";

import { Failure } from "../parts/failure";
import { route, setQuery } from "../route";
import type { Picked } from "./bodies";
import { useCalm } from "./calm";
import { csvOf, gltfOf, save } from "./export";
import { atEvaluation, type Frame } from "./frame";
import type { History } from "./history";
import { keepOptions, loadOptions, type Options } from "./options";
import { Panel } from "./panel";
import { type ContactKey, keyOf, PickedBody, PickedContact } from "./picked";
import type { SceneData } from "./scene_data";
import { Stage } from "./stage";
import { Timeline } from "./timeline";
import type { Hit, View } from "./view";

/** The arrows' scale is fitted again once one exceeds the fitting length by this factor. */
const OUTGROWN = 3;
/** ms between two updates of the curves and of the text. */
const CURVES_MS = 1000;
const SLOW_CURVES_MS = 4000;
const TEXT_MS = 250;

interface Props {
  data: SceneData;
  worlds: number;
  history: History;
  /** The newest frame, where frames come by themselves. */
  newest: Frame | undefined;
  note: string;
  /** Name of files. */
  name: string;
  live: boolean;
  /** Called with whether the choice of drawn items needs the evaluations of a step. */
  asks?(evaluations: boolean): void;
  children?: ComponentChildren;
}

function wantsEvaluations(options: Options): boolean {
  return options.triangles;
}

function startTime(): number | undefined {
  const text = route.get().query.get("t");
  return text === null ? undefined : Number(text);
}

function Downloads(props: Props & { view: View | undefined; frame: Frame | undefined }) {
  const { view, history, name, data } = props;
  const [failure, setFailure] = useState<unknown>();
  const guarded = (work: () => Promise<void>) => () => {
    work().then(() => {
      setFailure(undefined);
    }, setFailure);
  };
  const csv = guarded(() => {
    save(`${name}.csv`, "text/csv", csvOf(history.frames));
    return Promise.resolve();
  });
  const gltf = guarded(async () => {
    if (view) save(`${name}.glb`, "model/gltf-binary", await gltfOf(view.bodies));
  });
  const png = guarded(async () => {
    const picture = await view?.picture();
    if (picture) save(`${name}.png`, "image/png", picture);
  });
  const mcap = guarded(async () => {
    const { mcapOf } = await import("./mcap");
    save(`${name}.mcap`, "application/octet-stream", await mcapOf(data.scene, history.frames));
  });
  return (
    <section aria-label="Downloads">
      <h2>Take away</h2>
      {failure !== undefined && <Failure error={failure} />}
      <div class="buttons">
        {(
          [
            ["CSV", csv],
            ["glTF", gltf],
            ["PNG", png],
            ["MCAP", mcap],
          ] as const
        ).map(([title, work]) => (
          <button key={title} type="button" class="small" data-download={title} onClick={work}>
            {title}
          </button>
        ))}
      </div>
    </section>
  );
}

export function Viewer(props: Props) {
  const { data, history, newest, live } = props;
  const [options, setOptions] = useState<Options>(loadOptions);
  const [view, setView] = useState<View>();
  const [body, setBody] = useState<Picked>();
  const [contact, setContact] = useState<ContactKey>();
  const [at, setAt] = useState(startTime);
  const [fitted, setFitted] = useState(0);
  const ended =
    at === undefined
      ? (newest ?? history.frames[live ? history.frames.length - 1 : 0])
      : (history.frames[history.indexAt(at)] ?? newest);
  const frame = useMemo(
    () => ended && atEvaluation(ended, options.evaluation),
    [ended, options.evaluation],
  );
  const wait = view?.pace.slow ? SLOW_CURVES_MS : CURVES_MS;
  const curves = useCalm(newest ?? history.frames.length, wait);
  const told = useCalm(frame, live && at === undefined ? TEXT_MS : 0);
  useEffect(() => {
    const fitting = view && frame ? view.fittingScale(frame) : 0;
    if (fitting > 0 && (fitted === 0 || fitting < fitted / OUTGROWN)) setFitted(fitting);
  }, [view, frame, fitted]);
  const scale = options.scale || fitted || 0.01;
  const shown = useMemo(() => ({ ...options, scale }), [options, scale]);
  const change = (next: Options) => {
    const own = next.scale === scale ? options.scale : next.scale;
    setOptions({ ...next, scale: own });
    keepOptions({ ...next, scale: 0, evaluation: -1 });
    props.asks?.(wantsEvaluations(next));
  };
  useEffect(() => {
    props.asks?.(wantsEvaluations(options));
  }, []);
  const hit = (found: Hit) => {
    setBody(found.body);
    const set = found.contact && frame?.contacts[found.contact.world];
    setContact(
      set && found.contact ? keyOf(set, found.contact.world, found.contact.index) : undefined,
    );
  };
  useEffect(() => {
    // for scripts and tests: the page's data
    Object.assign(window, { tribodView: view && { view, history, frame: () => frame } });
  }, [view, frame]);
  const seek = (time: number | undefined) => {
    setAt(time);
  };
  useEffect(() => {
    const timer = window.setTimeout(() => {
      setQuery("t", at === undefined ? "" : at.toFixed(4));
    }, 300);
    return () => {
      window.clearTimeout(timer);
    };
  }, [at]);
  // an element that stays the same is not looked at when a frame comes
  const timeline = useMemo(
    () => (
      <Timeline
        frames={history.frames}
        version={curves}
        at={at}
        seek={seek}
        contact={contact}
        live={live}
      />
    ),
    [history, curves, told, at, contact, live],
  );
  return (
    <div class="live">
      <div>
        <Stage
          scene={data.scene}
          assets={data.assets}
          worlds={props.worlds}
          options={shown}
          frame={frame}
          told={told}
          chosen={body}
          note={props.note}
          hit={hit}
          made={setView}
        />
        {timeline}
      </div>
      <div class="side">
        {frame && contact && <PickedContact scene={data.scene} frame={frame} contact={contact} />}
        {frame && body && <PickedBody scene={data.scene} frame={frame} picked={body} />}
        {props.children}
        <Panel
          options={shown}
          evaluations={frame?.evaluations.map((e) => e.time) ?? []}
          change={change}
        />
        <Downloads {...props} view={view} frame={frame} />
      </div>
    </div>
  );
}
