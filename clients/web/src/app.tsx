// The frame of the dashboard: header, navigation, state of the connection, and the page of the
// address. Pages with a scene load three.js when they are opened.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";

import { duration } from "./format";
import { Benchmarks } from "./pages/benchmarks";
import { Compare } from "./pages/compare";
import { Grasps } from "./pages/grasps";
import { Job } from "./pages/job";
import { Overview } from "./pages/overview";
import { RunPage } from "./pages/run";
import { RunsPage } from "./pages/runs";
import { Server } from "./pages/server";
import { Sessions } from "./pages/sessions";
import { Caller, KeyBox } from "./parts/key";
import { link, route, type Route } from "./route";
import { useCell } from "./wire/cell";
import { health, lookNow } from "./wire/health";

const TABS = [
  ["overview", ""],
  ["sessions", "sessions"],
  ["grasps", "grasps"],
  ["runs", "runs"],
  ["benchmarks", "benchmarks"],
  ["server", "server"],
] as const;

/** Which tab a page belongs to. */
const PARENT: Record<string, string> = { live: "sessions", compare: "runs", recording: "runs", replay: "grasps" };

/** A component of a part that is loaded when it is first shown. */
function Later(props: { load: () => Promise<ComponentType> }) {
  const [Loaded, setLoaded] = useState<ComponentType>();
  useEffect(() => {
    void props.load().then((component) => {
      setLoaded(() => component);
    });
  }, []);
  return Loaded ? <Loaded /> : <main id="main" class="soft">loading the view</main>;
}

function Body({ at }: { at: Route }) {
  const [name = "", first = "", second = ""] = at.path;
  switch (name) {
    case "sessions":
      return <Sessions />;
    case "live":
      return <Later key={`live${first}`} load={async () => (await import("./live/page")).Live} />;
    case "recording":
      return (
        <Later
          key={at.path.join("/")}
          load={async () => (await import("./live/recording")).Recording}
        />
      );
    case "replay":
      return (
        <Later
          key={at.path.join("/")}
          load={async () => (await import("./live/replay")).Replay}
        />
      );
    case "grasps":
      return first ? <Job key={first} id={first} /> : <Grasps />;
    case "runs":
      return first ? <RunPage key={first} id={first} /> : <RunsPage />;
    case "compare":
      return <Compare key={first + second} a={first} b={second} />;
    case "benchmarks":
      return <Benchmarks />;
    case "server":
      return <Server />;
    default:
      return <Overview />;
  }
}

function State() {
  const now = useCell(health);
  const [, tick] = useState(0);
  useEffect(() => {
    if (now.state !== "lost") return;
    const timer = window.setInterval(() => {
      tick((n) => n + 1);
    }, 500);
    return () => {
      window.clearInterval(timer);
    };
  }, [now.state]);
  if (now.state === "connecting") return <span class="state soft">connecting</span>;
  if (now.state === "lost") return <span class="state bad">no answer</span>;
  return <span class={now.state === "ready" ? "state good" : "state warn"}>{now.text}</span>;
}

/** Says that the daemon does not answer, since when, and when it is asked again. */
function Lost() {
  const now = useCell(health);
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = window.setInterval(() => {
      tick((n) => n + 1);
    }, 500);
    return () => {
      window.clearInterval(timer);
    };
  }, []);
  if (now.state !== "lost") return null;
  const ago = duration(Math.round((Date.now() - now.since) / 1000));
  const next = Math.max(0, Math.ceil((now.next - Date.now()) / 1000));
  return (
    <div class="lost">
      The daemon has not answered for {ago}. What you see is the last that it said; the page asks
      again in {next} s and goes on by itself.{" "}
      <button type="button" onClick={lookNow}>
        Ask now
      </button>
    </div>
  );
}

export function App() {
  const at = useCell(route);
  const name = at.path[0] ?? "";
  const current = PARENT[name] ?? name;
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => {
        event.preventDefault();
        document.getElementById("main")?.focus();
      }}>
        To the content
      </a>
      <header>
        <a class="brand" href="#/">
          Tribod
        </a>
        <span role="status" aria-live="polite">
          <State />
        </span>
        <nav aria-label="Pages">
          {TABS.map(([title, path]) => (
            <a
              key={path}
              href={path ? link(path) : "#/"}
              {...(current === path ? { "aria-current": "page" as const } : {})}
            >
              {title}
            </a>
          ))}
        </nav>
        <Caller />
      </header>
      <Lost />
      <Body at={at} />
      <KeyBox />
      <footer>
        <a href="/metrics">metrics</a> &middot; <a href="/livez">liveness</a> &middot;{" "}
        <a href="/readyz">readiness</a> &middot; <a href="/licences.txt">licences</a>
      </footer>
    </>
  );
}
