// A command for a shell, with a button that copies it.
import { useState } from "preact/hooks";

const SHOWN_MS = 1500;

async function copy(text: string): Promise<void> {
  // pages over plain HTTP have no clipboard of their own
  if (window.isSecureContext) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

export function Command({ text }: { text: string }) {
  const [done, setDone] = useState(false);
  const press = () => {
    void copy(text).then(() => {
      setDone(true);
      window.setTimeout(() => {
        setDone(false);
      }, SHOWN_MS);
    });
  };
  return (
    <div class="command">
      <code tabIndex={0}>{text}</code>
      <button type="button" onClick={press} aria-label={`Copy: ${text}`}>
        {done ? "copied" : "copy"}
      </button>
    </div>
  );
}
