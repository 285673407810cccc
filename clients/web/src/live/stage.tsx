// The canvas with its view. The view lives as long as the scene and the number of worlds stay.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import type { GetSceneResponse } from "../../generated/tribo/v1/simulation_pb";
import { number } from "../format";
import type { Picked } from "./bodies";
import type { Frame } from "./frame";
import type { Assets } from "./geometry";
import type { Options } from "./options";
import type { Figures } from "./pace";
import { type Hit, View } from "./view";

const FIGURES_MS = 500;
/** px; a press that moves further turns the camera and chooses nothing. */
const STILL = 4;

interface Props {
  scene: GetSceneResponse;
  assets: Assets;
  worlds: number;
  options: Options;
  frame: Frame | undefined;
  /** The frame that the text is about. */
  told: Frame | undefined;
  chosen: Picked | undefined;
  note: string;
  hit(hit: Hit): void;
  made(view: View | undefined): void;
}

function useView(props: Props, canvas: { current: HTMLCanvasElement | null }): View | undefined {
  const [view, setView] = useState<View>();
  const { scene, assets, worlds } = props;
  useEffect(() => {
    if (!canvas.current) return;
    const made = new View(canvas.current, scene, assets, worlds, props.options);
    setView(made);
    props.made(made);
    return () => {
      props.made(undefined);
      made.dispose();
    };
  }, [scene, assets, worlds]);
  useEffect(() => {
    view?.setOptions(props.options);
  }, [view, props.options]);
  useEffect(() => {
    view?.choose(props.chosen);
  }, [view, props.chosen]);
  // other effects wait for the frame of the screen to end, and would show every second frame
  useLayoutEffect(() => {
    if (props.frame) view?.show(props.frame);
  }, [view, props.frame]);
  return view;
}

function FiguresText({ view, frame }: { view: View | undefined; frame: Frame | undefined }) {
  const [figures, setFigures] = useState<Figures>();
  useEffect(() => {
    const timer = window.setInterval(() => {
      setFigures(view?.pace.figures());
    }, FIGURES_MS);
    return () => {
      window.clearInterval(timer);
    };
  }, [view]);
  const contacts = frame?.contacts.reduce((sum, set) => sum + set.count, 0) ?? 0;
  return (
    <div class="figures">
      {frame ? `${frame.time.toFixed(3)} s, step ${number(frame.steps)}, ${number(contacts)} contacts` : ""}
      {figures && figures.rate > 0 && ` \u00b7 ${number(figures.rate)} frames/s`}
      {figures && Number.isFinite(figures.latency) && ` \u00b7 ${number(figures.latency)} ms old`}
    </div>
  );
}

export function Stage(props: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const down = useRef<[number, number]>([0, 0]);
  const view = useView(props, canvas);
  const press = (event: PointerEvent) => {
    down.current = [event.offsetX, event.offsetY];
  };
  const release = (event: PointerEvent) => {
    const [x, y] = down.current;
    if (Math.hypot(event.offsetX - x, event.offsetY - y) > STILL || !view) return;
    props.hit(view.pick(event.offsetX, event.offsetY));
  };
  return (
    <div class="stage">
      <canvas
        ref={canvas}
        tabIndex={0}
        role="img"
        aria-label="The scene. Drag to turn, wheel to zoom, right button or arrow keys to move, press to choose a body or a contact."
        onPointerDown={press}
        onPointerUp={release}
      />
      {props.note && (
        <p class="note" role="status">
          {props.note}
        </p>
      )}
      <FiguresText view={view} frame={props.told} />
    </div>
  );
}
