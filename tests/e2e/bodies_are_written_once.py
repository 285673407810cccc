"""No function of the product has the body of another one.

Bodies are compared by their tokens, across .c, .h and .cu: comments and layout do not count, and
local names count by the order in which they appear, so that a copy with other names is seen.
Called functions and members keep their names. Bodies of fewer than LEAST_TOKENS tokens do not
count. A copy that is put beside a source has to be seen.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("solver", "server", "db", "clients/c", "clients/cli")
LEAST_TOKENS = 60
TOKEN = re.compile(
    r'[A-Za-z_]\w*|\d[\w.]*(?:[eE][+-]?\d+)?|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|->|[^\s\w]'
)
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|("(?:\\.|[^"\\\n])*")', re.S)
HEAD = re.compile(r"^(?:[A-Za-z_#][^\n;{}]*(?:\n[^\n;{}]+)*)\n\{\n(.*?)^\}", re.S | re.M)
NAME = re.compile(r"(\w+)\s*\(")


def source_files() -> list[Path]:
    """The sources of the product."""
    found = (f for folder in FOLDERS for f in sorted((ROOT / folder).rglob("*")))
    return [f for f in found if f.suffix in (".c", ".h", ".cu")]


def normalised(body: str) -> tuple[str, ...]:
    """Tokens of a body in which names that are no call, member or constant are numbered."""
    tokens = TOKEN.findall(body)
    numbers: dict[str, str] = {}
    result = []
    for i, token in enumerate(tokens):
        member = i > 0 and tokens[i - 1] in (".", "->")
        called = i + 1 < len(tokens) and tokens[i + 1] == "("
        plain = re.fullmatch(r"[a-z_]\w*", token) and not member and not called
        result.append(numbers.setdefault(token, f"v{len(numbers)}") if plain else token)
    return tuple(result)


def bodies(texts: dict[str, str]) -> dict[tuple[str, ...], list[str]]:
    """Functions by their body, of texts by their path."""
    found: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for path, whole in texts.items():
        text = COMMENT.sub(lambda m: m.group(1) or " ", whole)
        for m in HEAD.finditer(text):
            tokens = normalised(m.group(1))
            names = NAME.findall(m.group(0).split("\n{", 1)[0])
            if len(tokens) >= LEAST_TOKENS:
                found[tokens].append(f"{path}: {names[0] if names else '?'}")
    return found


def copies(texts: dict[str, str]) -> list[list[str]]:
    """Functions that share a body."""
    return sorted(sorted(v) for v in bodies(texts).values() if len(v) > 1)


ORIGINAL = """
static double length_of(const double *x, int32_t n)
{
    double sum = 0; /* squared */
    for (int32_t i = 0; i < n; i++) sum += x[i] * x[i];
    for (int32_t i = 0; i < n; i++) sum += x[i] * x[i] * x[i];
    return sum > 0 ? sqrt(sum) : 0;
}
"""


def main() -> int:
    """Prints the copies, and how many functions were compared."""
    texts = {str(f.relative_to(ROOT)): f.read_text(encoding="utf-8") for f in source_files()}
    found = copies(texts)
    for c in found:
        print("the same body: " + "; ".join(c))
    compared = sum(len(v) for v in bodies(texts).values())
    copy = ORIGINAL.replace("length_of", "norm").replace("x", "numbers").replace("sum", "total")
    checks = {
        f"{compared} functions were compared": compared > 1000,
        "a copy with other names is seen": len(copies({"a.c": ORIGINAL, "b.cu": copy})) == 1,
        "another sum is no copy": not copies({"a.c": ORIGINAL, "b.c": copy.replace("+=", "-=")}),
        "no body is written twice": not found,
    }
    for text, passed in checks.items():
        print(("ok   " if passed else "FAIL ") + text)
    failed = sum(not passed for passed in checks.values())
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
