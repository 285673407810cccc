"""No function of the product has the body of another one.

Bodies are compared by their tokens, across .c, .h and .cu: comments and layout do not count, and
local names count by the order in which they appear, so that a copy with other names is seen.
Called functions and members keep their names. Bodies of fewer than LEAST_TOKENS tokens do not
count. The test also checks that it detects a copy put beside a source.

Functions of the Python client are compared in the same way, with `await` and `async` left out: the
asyncio client may await the calls of the blocking one, but not repeat them. Nor may it repeat a
documentation of LEAST_WORDS words or more, which it takes by `like`.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("solver", "server", "db", "clients/c", "clients/cli")
LEAST_TOKENS = 60
PYTHON = ROOT / "clients/python/src/tribo"
LEAST_WORDS = 6
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


class Plain(ast.NodeTransformer):
    """Takes `await` and `async` out of a body."""

    def visit_Await(self, node: ast.Await) -> ast.AST:
        return self.visit(node.value)

    def visit_AsyncWith(self, node: ast.AsyncWith) -> ast.AST:
        self.generic_visit(node)
        return ast.copy_location(ast.With(node.items, node.body), node)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> ast.AST:
        self.generic_visit(node)
        plain = ast.For(node.target, node.iter, node.body, node.orelse)
        return ast.copy_location(plain, node)


def python_copies(texts: dict[str, str]) -> list[list[str]]:
    """Functions that share a body or a documentation, of Python texts by their path."""
    found: dict[object, list[str]] = defaultdict(list)
    for path, text in texts.items():
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            documentation = ast.get_docstring(node) or ""
            body = node.body[1:] if documentation else node.body
            plain = "\n".join(ast.unparse(Plain().visit(statement)) for statement in body)
            place = f"{path}: {node.name}"
            if len(normalised(plain)) >= LEAST_TOKENS:
                found[normalised(plain)].append(place)
            if len(documentation.split()) >= LEAST_WORDS and not node.name.startswith("_"):
                found[documentation].append(place)
    return sorted(
        sorted(places)
        for key, places in found.items()
        if len(places) > 1 and (isinstance(key, tuple) or any("/aio/" in p for p in places))
    )


AWAITED = '''
async def total(self, first, second):
    """Sums of two answers of the server, with six words or more."""
    one = await self.call(first, self.timeout, self.metadata)
    two = await self.call(second, self.timeout, self.metadata)
    return [a + b for a, b in zip(one.numbers, two.numbers)] + list(one.rest) + list(two.rest)
'''
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
    python = {
        str(f.relative_to(ROOT)): f.read_text(encoding="utf-8")
        for f in sorted(PYTHON.rglob("*.py"))
        if "v1" not in f.parts
    }
    found = copies(texts) + python_copies(python)
    for c in found:
        print("the same body: " + "; ".join(c))
    compared = sum(len(v) for v in bodies(texts).values())
    copy = ORIGINAL.replace("length_of", "norm").replace("x", "numbers").replace("sum", "total")
    blocking = AWAITED.replace("async ", "").replace("await ", "")
    awaited = {"tribo/aio/a.py": AWAITED, "tribo/b.py": blocking}
    checks = {
        f"{compared} functions were compared": compared > 1000,
        "a copy with other names is seen": len(copies({"a.c": ORIGINAL, "b.cu": copy})) == 1,
        "another sum is no copy": not copies({"a.c": ORIGINAL, "b.c": copy.replace("+=", "-=")}),
        f"{len(python)} files of Python were compared": len(python) > 30,
        "a body that awaits is a copy": len(python_copies(awaited)) == 2,
        "no body is written twice": not found,
    }
    for text, passed in checks.items():
        print(("ok   " if passed else "FAIL ") + text)
    failed = sum(not passed for passed in checks.values())
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
