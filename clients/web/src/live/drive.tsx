// Steps a session from the page: play in real time or slower, single steps, reset, controls by
// sliders. Shown to callers whose scope may step.
import { create } from "@bufbuild/protobuf";
import { useEffect, useRef, useState } from "preact/hooks";

import { ArraySchema, DataType, type Array as WireArray } from "../../generated/tribo/v1/common_pb";
import type { ActuatorInfo, GetSceneResponse } from "../../generated/tribo/v1/simulation_pb";
import { figure } from "../format";
import { Failure } from "../parts/failure";
import { simulation } from "../wire/api";

const TICK_MS = 33;
const SPEEDS: readonly (readonly [number, string])[] = [
  [1, "real time"],
  [0.5, "1/2"],
  [0.1, "1/10"],
  [0.02, "1/50"],
];

function floats(values: readonly number[]): WireArray {
  return create(ArraySchema, {
    dtype: DataType.FLOAT64,
    shape: [BigInt(values.length)],
    data: new Uint8Array(Float64Array.from(values).buffer),
  });
}

/** Ends of the slider of an actuator. */
function range(actuator: ActuatorInfo): [number, number] {
  if (actuator.controlLimited) return [actuator.controlLower, actuator.controlUpper];
  if (actuator.forceLimited) return [actuator.forceLower, actuator.forceUpper];
  return [-10, 10];
}

function Sliders(props: {
  scene: GetSceneResponse;
  values: readonly number[];
  set(values: number[]): void;
}) {
  const { scene, values, set } = props;
  return (
    <>
      {scene.actuatorInfos.map((actuator, i) => {
        const [low, high] = range(actuator);
        const value = values[i] ?? 0;
        return (
          <label class="slider" key={i}>
            {actuator.name || `actuator ${String(i)}`}
            <input
              type="range"
              min={low}
              max={high}
              step={(high - low) / 200}
              value={value}
              onInput={(event) => {
                const next = [...values];
                next[i] = Number(event.currentTarget.value);
                set(next);
              }}
            />
            <output>{figure(value)}</output>
          </label>
        );
      })}
    </>
  );
}

export function Drive(props: { session: string; scene: GetSceneResponse; controls: readonly number[] }) {
  const { session, scene } = props;
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(1);
  const [failure, setFailure] = useState<unknown>();
  const [values, setValues] = useState<readonly number[]>(props.controls);
  const wanted = useRef<readonly number[]>();
  const step = async (steps: number) => {
    const controls = wanted.current;
    wanted.current = undefined;
    await simulation.step({
      sessionId: session,
      steps,
      ...(controls ? { controls: floats(controls) } : {}),
    });
  };
  const guarded = (work: Promise<unknown>) => {
    work.then(
      () => {
        setFailure(undefined);
      },
      (error: unknown) => {
        setFailure(error);
        setPlaying(false);
      },
    );
  };
  useEffect(() => {
    if (!playing) return;
    let stopped = false;
    let owed = 0;
    let last = performance.now();
    const round = async (): Promise<void> => {
      while (!stopped) {
        const now = performance.now();
        // a page that was hidden does not make up for that time
        owed += (speed * Math.min(now - last, 4 * TICK_MS)) / 1000 / scene.dt;
        last = now;
        const steps = Math.floor(owed);
        owed -= steps;
        if (steps > 0) await step(steps);
        await new Promise((done) => setTimeout(done, TICK_MS));
      }
    };
    guarded(round());
    return () => {
      stopped = true;
    };
  }, [playing, speed]);
  const change = (next: number[]) => {
    setValues(next);
    wanted.current = next;
  };
  return (
    <section aria-label="Step the session">
      <h2>Step</h2>
      {failure !== undefined && <Failure error={failure} />}
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
        <button
          type="button"
          disabled={playing}
          onClick={() => {
            guarded(step(1));
          }}
        >
          one step
        </button>
        <button
          type="button"
          onClick={() => {
            setPlaying(false);
            guarded(simulation.reset({ sessionId: session }));
          }}
        >
          reset
        </button>
        <label>
          <span class="unseen">Speed</span>
          <select
            value={String(speed)}
            onChange={(event) => {
              setSpeed(Number(event.currentTarget.value));
            }}
          >
            {SPEEDS.map(([value, title]) => (
              <option key={value} value={String(value)}>
                {title}
              </option>
            ))}
          </select>
        </label>
      </div>
      <Sliders scene={scene} values={values} set={change} />
    </section>
  );
}
