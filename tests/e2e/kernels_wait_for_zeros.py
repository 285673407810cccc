"""No kernel reads a cleared pair of registers before it is cleared.

CS2R clears a pair of registers on sm_90; six cycles later another instruction may read it. ptxas
13.0.88 forgets this where an instruction under a predicate writes the pair in between (13.5 does
not): it counts from that instruction, which does nothing where its predicate is false. The source
behind it is a pointer that a condition sets or leaves NULL and that is then tested for NULL. A test
of the condition avoids it.

Machine code holds after each instruction for how many cycles the next one waits. The script sums
them from each CS2R to the first reader, over the whole plug-in, and checks that it would detect
the pattern. Skipped without a plug-in of nvcc, or without cuobjdump and nvdisasm.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))
from common_report import Report

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TRIBO_BUILD", ROOT / "build"))
CYCLES = 6  # from CS2R to a reader; a store reads its data one cycle later
LINE = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][\w.]*)\s*([^;]*);")
WORD = re.compile(r"/\* 0x([0-9a-f]{16}) \*/")
REGISTER = re.compile(r"(?<![A-Z])R(\d+)(\.64)?")
PAIRS = ("DADD", "DMUL", "DFMA", "DSETP", "CS2R")

# CS2R, a write where P0 is false, and a test after 2 + 3 cycles
EARLY = """
    /*a74e0*/  CS2R R38, SRZ ;                              /* 0x0000000000267805 */
                                                            /* 0x000fe4000001ff00 */
    /*a74f0*/  @!P0 IMAD.WIDE R38, R0, 0x80, R40 ;          /* 0x0000008000268825 */
                                                            /* 0x004fc600078e0228 */
    /*a7500*/  ISETP.NE.U32.AND P0, PT, R38, RZ, PT ;       /* 0x000000ff2600720c */
                                                            /* 0x000fc80003f05070 */
"""


class Instruction(NamedTuple):
    """One instruction of machine code."""

    address: str
    predicate: str | None
    name: str
    operands: list[str]
    cycles: int  # until the next one begins, at least


def decoded(lines: list[str], first: int) -> Iterator[Instruction]:
    """Instructions from line `first` to the next label."""
    for i in range(first, len(lines) - 1):
        if lines[i].startswith("."):
            return
        found, word = LINE.search(lines[i]), WORD.search(lines[i + 1])
        if found and word:
            operands = [o.strip() for o in found[4].split(",")]
            yield Instruction(found[1], found[2], found[3], operands, int(word[1], 16) >> 41 & 15)


def registers(operand: str, pair: bool) -> set[int]:
    """Registers that an operand names."""
    found: set[int] = set()
    for number, wide in REGISTER.findall(operand):
        found |= {int(number), int(number) + 1} if pair or wide else {int(number)}
    return found


def written(i: Instruction) -> set[int]:
    """Registers that an instruction writes."""
    if i.name.startswith(("ST", "RED", "BAR")) or "SETP" in i.name:
        return set()
    return registers(i.operands[0], i.name.startswith(PAIRS) or "WIDE" in i.name or ".64" in i.name)


def read(i: Instruction) -> set[int]:
    """Registers that an instruction reads as soon as it begins."""
    store = i.name.startswith("ST")
    own = i.operands[:1] if store else i.operands if "SETP" in i.name else i.operands[1:]
    return set().union(*(registers(o, i.name.startswith(PAIRS)) for o in own))


def early_reads(text: str) -> Iterator[str]:
    """Readers of cleared registers that come too early behind a write under a predicate."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if "CS2R" not in line or " SRZ" not in line:
            continue
        instructions = decoded(lines, at)
        clear = next(instructions, None)
        if clear is None or not clear.name.startswith("CS2R"):
            continue
        cleared, passed, rewritten = written(clear), clear.cycles, False
        for i in instructions:
            if passed >= CYCLES or i.name in ("BRA", "EXIT", "RET", "CALL"):
                break
            if rewritten and read(i) & cleared:
                yield f"{clear.address}: {i.name} {', '.join(i.operands)} after {passed} cycles"
                break
            if written(i) & cleared:
                if i.predicate is None:
                    break
                rewritten = True
            passed += i.cycles


def tool(name: str) -> str | None:
    """A tool of the compiler's folder or of PATH."""
    found = subprocess.run(
        [ROOT / "deploy/find_nvcc.sh", BUILD], capture_output=True, text=True, check=True
    ).stdout.strip()
    beside = Path(found).parent / name if found else None
    return str(beside) if beside and beside.exists() else shutil.which(name)


def main() -> None:
    """Checks the kernels of the plug-in."""
    report = Report()
    report.equal(len(list(early_reads(EARLY))), 1, "early reads of a sample that has one")
    later = EARLY.replace("0x004fc6", "0x004fca")  # 5 cycles for 3
    report.equal(list(early_reads(later)), [], "early reads of a sample that waits")
    plugin, extract, disassemble = BUILD / "libtribo_gpu.so", tool("cuobjdump"), tool("nvdisasm")
    if not plugin.exists() or extract is None or disassemble is None:
        report.skip("machine code of the kernels: no plug-in of nvcc, cuobjdump or nvdisasm")
        report.finish()

    def reads_of(code: Path) -> tuple[int, list[str]]:
        text = subprocess.run(
            [disassemble, "-c", "-hex", code], capture_output=True, text=True, check=True
        ).stdout
        return text.count(" CS2R "), [f"{code.name} {r}" for r in early_reads(text)]

    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [extract, "-xelf", "all", plugin.resolve()], cwd=folder, check=True, capture_output=True
        )
        with ThreadPoolExecutor(2) as pool:
            results = list(pool.map(reads_of, sorted(Path(folder).glob("*.cubin"))))
    report.check(sum(cleared for cleared, _ in results) > 100, "the kernels clear registers")
    report.equal([r for _, reads in results for r in reads], [], "early reads")
    report.finish()


if __name__ == "__main__":
    main()
