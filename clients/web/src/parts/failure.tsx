// A failure in words, with the way on where it is a matter of the key.
import { isRefused, words } from "../wire/api";
import { askForKey } from "./key";

export function Failure({ error }: { error: unknown }) {
  return (
    <p class="failure" role="alert">
      {words(error)}{" "}
      {isRefused(error) && (
        <button type="button" onClick={askForKey}>
          Use another key
        </button>
      )}
    </p>
  );
}
