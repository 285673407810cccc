// Curves by uPlot, in the colours of the page.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import { figure } from "../format";

export interface Line {
  label: string;
  /** Name of a colour of the style sheet: "mark", "good", "warn", "bad", "soft". */
  colour: string;
  values: readonly (number | null)[];
  /** Text beside the value under the cursor. */
  note?(index: number): string;
  dashed?: boolean;
  points?: boolean;
  hidden?: boolean;
}

interface Props {
  label: string;
  x: readonly number[];
  lines: readonly Line[];
  /** Two lines with the area between them shaded: [upper, lower]. */
  band?: readonly [number, number];
  logarithmic?: boolean;
  height?: number;
  /** Curves of one group share the cursor. */
  group?: string;
  /** Text of a place on the x axis; absent: the number. */
  place?(x: number): string;
  /** Follows the cursor; null: it has left. */
  point?(index: number | null): void;
  /** Where a line is drawn across. */
  at?: number | undefined;
  /** A press on the curve, at this x. */
  press?(x: number): void;
}

function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** A logarithmic axis needs a value that it can show. */
function isLogarithmic(props: Props): boolean {
  return (
    props.logarithmic === true &&
    props.lines.some((line) => line.values.some((y) => y !== null && y > 0))
  );
}

function series(line: Line): uPlot.Series {
  return {
    label: line.label,
    stroke: line.hidden ? "transparent" : colour(line.colour),
    width: line.hidden ? 0 : 1.5,
    ...(line.dashed ? { dash: [4, 4] } : {}),
    points: { show: line.points ?? false, size: 6, fill: colour(line.colour) },
    value: (_, value: number | null, __, index) => {
      if (value === null || index === null) return "\u2013";
      return figure(value) + (line.note ? ` \u00b7 ${line.note(index)}` : "");
    },
  };
}

/** A value at the axis, where there is little room. */
function tick(y: number): string {
  const size = Math.abs(y);
  const rounded = Number(y.toPrecision(3));
  if (y !== 0 && (size < 1e-3 || size >= 1e5)) return rounded.toExponential().replace("e+", "e");
  return String(rounded);
}

function axis(): uPlot.Axis {
  return {
    stroke: colour("soft"),
    grid: { stroke: colour("line"), width: 1 },
    ticks: { stroke: colour("line"), width: 1 },
    font: "12px ui-sans-serif, system-ui, sans-serif",
  };
}

function marker(at: { current: number | undefined }): uPlot.Plugin {
  return {
    hooks: {
      draw: (plot) => {
        if (at.current === undefined) return;
        const x = plot.valToPos(at.current, "x", true);
        const { ctx, bbox } = plot;
        ctx.save();
        ctx.strokeStyle = colour("bad");
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
        ctx.restore();
      },
    },
  };
}

function options(
  props: Props,
  width: number,
  at: { current: number | undefined },
): uPlot.Options {
  const place = props.place;
  const point = props.point;
  return {
    width,
    height: props.height ?? 200,
    cursor: props.group ? { sync: { key: props.group, setSeries: false } } : {},
    scales: { x: { time: false }, y: isLogarithmic(props) ? { distr: 3 } : {} },
    axes: [
      place ? { ...axis(), values: (_, splits) => splits.map((x) => place(x)) } : axis(),
      {
        ...axis(),
        ...(isLogarithmic(props) ? { grid: { show: false } } : {}),
        size: 64, values: (_, splits) => splits.map((y) => (y === null ? "" : tick(y))),
      },
    ],
    ...(props.band
      ? { bands: [{ series: [props.band[0] + 1, props.band[1] + 1], fill: colour("band") }] }
      : {}),
    series: [
      { label: "at", value: (_, x: number | null) => (x === null ? "\u2013" : place ? place(x) : figure(x)) },
      ...props.lines.map(series),
    ],
    ...(point
      ? { hooks: { setCursor: [(plot: uPlot) => { point(plot.cursor.idx ?? null); }] } }
      : {}),
    plugins: [marker(at)],
  };
}

/** Values that a logarithmic axis cannot show are left out. */
function data(props: Props): uPlot.AlignedData {
  const log = isLogarithmic(props);
  const fit = (y: number | null) =>
    y === null || !Number.isFinite(y) || (log && y <= 0) ? null : y;
  return [[...props.x], ...props.lines.map((line) => line.values.map(fit))] as uPlot.AlignedData;
}

export function Curve(props: Props) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>();
  const at = useRef(props.at);
  const press = useRef(props.press);
  at.current = props.at;
  press.current = props.press;
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const make = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(props, element.clientWidth, at), data(props), element);
    };
    make();
    const pressed = () => {
      const place = plot.current?.cursor.left ?? -1;
      if (place >= 0 && plot.current) press.current?.(plot.current.posToVal(place, "x"));
    };
    element.addEventListener("click", pressed);
    const resize = new ResizeObserver(() => {
      plot.current?.setSize({ width: element.clientWidth, height: props.height ?? 200 });
    });
    resize.observe(element);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", make);
    return () => {
      element.removeEventListener("click", pressed);
      scheme.removeEventListener("change", make);
      resize.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [props.label, props.lines.length, isLogarithmic(props), props.group, props.height]);
  useEffect(() => {
    plot.current?.setData(data(props));
  }, [props.x, props.lines]);
  useEffect(() => {
    plot.current?.redraw(false);
  }, [props.at]);
  return <div class="curve" ref={place} role="img" aria-label={props.label} />;
}
