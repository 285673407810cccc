"""Tables of run.py's measurements."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
Kind = tuple[str, str, int, int]  # scene, part, worlds, steps of the way
HOWS = [("float", 1e-3), ("float", 1e-6), ("double", 1e-3), ("double", 1e-6)]


def rate(value: float) -> str:
    """World-steps/s with three digits: 6.42 M, 321 k, 912."""
    for unit, name in ((1e6, " M"), (1e3, " k")):
        if value >= unit:
            return f"{value / unit:.3g}{name}"
    return f"{value:.3g}"


def brief(row: Row) -> str:
    """One row in a line, while things run."""
    shown = "scene part what name precision tolerance worlds steps world_steps_per_s us_per_step ms"
    shown += " residual held value unit median solver device wrong"
    words = []
    for key in shown.split():
        if key in row:
            value = row[key]
            words.append(f"{key} {value:.4g}" if isinstance(value, float) else f"{value}")
    return "  ".join(words) or str(row)[:160]


def cell(value: object) -> str:
    if value is None:
        return "null"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def grid(heads: list[str], rows: list[list[str]]) -> str:
    """Columns as wide as they must be; the first to the left, the others to the right."""
    widths = [max(len(line[i]) for line in [heads, *rows]) for i in range(len(heads))]
    out = []
    for line in [heads, ["-" * w for w in widths], *rows]:
        first = line[0].ljust(widths[0])
        cells = [cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True)]
        out.append(" | ".join([first, *cells]))
    return "\n".join(out)


def beside(rows: list[Row], at: int) -> int:
    """Steps of the motion that a row is or begins after, 0 if unknown. In older files without that
    number, a hold precedes the whole motion that it ends, and a varied one follows it."""
    row = rows[at]
    where = {"whole": at, "hold": at + 1, "varied hold": at - 1}.get(row["part"], -1)
    other = rows[where] if 0 <= where < len(rows) else {}
    keys = ("of", "scene", "worlds", "precision", "tolerance", "impratio")
    if other.get("part") != "whole" or any(other.get(key) != row.get(key) for key in keys):
        return 0
    return int(other["steps"])


def timed(rows: list[Row]) -> list[Row]:
    """Rows of ours and of the peers, each with its `way`."""
    return [
        {"way": beside(rows, i), **r}
        for i, r in enumerate(rows)
        if r["of"] in ("ours", "mujoco", "kamino")
    ]


def ours(rows: list[Row], kind: Kind, how: tuple[str, float]) -> Row | None:
    """The last of its kind, so that joined files may measure again."""
    found = [
        r for r in rows
        if r["of"] == "ours" and (r["scene"], r["part"], r["worlds"], r["way"]) == kind
        and (r["precision"], r["tolerance"]) == how
    ]  # fmt: skip
    return found[-1] if found else None


def peer(rows: list[Row], kind: Kind) -> Row | None:
    """MuJoCo Warp with its own impratio; of the boxes Kamino, whose contact is exact too. Of
    several, the last with the same number of steps."""
    scene, part, worlds, way = kind
    found = [
        r for r in rows
        if r["of"] in ("mujoco", "kamino") and r["scene"] == scene and r["worlds"] == worlds
        and r["part"] == part and r.get("impratio", 1.0) == 1.0
    ]  # fmt: skip
    best = [r for r in found if r["of"] == "kamino"] or found
    alike = [r for r in best if r["way"] == way] or best
    return alike[-1] if alike else None


def converged(row: Row) -> bool:
    """All worlds in every step; up to 56d1f20 `unconverged` counted those of the last call."""
    return not row["unconverged"] and float(row["residual"]) <= float(row["tolerance"])


def fastest(ways: list[Row | None]) -> Row | None:
    """Rows of the ways of stepping whose worlds all reached their tolerance in every step."""
    good = [w for w in ways if w is not None and converged(w)]
    return max(good, key=lambda w: float(w["world_steps_per_s"]), default=None)


def ratio(way: Row | None, other: Row | None) -> str:
    """Ours with its copies to and from the card, where they were kept, for the peer is timed by the
    clock on the wall. Ways of other steps are other work: the first of them are soon done. Kamino
    stands beside its own tolerance alone, MuJoCo Warp, which promises none, beside any."""
    if way is None or other is None:
        return ""
    if other["of"] == "kamino" and other["tolerance"] != way["tolerance"]:
        return ""
    if way["way"] and other["way"] and way["way"] != other["way"]:
        return "~"
    own = way.get("world_steps_per_s_with_copies", way["world_steps_per_s"])
    return f"{own / other['world_steps_per_s']:.2f}"


def steps(found: list[Row]) -> str:
    """The timed steps: "1500", "300 of 1500" for a cut motion, "180 after 1500" for a
    hold."""
    told = []
    for r in found:
        text = str(r["steps"])
        if r["part"] != "whole" and r["way"]:
            text += f" after {r['way']}"
        elif r.get("scene_steps", r["steps"]) > r["steps"]:
            text += f" of {r['scene_steps']}"
        told.append(text)
    return ", ".join(dict.fromkeys(told))


def kinds(rows: list[Row]) -> list[Kind]:
    """Rows of the table: all our measurements, and those of peers without one of ours."""
    own = {(r["scene"], r["part"], r["worlds"], r["way"]) for r in rows if r["of"] == "ours"}
    theirs = {(r["scene"], r["part"], r["worlds"], r["way"]) for r in rows if r["of"] != "ours"}
    told = {kind[:3] for kind in own}
    return sorted(own | {kind for kind in theirs if kind[:3] not in told})


NOTE = """\
world-steps/s; ! marks figures whose worlds did not all reach the tolerance in every step;
contact-steps/s, us/step and held are of the faster that did at 1e-6; ~ stands for a ratio where
the peer's way has another number of steps: it is other work. Steps of a hold are those of three
repeats together in ours and of one in the peers', after so many of the way"""


def speed(everything: list[Row]) -> str:
    rows = timed(everything)
    heads = ["scene, part", "worlds", "steps", *(f"{p} {t:g}" for p, t in HOWS)]
    heads += ["contact-steps/s", "us/step", "held", "peer", "peer's steps", "peer held"]
    heads += ["times, 1e-3", "times, 1e-6"]
    lines = []
    for kind in kinds(rows):
        ways = [ours(rows, kind, how) for how in HOWS]
        rough, exact = fastest([ways[0], ways[2]]), fastest([ways[1], ways[3]])
        other = peer(rows, kind)
        line = [f"{kind[0]}, {kind[1]}", str(kind[2]), steps([w for w in ways if w])]
        for way in ways:
            mark = " !" if way and not converged(way) else ""
            line.append(rate(way["world_steps_per_s"]) + mark if way else "")
        line += [rate(exact["contact_steps_per_s"]), f"{exact['us_per_step']:.4g}",
                 str(exact["held"])] if exact else ["", "", ""]  # fmt: skip
        line += [f"{rate(other['world_steps_per_s'])} {other['of']}", steps([other]),
                 str(other["held"])] if other else ["", "", ""]  # fmt: skip
        lines.append([*line, ratio(rough, other), ratio(exact, other)])
    return grid(heads, lines) + "\n" + NOTE if lines else ""


def processor(everything: list[Row]) -> str:
    """tribod's choice for few worlds; beside the peer's time for one world on the card."""
    lines, peers = [], timed(everything)
    for i, row in enumerate(everything):
        if row["of"] != "processor":
            continue
        r = {"way": beside(everything, i), **row}
        kind = (r["scene"], r["part"], r["worlds"], r["way"])
        other = peer(peers, kind) if r["worlds"] == 1 else None
        lines.append([
            f"{r['scene']}, {r['part']}", str(r["worlds"]), steps([r]),
            f"{r['precision']} {r['tolerance']:g}", rate(r["world_steps_per_s"]),
            f"{r['us_per_step']:.4g}", str(r["unconverged"]), ratio(r, other),
        ])  # fmt: skip
    heads = ["on the processor", "worlds", "steps", "how", "world-steps/s", "us/step"]
    return grid([*heads, "unconverged", "times the peer's"], lines) if lines else ""


def slides(rows: list[Row]) -> str:
    found = [r for r in timed(rows) if r["of"] == "mujoco" and "slide_um_per_s" in r]
    lines = [
        [f"{r['scene']}, {r['part']}, impratio {r['impratio']:g}", str(r["worlds"]), steps([r]),
         rate(r["world_steps_per_s"]), f"{r['slide_um_per_s']:.4g}"]
        for r in found
    ]  # fmt: skip
    heads = ["MuJoCo Warp", "worlds", "steps", "world-steps/s", "slides um/s"]
    return grid(heads, lines) if lines else ""


def kamino(rows: list[Row]) -> str:
    found = [r for r in timed(rows) if r["of"] == "kamino"]
    lines = [[f"{r['tolerance']:g}", str(r["worlds"]), steps([r]), rate(r["world_steps_per_s"]),
              f"{r['iterations']:.3g}", str(r["most_iterations"]), f"{r['converged']:.3f}"]
             for r in found]  # fmt: skip
    heads = ["Kamino, tolerance", "worlds", "steps", "world-steps/s", "iterations", "most"]
    return grid([*heads, "converged"], lines) if lines else ""


def schurpa(rows: list[Row]) -> str:
    """Litven's table 7.1: the same solves by DIRECT, which factors in every iteration, and SCHURPA.
    Then products with a band and solves in a row."""
    lines = []
    for r in rows:
        for line in r["rows"] if r["of"] == "schurpa" and "rows" in r else []:
            direct, own = line["direct"], line["schurpa"]
            same = direct["same_set"] and own["same_set"]
            lines.append([
                f"{r['precision']}, n {r['n']}, half-bandwidth {r['half_bandwidth']}",
                str(line["delta"]), f"{1e3 * direct['seconds']:.3f}", str(direct["factorizations"]),
                f"{1e3 * own['seconds']:.3f}", str(own["factorizations"]), str(own["solves"]),
                cell(line["speedup"]), cell(own["kkt_residual"]), "yes" if same else "NO",
            ])  # fmt: skip
    heads = ["bounded programs on the card", "delta", "DIRECT ms", "factors", "SCHURPA ms"]
    heads += ["factors", "solves", "DIRECT/SCHURPA", "residual", "same set"]
    tables = [grid(heads, lines)] if lines else []
    return "\n\n".join(filter(None, [*tables, products(rows)]))


def products(rows: list[Row]) -> str:
    lines = [
        [r["name"], cell(r.get("median", r.get("value"))), cell(r.get("minimum", "")),
         cell(r.get("maximum", "")), r["unit"]]
        for r in rows if r["of"] == "schurpa" and "name" in r
    ]  # fmt: skip
    heads = ["products with a band, solves in a row", "median", "least", "most", "unit"]
    return grid(heads, lines) if lines else ""


def agreement(rows: list[Row]) -> str:
    found = [r for r in rows if r["of"] == "agreement" and "q" in r]
    lines = [[r["scene"], r.get("way", ""), str(r["steps"]), f"{r['q']:.2g}", f"{r['u']:.2g}"]
             for r in found]  # fmt: skip
    sums = [r["text"] for r in rows if r["of"] == "agreement" and "checks" in r]
    table = grid(["CPU against GPU, double", "kernels", "steps", "q", "u"], lines)
    return "\n".join([table, *sums]) if lines else "\n".join(sums)


def resume(rows: list[Row]) -> str:
    """Tables of the test program unchanged; the warm data of a daemon's sessions after a
    break."""
    found = [r for r in rows if r["of"] == "resume"]
    keys = ["knownStatuses", "keptStatuses", "iterations", "linearSolves", "factorizations"]
    lines = [
        [f"{r['scene']}, {r['solver']}, {r['precision']}", *(str(r[key]) for key in keys),
         ", ".join(r["wrong"]) or "same"]
        for r in found if "wrong" in r
    ]  # fmt: skip
    heads = ["sessions of a daemon on a card, 40 steps", "known", "kept", "iterations", "solves"]
    table = [grid([*heads, "factorizations", "bytes, sums"], lines)] if lines else []
    return "\n".join([r["text"] for r in found if "text" in r] + table)


def stages(rows: list[Row]) -> str:
    """Shares of a world's time; work within the next step's launch counts with it."""
    found = [r for r in rows if r["of"] == "stages"]
    names = list(dict.fromkeys(name for r in found for name in r["cycles"]))
    lines = []
    for r in found:
        whole = sum(r["cycles"].values()) or 1
        shares = [f"{100 * r['cycles'].get(name, 0) / whole:.0f} %" for name in names]
        head = f"{r['scene']}, {r['part']}"
        lines.append([
            head, str(r["worlds"]), str(r.get("steps", "")), str(r["lanes"]), f"{whole / 1e3:.0f}",
            *shares,
        ])  # fmt: skip
    heads = ["stages", "worlds", "steps", "lanes", "kilocycles", *names]
    return grid(heads, lines) if lines else ""


def others(rows: list[Row]) -> str:
    """Fields, first answers, calls, sanitizers: a line each."""
    said = ("of", "bench", "commit", "card", "driver", "backend", "metrics", "log")
    return "\n".join(
        f"{r['of']}: " + ", ".join(f"{k} {v}" for k, v in r.items() if k not in said)
        for r in rows
        if r["of"] in ("sanitizer", "field", "first", "calls", "daemon")
    )


def chosen(setting: int | None) -> str:
    return "chosen" if setting is None else str(setting)


def knobs(rows: list[Row]) -> str:
    lines = [
        [
            f"{r['way']}, {r['worlds']} worlds", rate(r["world_steps_per_s"]),
            f"{rate(r['chosen'])}, {rate(r['chosen_again'])}", f"{r['gain']:.2f}",
            ",".join(map(str, r["best"]["lanes"])), chosen(r["best"]["overlap"]),
        ]
        for r in rows if r["of"] == "knobs" and "best" in r
    ]  # fmt: skip
    heads = ["settings that are fastest", "world-steps/s", "chosen, again", "gain"]
    return grid([*heads, "lanes", "overlap"], lines) if lines else ""


def plain(rows: list[Row]) -> str:
    """Rows of any shape under the names that they use."""
    heads = list(dict.fromkeys(key for r in rows for key in r))
    lines = [[cell(r[key]) if key in r else "" for key in heads] for r in rows]
    return grid(heads, lines) if lines else ""


def block(other: Row) -> str:
    """Contents of a file beside the parts of run.py: its own words, and its rows."""
    return "\n".join(filter(None, [other["what"], plain(other["results"])]))


def render(whole: Row) -> str:
    rows = whole["results"]
    head = f"{whole['card']}, driver {whole['driver']}, commit {whole['commit']}, {whole['date']}"
    blocks = [
        agreement(rows),
        resume(rows),
        speed(rows),
        processor(rows),
        slides(rows),
        kamino(rows),
        schurpa(rows),
        stages(rows),
        knobs(rows),
    ]
    blocks += [others(rows), *(block(b) for b in whole.get("blocks", []))]
    failed = [f"FAILED {f}" for f in whole["failures"]]
    return "\n\n".join([head, *(b for b in blocks if b), *failed])
