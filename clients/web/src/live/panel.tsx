// The panel beside the view: choice of the drawn items, and the scale of arrows.
import { STATUS_COLOURS } from "./contacts";
import { type Options, type Toggle, TOGGLES } from "./options";
import { ContactStatus } from "../../generated/tribo/v1/common_pb";
import { word } from "../format";

interface Props {
  options: Options;
  /** Times (s) of the evaluations that may be chosen; empty: none are known. */
  evaluations: readonly number[];
  change(options: Options): void;
}

/** A slider whose steps are decades. */
function Decades(props: { label: string; value: number; least: number; most: number; set(x: number): void }) {
  return (
    <label class="slider">
      {props.label}
      <input
        type="range"
        min={Math.log10(props.least)}
        max={Math.log10(props.most)}
        step={0.05}
        value={Math.log10(props.value)}
        aria-valuetext={String(Number(props.value.toPrecision(2)))}
        onInput={(event) => {
          props.set(10 ** Number(event.currentTarget.value));
        }}
      />
      <output>{Number(props.value.toPrecision(2))}</output>
    </label>
  );
}

/** Chooses the evaluation of the step that is drawn. */
function Evaluations({ options, evaluations, change }: Props) {
  const last = evaluations.length - 1;
  const chosen = Math.min(options.evaluation, last);
  const time = evaluations[chosen];
  const text = time === undefined ? "end of step" : `${String(chosen + 1)}, at ${String(Number((1e3 * time).toPrecision(3)))} ms`;
  return (
    <label class="slider" data-evaluations={evaluations.length}>
      evaluation
      <input
        type="range"
        min={-1}
        max={last}
        step={1}
        value={chosen}
        aria-valuetext={text}
        onInput={(event) => {
          change({ ...options, evaluation: Number(event.currentTarget.value) });
        }}
      />
      <output>{text}</output>
    </label>
  );
}

export function Panel({ options, evaluations, change }: Props) {
  const toggle = (name: Toggle) => {
    change({ ...options, [name]: !options[name] });
  };
  return (
    <section aria-label="What is drawn">
      <h2>Show</h2>
      <div class="toggles">
        {TOGGLES.map(([name, title]) => (
          <label key={name}>
            <input
              type="checkbox"
              checked={options[name]}
              onChange={() => {
                toggle(name);
              }}
            />{" "}
            {title}
          </label>
        ))}
      </div>
      {evaluations.length > 0 && (
        <Evaluations options={options} evaluations={evaluations} change={change} />
      )}
      <Decades
        label="arrows, m/N"
        value={options.scale}
        least={1e-5}
        most={1}
        set={(scale) => {
          change({ ...options, scale });
        }}
      />
      <Decades
        label="points"
        value={options.pointSize}
        least={0.2}
        most={5}
        set={(pointSize) => {
          change({ ...options, pointSize });
        }}
      />
      <p class="legend">
        {[ContactStatus.STICK, ContactStatus.SLIP, ContactStatus.OPEN].map((status) => (
          <span key={status}>
            <svg viewBox="0 0 10 10" aria-hidden="true">
              <circle cx="5" cy="5" r="5" fill={STATUS_COLOURS[status]} />
            </svg>
            {word(ContactStatus, status)}
          </span>
        ))}
      </p>
    </section>
  );
}
