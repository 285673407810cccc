"""Joins files of run.py, and files put together by hand from several runs.

Rows that name their part (`of`) are joined. All other rows become blocks, each with the words
(`what`) that explain it: rows of a file that name no part, and entries of a file beside its
results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tables

Row = dict[str, Any]
HEAD = ("commit", "card", "driver", "date", "failures", "results", "what")


class Wrong(Exception):
    """A file cannot be read as results."""


def are_rows(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(row, dict) for row in value)


def read(file: Path) -> Row:
    try:
        whole = json.loads(file.read_text())
    except OSError as error:
        raise Wrong(f"{file}: {error.strerror}") from error
    except ValueError as error:
        raise Wrong(f"{file} is no JSON: {error}") from error
    if not isinstance(whole, dict) or not are_rows(whole.get("results")):
        raise Wrong(f"{file} is no file of run.py: it has no rows as results")
    if not isinstance(whole.get("failures", []), list):
        raise Wrong(f"{file} is no file of run.py: its failures are no list")
    return whole


def blocks(file: Path, whole: Row) -> list[Row]:
    """Findings that no table of a part shows."""
    found = []
    rows = [row for row in whole["results"] if "of" not in row]
    if "what" in whole or rows:
        found.append({"what": f"{file.name}: {whole.get('what', '')}", "results": rows})
    for name, extra in whole.items():
        if name in HEAD:
            continue
        inside = extra if isinstance(extra, dict) else {"results": extra}
        known = are_rows(inside.get("results"))
        what = str(inside.get("what", "")) if known else json.dumps(extra)
        results = inside["results"] if known else []
        found.append({"what": f"{file.name}, {name}: {what}", "results": results})
    return found


def as_whole(file: Path, whole: Row) -> Row:
    found: Row = {key: str(whole.get(key, "")) for key in ("commit", "card", "driver", "date")}
    found |= {"results": [row for row in whole["results"] if "of" in row]}
    found |= {"failures": whole.get("failures", []), "blocks": blocks(file, whole)}
    try:
        tables.render(found)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        why = f"{type(error).__name__} {error}"
        raise Wrong(f"{file} has rows that run.py does not write: {why}") from error
    return found


def join(files: list[Path]) -> Row:
    """Results of several files; of parts that several have, all are kept."""
    wholes = [as_whole(file, read(file)) for file in files]
    head = {
        key: ", ".join(dict.fromkeys(w[key] for w in wholes if w[key]))
        for key in ("commit", "card", "driver")
    }
    every = {key: [one for w in wholes for one in w[key]] for key in ("failures", "results")}
    return {
        **head, "date": wholes[-1]["date"], **every,
        "blocks": [one for w in wholes for one in w["blocks"]],
    }  # fmt: skip
