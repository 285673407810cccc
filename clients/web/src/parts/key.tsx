// The box that takes an API key. The key stays in this tab's session storage.
import { useEffect, useRef } from "preact/hooks";

import { caller, key } from "../wire/api";
import { cell, useCell } from "../wire/cell";
import { Command } from "./command";

const asked = cell(false);

export function askForKey(): void {
  asked.set(true);
}

export function KeyBox() {
  const dialog = useRef<HTMLDialogElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const open = useCell(asked);
  const who = useCell(caller);
  const has = useCell(key) !== "";
  useEffect(() => {
    if (open && !dialog.current?.open) dialog.current?.showModal();
    if (!open) dialog.current?.close();
  }, [open]);
  const close = () => {
    asked.set(false);
  };
  const submit = (event: Event) => {
    event.preventDefault();
    const text = input.current?.value.trim() ?? "";
    if (!text) return;
    if (input.current) input.current.value = "";
    key.set(text);
    close();
  };
  const forget = () => {
    key.set("");
    close();
  };
  return (
    <dialog ref={dialog} onClose={close} aria-labelledby="key-title">
      <form class="key" onSubmit={submit}>
        <h2 id="key-title">API key</h2>
        {who.refused && <p class="failure">{who.refused}</p>}
        <label for="key">The key is kept until this tab closes.</label>
        <input
          id="key"
          ref={input}
          type="password"
          autocomplete="off"
          spellcheck={false}
          placeholder="tribo_..."
        />
        <div class="buttons">
          <button class="main">Use it</button>
          {has && (
            <button type="button" onClick={forget}>
              Forget the key
            </button>
          )}
          <button type="button" onClick={close}>
            Cancel
          </button>
        </div>
        <p class="soft">On the machine of the daemon, a key is made by</p>
        <Command text="tribod --data tribod-data --create-key NAME --scope run" />
      </form>
    </dialog>
  );
}

/** The caller in the header; opens the box. */
export function Caller() {
  const who = useCell(caller);
  const has = useCell(key) !== "";
  const text = who.refused
    ? "key refused"
    : has || who.name !== "anonymous"
      ? `${who.name || "no key"} \u00b7 ${who.scope}`
      : `no key \u00b7 ${who.scope}`;
  return (
    <button type="button" class={who.refused ? "caller bad" : "caller"} onClick={askForKey}>
      {text}
    </button>
  );
}
