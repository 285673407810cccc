"""What run.py has measured, as tables for people."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
HOWS = [("float", 1e-3), ("float", 1e-6), ("double", 1e-3), ("double", 1e-6)]


def rate(value: float) -> str:
    """World-steps/s with three digits: 6.42 M, 321 k, 912."""
    for unit, name in ((1e6, " M"), (1e3, " k")):
        if value >= unit:
            return f"{value / unit:.3g}{name}"
    return f"{value:.3g}"


def brief(row: Row) -> str:
    """One row in a line, while things run."""
    shown = "scene part what name precision tolerance worlds world_steps_per_s us_per_step ms"
    shown += " residual held value unit median solver device wrong"
    words = []
    for key in shown.split():
        if key in row:
            value = row[key]
            words.append(f"{key} {value:.4g}" if isinstance(value, float) else f"{value}")
    return "  ".join(words) or str(row)[:160]


def grid(heads: list[str], rows: list[list[str]]) -> str:
    """Columns as wide as they must be; the first to the left, the others to the right."""
    widths = [max(len(line[i]) for line in [heads, *rows]) for i in range(len(heads))]
    out = []
    for line in [heads, ["-" * w for w in widths], *rows]:
        first = line[0].ljust(widths[0])
        cells = [cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True)]
        out.append(" | ".join([first, *cells]))
    return "\n".join(out)


def ours(rows: list[Row], scene: str, part: str, worlds: int, how: tuple[str, float]) -> Row | None:
    """The last of its kind, so that joined files may measure again."""
    found = [
        r for r in rows
        if r["of"] == "ours" and (r["scene"], r["part"], r["worlds"]) == (scene, part, worlds)
        and (r["precision"], r["tolerance"]) == how
    ]  # fmt: skip
    return found[-1] if found else None


def peer(rows: list[Row], scene: str, part: str, worlds: int) -> Row | None:
    """MuJoCo Warp with its own impratio; of the boxes Kamino, whose contact is exact too."""
    found = [
        r for r in rows
        if r["of"] in ("mujoco", "kamino") and r["scene"] == scene and r["worlds"] == worlds
        and r["part"] == part and r.get("impratio", 1.0) == 1.0
    ]  # fmt: skip
    kamino = [r for r in found if r["of"] == "kamino"]
    best = kamino or found
    return best[-1] if best else None


def fastest(ways: list[Row | None]) -> Row | None:
    """Of those whose worlds all reached their tolerance in every step."""
    good = [w for w in ways if w is not None and w["unconverged"] == 0]
    return max(good, key=lambda w: float(w["world_steps_per_s"]), default=None)


def ratio(way: Row | None, other: Row | None) -> str:
    """Ours with its copies to and from the card, where they were kept, for the peer is timed by the
    clock on the wall."""
    if way is None or other is None:
        return ""
    own = way.get("world_steps_per_s_with_copies", way["world_steps_per_s"])
    return f"{own / other['world_steps_per_s']:.2f}"


def speed(rows: list[Row]) -> str:
    kinds = dict.fromkeys(
        (r["scene"], r["part"], r["worlds"])
        for r in rows
        if r["of"] in ("ours", "mujoco", "kamino")
    )
    heads = ["scene, part", "worlds", *(f"{p} {t:g}" for p, t in HOWS), "contact-steps/s"]
    heads += ["us/step", "held", "peer", "peer held", "times, 1e-3", "times, 1e-6"]
    lines = []
    for scene, part, worlds in sorted(kinds):
        ways = [ours(rows, scene, part, worlds, how) for how in HOWS]
        rough, exact = fastest(ways), fastest([ways[1], ways[3]])
        other = peer(rows, scene, part, worlds)
        line = [f"{scene}, {part}", str(worlds)]
        for way in ways:
            mark = " !" if way and way["unconverged"] else ""
            line.append(rate(way["world_steps_per_s"]) + mark if way else "")
        line += [rate(exact["contact_steps_per_s"]), f"{exact['us_per_step']:.4g}",
                 str(exact["held"])] if exact else ["", "", ""]  # fmt: skip
        line += [f"{rate(other['world_steps_per_s'])} {other['of']}", str(other["held"])] \
            if other else ["", ""]  # fmt: skip
        lines.append([*line, ratio(rough, other), ratio(exact, other)])
    note = "world-steps/s; ! marks figures whose worlds did not all reach the tolerance in every"
    note += "\nstep; contact-steps/s, us/step and held are of the faster that did at 1e-6"
    return grid(heads, lines) + "\n" + note if lines else ""


def processor(rows: list[Row]) -> str:
    """What tribod does with few worlds; beside the peer's time for one world on the card."""
    lines = []
    for r in rows:
        if r["of"] != "processor":
            continue
        other = peer(rows, r["scene"], r["part"], r["worlds"]) if r["worlds"] == 1 else None
        times = f"{other['us_per_step'] / r['us_per_step']:.1f}" if other else ""
        lines.append([
            f"{r['scene']}, {r['part']}", str(r["worlds"]), f"{r['precision']} {r['tolerance']:g}",
            rate(r["world_steps_per_s"]), f"{r['us_per_step']:.4g}", str(r["unconverged"]), times,
        ])  # fmt: skip
    heads = ["on the processor", "worlds", "how", "world-steps/s", "us/step", "unconverged"]
    return grid([*heads, "times the peer's"], lines) if lines else ""


def slides(rows: list[Row]) -> str:
    found = [r for r in rows if r["of"] == "mujoco" and "slide_um_per_s" in r]
    lines = [
        [f"{r['scene']}, {r['part']}, impratio {r['impratio']:g}", str(r["worlds"]),
         rate(r["world_steps_per_s"]), f"{r['slide_um_per_s']:.4g}"]
        for r in found
    ]  # fmt: skip
    return grid(["MuJoCo Warp", "worlds", "world-steps/s", "slides um/s"], lines) if lines else ""


def kamino(rows: list[Row]) -> str:
    found = [r for r in rows if r["of"] == "kamino"]
    lines = [[f"{r['tolerance']:g}", str(r["worlds"]), rate(r["world_steps_per_s"]),
              f"{r['iterations']:.3g}", str(r["most_iterations"]), f"{r['converged']:.3f}"]
             for r in found]  # fmt: skip
    heads = ["Kamino, tolerance", "worlds", "world-steps/s", "iterations", "most", "converged"]
    return grid(heads, lines) if lines else ""


def agreement(rows: list[Row]) -> str:
    found = [r for r in rows if r["of"] == "agreement" and "q" in r]
    lines = [[r["scene"], str(r["steps"]), f"{r['q']:.2g}", f"{r['u']:.2g}", f"{r['allowed']:.0e}"]
             for r in found]  # fmt: skip
    sums = [r["text"] for r in rows if r["of"] == "agreement" and "checks" in r]
    table = grid(["CPU against GPU, double", "steps", "q", "u", "allowed q"], lines)
    return "\n".join([table, *sums]) if lines else "\n".join(sums)


def resume(rows: list[Row]) -> str:
    """Tables of the test program as they come; what a daemon's sessions had warm after a break."""
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
    """Shares of a world's time; what follows within the next step's launch counts with it."""
    found = [r for r in rows if r["of"] == "stages"]
    names = list(dict.fromkeys(name for r in found for name in r["cycles"]))
    lines = []
    for r in found:
        whole = sum(r["cycles"].values()) or 1
        shares = [f"{100 * r['cycles'].get(name, 0) / whole:.0f} %" for name in names]
        head = f"{r['scene']}, {r['part']}"
        lines.append([head, str(r["worlds"]), str(r["lanes"]), f"{whole / 1e3:.0f}", *shares])
    heads = ["stages", "worlds", "lanes", "kilocycles", *names]
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
            chosen(r["best"]["groups"] or None),
        ]
        for r in rows if r["of"] == "knobs" and "best" in r
    ]  # fmt: skip
    heads = ["settings that are fastest", "world-steps/s", "chosen, again", "gain"]
    return grid([*heads, "lanes", "overlap", "groups"], lines) if lines else ""


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
        stages(rows),
        knobs(rows),
    ]
    blocks += [others(rows)]
    failed = [f"FAILED {f}" for f in whole["failures"]]
    return "\n\n".join([head, *(b for b in blocks if b), *failed])
