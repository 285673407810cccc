// Starts a grasp job from files: a hand, an object, the files that both refer to, and poses about a
// point of the object.
import { useState } from "preact/hooks";

import { Failure } from "../parts/failure";
import { link } from "../route";
import { allows, caller, grasp, simulation } from "../wire/api";
import { useCell } from "../wire/cell";
import { sample } from "./poses";

const PROFILES = [
  ...["panda", "robotiq_2f85", "robotiq_3f", "shadow", "allegro", "leap", "barrett", "jaco"],
] as const;

/** The main file is the first whose name says that it is a model or a mesh. */
const MAIN = /\.(xml|mjcf|urdf|obj|stl|dae|msh)$/i;

interface Uploaded {
  data: Uint8Array;
  path: string;
  files: { path: string; sha256: string }[];
}

async function upload(files: readonly File[]): Promise<Uploaded> {
  const main = files.find((file) => /\.(xml|mjcf|urdf)$/i.test(file.name)) ?? files.find((file) => MAIN.test(file.name));
  if (!main) throw new Error("Choose a model (MJCF, URDF) or a mesh (OBJ, STL, DAE, MSH).");
  const rest = files.filter((file) => file !== main);
  const uploaded = await Promise.all(
    rest.map(async (file) => {
      const data = new Uint8Array(await file.arrayBuffer());
      const { sha256 } = await simulation.createAsset({ name: file.name, data });
      return { path: file.name, sha256 };
    }),
  );
  return { data: new Uint8Array(await main.arrayBuffer()), path: main.name, files: uploaded };
}

function filesOf(form: FormData, name: string): File[] {
  return form.getAll(name).filter((value) => value instanceof File && value.size > 0) as File[];
}

function numberOf(form: FormData, name: string): number {
  return Number(form.get(name) ?? 0);
}

async function submit(form: FormData): Promise<string> {
  const [object, hand] = await Promise.all([
    upload(filesOf(form, "object")),
    upload(filesOf(form, "hand")),
  ]);
  const asset = (from: Uploaded) => ({
    main: { case: "data" as const, value: from.data },
    path: from.path,
    files: from.files,
  });
  const centre = [numberOf(form, "x"), numberOf(form, "y"), numberOf(form, "z")] as const;
  const force = numberOf(form, "force");
  const answer = await grasp.submitGrasps({
    grasps: {
      object: { asset: asset(object), friction: numberOf(form, "friction") },
      hand: { asset: asset(hand), profile: String(form.get("profile") ?? "") },
      poses: sample(numberOf(form, "count"), centre).map(({ name, position, orientation }) => ({
        name,
        pose: { position, orientation },
        force,
      })),
      protocol: { approachDistance: numberOf(form, "approach") },
      perturbation: {
        count: numberOf(form, "copies"),
        seed: 1n,
        position: 0.003,
        angle: 0.05,
        friction: 0.1,
        mass: 0.1,
      },
      label: String(form.get("label") ?? ""),
    },
  });
  return answer.job?.id ?? "";
}

function Field(props: { name: string; title: string; value: number; least?: number; step?: number }) {
  return (
    <label>
      {props.title}
      <input
        name={props.name}
        type="number"
        min={props.least}
        step={props.step ?? "any"}
        defaultValue={String(props.value)}
        required
      />
    </label>
  );
}

function Form() {
  const [failure, setFailure] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const send = (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    setFailure(undefined);
    submit(new FormData(event.currentTarget as HTMLFormElement)).then(
      (id) => {
        location.hash = link("grasps", id).slice(1);
      },
      (error: unknown) => {
        setFailure(error);
        setBusy(false);
      },
    );
  };
  return (
    <form class="job" onSubmit={send}>
      <label class="wide">
        Object: a mesh or a model of one body, with the files that it refers to
        <input name="object" type="file" multiple required />
      </label>
      <label class="wide">
        Hand: a model, with the files that it refers to
        <input name="hand" type="file" multiple required />
      </label>
      <label>
        known hand
        <select name="profile">
          <option value="">none of these</option>
          {PROFILES.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <Field name="count" title="directions" value={24} least={1} step={1} />
      <Field name="copies" title="copies of each" value={5} least={1} step={1} />
      <Field name="force" title="force, N (0: the model's)" value={0} least={0} />
      <Field name="friction" title="friction (0: the model's)" value={0} least={0} />
      <Field name="approach" title="approach, m" value={0.1} least={0} />
      <Field name="x" title="centre x, m" value={0} />
      <Field name="y" title="centre y, m" value={0} />
      <Field name="z" title="centre z, m" value={0.05} />
      <label>
        label
        <input name="label" type="text" maxLength={200} />
      </label>
      {failure !== undefined && <Failure error={failure} />}
      <button class="main" disabled={busy}>
        {busy ? "uploading" : "Start the job"}
      </button>
    </form>
  );
}

/** Shown to callers with the scope `run`. */
export function NewJob() {
  const who = useCell(caller);
  if (!allows(who.scope, "run")) return null;
  return (
    <details class="card">
      <summary>New job: upload a hand and an object, try directions from above</summary>
      <Form />
    </details>
  );
}
