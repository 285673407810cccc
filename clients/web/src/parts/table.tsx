// A table whose head sorts it, by mouse and by keyboard.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { Failure } from "./failure";

export interface Column<T> {
  title: string;
  kind?: "number" | "id";
  show(row: T): ComponentChildren;
  /** The sort key; absent: the column does not sort. */
  sort?(row: T): number | string | bigint;
}

interface Props<T> {
  caption: string;
  columns: readonly Column<T>[];
  rows: readonly T[] | undefined;
  /** Names the subject of a row, for the list of rows. */
  rowKey(row: T): string;
  /** Shown instead of rows where there are none. */
  empty: ComponentChildren;
  error?: unknown;
}

interface Order {
  column: number;
  down: boolean;
}

function compare(a: number | string | bigint, b: number | string | bigint): number {
  if (typeof a === "string" || typeof b === "string")
    return String(a).localeCompare(String(b), "en", { numeric: true });
  return a < b ? -1 : Number(a > b);
}

function sorted<T>(props: Props<T>, order: Order | undefined): readonly T[] {
  const rows = props.rows ?? [];
  const sort = order && props.columns[order.column]?.sort;
  if (!sort) return rows;
  const sign = order.down ? -1 : 1;
  return [...rows].sort((a, b) => sign * compare(sort(a), sort(b)));
}

function Head<T>(props: {
  column: Column<T>;
  order: "ascending" | "descending" | "none";
  press(): void;
}) {
  const { column, order } = props;
  if (!column.sort)
    return (
      <th scope="col" class={column.kind}>
        {column.title}
      </th>
    );
  return (
    <th scope="col" class={column.kind} aria-sort={order}>
      <button type="button" class="sort" onClick={props.press}>
        {column.title}
      </button>
    </th>
  );
}

export function Table<T>(props: Props<T>) {
  const [order, setOrder] = useState<Order>();
  const { columns, rows } = props;
  const press = (column: number) => {
    const numeric = columns[column]?.kind === "number";
    if (order?.column !== column) setOrder({ column, down: numeric });
    else if (order.down === numeric) setOrder({ column, down: !numeric });
    else setOrder(undefined);
  };
  if (props.error !== undefined) return <Failure error={props.error} />;
  if (rows?.length === 0) return <div class="empty">{props.empty}</div>;
  return (
    <div class="scroll" role="region" aria-label={props.caption} tabIndex={0}>
      <table aria-busy={rows === undefined}>
        <caption class="unseen">{props.caption}</caption>
        <thead>
          <tr>
            {columns.map((column, i) => {
              const mine = order?.column === i;
              const state = !mine ? "none" : order.down ? "descending" : "ascending";
              return (
                <Head
                  key={column.title}
                  column={column}
                  order={state}
                  press={() => {
                    press(i);
                  }}
                />
              );
            })}
          </tr>
        </thead>
        <tbody>
          {sorted(props, order).map((row) => (
            <tr key={props.rowKey(row)}>
              {columns.map((column) => (
                <td key={column.title} class={column.kind}>
                  {column.show(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
