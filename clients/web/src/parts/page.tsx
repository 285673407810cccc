// The frame of a page: its title, which also names the tab, and the controls beside it.
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

export function Page(props: {
  title: string;
  beside?: ComponentChildren;
  children: ComponentChildren;
}) {
  useEffect(() => {
    document.title = `${props.title} \u2013 Tribod`;
  }, [props.title]);
  return (
    <main id="main" tabIndex={-1}>
      <div class="title">
        <h1>{props.title}</h1>
        {props.beside}
      </div>
      {props.children}
    </main>
  );
}

/** Facts as pairs of a name and a value. */
export function Facts({ rows }: { rows: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
