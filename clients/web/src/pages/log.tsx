// The end of the daemon's log, for admins.
import { useState } from "preact/hooks";

import { Failure } from "../parts/failure";
import { simulation } from "../wire/api";
import { usePoll } from "../wire/poll";

const INTERVAL_MS = 2000;
const LINES = 200;

export function Log() {
  const [text, setText] = useState("");
  const { data, error } = usePoll(
    (signal) => simulation.getLog({ lines: LINES }, { signal }),
    INTERVAL_MS,
    [],
  );
  const lines = data?.lines.filter((line) => line.toLowerCase().includes(text.toLowerCase())) ?? [];
  return (
    <>
      <h2>Log</h2>
      {error !== undefined && <Failure error={error} />}
      <div class="filters">
        <label>
          <span class="unseen">Search the log</span>
          <input
            type="search"
            placeholder="search"
            value={text}
            onInput={(event) => {
              setText(event.currentTarget.value);
            }}
          />
        </label>
      </div>
      <pre class="log" tabIndex={0} aria-label="The end of the log">
        {lines.join("\n") || "no line"}
      </pre>
    </>
  );
}
