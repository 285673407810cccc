// A box that widens a list from this daemon to all daemons of its fleet, where it has one.
import { setQuery } from "../route";
import { caller } from "../wire/api";
import { useCell } from "../wire/cell";

export function FleetBox({ fleet }: { fleet: boolean }) {
  const known = useCell(caller).fleet;
  if (!known && !fleet) return null;
  return (
    <label>
      <input
        type="checkbox"
        name="fleet"
        checked={fleet}
        onChange={() => {
          setQuery("fleet", fleet ? "" : "1");
        }}
      />{" "}
      of the whole fleet
    </label>
  );
}
