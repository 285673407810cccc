// Under the view: a slider over the frames that are there, play and loop, and curves under the same
// cursor.
import { useEffect, useMemo, useState } from "preact/hooks";

import { figure } from "../format";
import { Curve, type Line } from "../parts/curve";
import type { Frame } from "./frame";
import { type ContactKey, findContact, forcesOf } from "./picked";

const MOST_POINTS = 1200;
const TICK_MS = 33;

interface Props {
  frames: readonly Frame[];
  /** Changes when frames were added. */
  version: unknown;
  /** s; undefined: the newest frame is shown as it comes. */
  at: number | undefined;
  seek(time: number | undefined): void;
  contact: ContactKey | undefined;
  /** Frames come by themselves: the newest can be followed. */
  live: boolean;
}

type Read = (frame: Frame) => number | null;

function certificate(read: (c: Frame["certificates"][number]) => number): Read {
  return (frame) => {
    const values = frame.certificates.map(read);
    return values.length > 0 ? Math.max(...values) : null;
  };
}

function contactForce(key: ContactKey, which: "normal" | "friction"): Read {
  return (frame) => {
    const set = frame.contacts[key.world];
    const i = findContact(frame, key);
    return set && i >= 0 ? forcesOf(set, i)[which] : null;
  };
}

interface Chart {
  label: string;
  logarithmic: boolean;
  lines: readonly (readonly [string, string, Read])[];
}

function charts(contact: ContactKey | undefined): Chart[] {
  const list: Chart[] = [
    {
      label: "residual",
      logarithmic: true,
      lines: [["residual", "mark", certificate((c) => c.residual)]],
    },
    {
      label: "penetration, m",
      logarithmic: false,
      lines: [["penetration, m", "mark", certificate((c) => c.penetration)]],
    },
    {
      label: "iterations",
      logarithmic: false,
      lines: [["iterations", "mark", certificate((c) => c.iterations)]],
    },
    {
      label: "energy, J",
      logarithmic: false,
      lines: [["energy, J", "mark", certificate((c) => c.energy)]],
    },
  ];
  if (contact)
    list.unshift({
      label: "forces of the chosen contact, N",
      logarithmic: false,
      lines: [
        ["normal, N", "bad", contactForce(contact, "normal")],
        ["friction, N", "mark", contactForce(contact, "friction")],
      ],
    });
  return list;
}

/** Frames thinned to as many as a curve shows. */
function thinned(frames: readonly Frame[]): readonly Frame[] {
  const every = Math.ceil(frames.length / MOST_POINTS);
  return every <= 1 ? frames : frames.filter((_, i) => i % every === 0 || i === frames.length - 1);
}

/** Plays the received states in simulated time. */
function usePlay(props: Props, playing: boolean, loop: boolean, stop: () => void): void {
  const { frames, seek } = props;
  useEffect(() => {
    if (!playing) return;
    const first = frames[0]?.time ?? 0;
    const last = () => frames.at(-1)?.time ?? 0;
    let time = props.at === undefined || props.at >= last() ? first : props.at;
    let before = performance.now();
    const timer = window.setInterval(() => {
      const now = performance.now();
      time += (now - before) / 1000;
      before = now;
      if (time > last()) {
        if (!loop) {
          stop();
          return;
        }
        time = first;
      }
      seek(time);
    }, TICK_MS);
    return () => {
      window.clearInterval(timer);
    };
  }, [playing, loop]);
}

export function Timeline(props: Props) {
  const { frames, version, at, seek, contact, live } = props;
  const [playing, setPlaying] = useState(false);
  const [loop, setLoop] = useState(false);
  usePlay(props, playing, loop, () => {
    setPlaying(false);
  });
  const first = frames[0]?.time ?? 0;
  const last = frames.at(-1)?.time ?? 0;
  const now = at ?? (live ? last : first);
  const step = Math.max((last - first) / 2000, 1e-6);
  const shown = useMemo(() => thinned([...frames]), [frames, version]);
  const x = useMemo(() => shown.map((frame) => frame.time), [shown]);
  return (
    <section aria-label="Time" class="timeline">
      <div class="buttons">
        <button
          type="button"
          aria-pressed={playing}
          onClick={() => {
            setPlaying(!playing);
          }}
        >
          {playing ? "stop" : "play"}
        </button>
        <label>
          <input
            type="checkbox"
            checked={loop}
            onChange={() => {
              setLoop(!loop);
            }}
          />{" "}
          loop
        </label>
        {live && (
          <button
            type="button"
            aria-pressed={at === undefined}
            onClick={() => {
              setPlaying(false);
              seek(at === undefined ? last : undefined);
            }}
          >
            {at === undefined ? "hold" : "live"}
          </button>
        )}
        <input
          class="time"
          type="range"
          aria-label="Time, s"
          aria-valuetext={`${figure(now)} s`}
          min={first}
          max={last}
          step={step}
          value={now}
          onInput={(event) => {
            setPlaying(false);
            // by rounding, the end of the slider can lie before the last frame
            const value = Number(event.currentTarget.value);
            seek(value > last - step / 2 ? last : value);
          }}
        />
        <output>{now.toFixed(3)} s</output>
      </div>
      {shown.length > 1 && (
        <div class="curves">
          {charts(contact).map(({ label, logarithmic, lines }) => {
            const drawn: Line[] = lines.map(([name, colour, read]) => ({
              label: name,
              colour,
              values: shown.map(read),
            }));
            return (
              <Curve
                key={label}
                label={`${label} over time`}
                x={x}
                lines={drawn}
                logarithmic={logarithmic}
                group="timeline"
                height={130}
                at={at}
                press={seek}
              />
            );
          })}
        </div>
      )}
    </section>
  );
}
