"""No kernel reads a cleared pair of registers before it is cleared.

CS2R clears a pair of registers on sm_90; six cycles later another instruction may read it. ptxas
13.0.88 forgets this where an instruction under a predicate writes the pair in between (13.5 does
not): it counts from that instruction, which does nothing where its predicate is false. The source
behind it is a pointer that a condition sets or leaves NULL and that is then tested for NULL. A test
of the condition avoids it.

An instruction is two words of 64 bits and says for how many cycles the next one waits. The script
sums these from each CS2R to the first reader, over the whole plug-in, and checks that it would
detect the pattern. Skipped without cuobjdump and where the plug-in has no machine code, as `make
check` builds it without a card.

Fields, of the first word: 0-8 operation, 9-11 form of the operands, 12-15 predicate, 16-23 register
written, 24-31 and 32-39 registers read; of the second: 0-7 register read, 41-44 cycles.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from common_report import Report

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TRIBO_BUILD", ROOT / "build"))
CYCLES = 6  # from CS2R to a reader
ALWAYS = 7  # predicate of an instruction without one
CS2R, ZERO = 0x005, 0xFF  # operation, special register that reads 0
COMPARISONS = (0x00B, 0x00C, 0x02A)  # FSETP, ISETP, DSETP: write predicates
STORES = (0x185, 0x186, 0x187, 0x188)  # ST, STG, STL, STS: read data a cycle later
JUMPS = (0x141, 0x143, 0x144, 0x147, 0x14D, 0x150)  # BSYNC, CALL, BRA, EXIT, RET

# CS2R R38; @!P0 IMAD.WIDE R38, R0, 0x80, R40; ISETP.NE P0, PT, R38, RZ, PT: after 2 + 3 cycles
EARLY = (
    (0x0000000000267805, 0x000FE4000001FF00),
    (0x0000008000268825, 0x004FC600078E0228),
    (0x000000FF2600720C, 0x000FC80003F05070),
)

Code = tuple[tuple[int, int], ...]


def code_of(binary: bytes) -> Iterator[Code]:
    """Instructions of each kernel in an ELF file of 64 bits."""
    (table,) = struct.unpack_from("<Q", binary, 40)
    size, count, names = struct.unpack_from("<HHH", binary, 58)
    sections = [struct.unpack_from("<IIQQQQ", binary, table + size * i) for i in range(count)]
    for name, _, _, _, offset, length in sections:
        if binary[sections[names][4] + name :].startswith(b".text."):
            yield tuple(struct.iter_unpack("<QQ", binary[offset : offset + length]))


def read(first: int, second: int) -> set[int]:
    """Registers that an instruction reads as soon as it begins."""
    operation, form = first & 0x1FF, first >> 9 & 7
    found = {first >> 24 & 0xFF}
    if form == 1 and operation not in STORES:
        found.add(first >> 32 & 0xFF)
    if operation not in COMPARISONS:
        found.add(second & 0xFF)
    return found


def early_read(code: Code, at: int) -> int | None:
    """Cycles from the CS2R at `at` to a reader that comes too early, if there is one."""
    cleared = {code[at][0] >> 16 & 0xFF, (code[at][0] >> 16 & 0xFF) + 1}
    passed, rewritten = code[at][1] >> 41 & 15, False
    for first, second in code[at + 1 : at + 1 + CYCLES]:
        operation = first & 0x1FF
        if passed >= CYCLES or operation in JUMPS:
            return None
        if rewritten and read(first, second) & cleared:
            return passed
        if operation not in COMPARISONS + STORES and first >> 16 & 0xFF in cleared:
            if first >> 12 & 15 == ALWAYS:
                return None
            rewritten = True
        passed += second >> 41 & 15
    return None


def clears(code: Code) -> list[int]:
    """Places of CS2R that clear registers."""
    return [
        i
        for i, (first, second) in enumerate(code)
        if first & 0x1FF == CS2R and first >> 9 & 7 == 4 and second >> 8 & 0xFF == ZERO
    ]


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
    report.equal([early_read(EARLY, i) for i in clears(EARLY)], [5], "a sample with an early read")
    later = (EARLY[0], (EARLY[1][0], EARLY[1][1] + (2 << 41)), EARLY[2])
    report.equal([early_read(later, i) for i in clears(later)], [None], "a sample that waits")
    plugin, extract = BUILD / "libtribo_gpu.so", tool("cuobjdump")
    if not plugin.exists() or extract is None:
        report.skip("machine code of the kernels: no plug-in of nvcc, or no cuobjdump")
        report.finish()
    found, cleared = [], 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [extract, "-xelf", "all", plugin.resolve()], cwd=folder, check=True, capture_output=True
        )
        files = sorted(Path(folder).glob("*.cubin"))
        if not files:
            report.skip("machine code of the kernels: the plug-in has intermediate code alone")
            report.finish()
        for file in files:
            for code in code_of(file.read_bytes()):
                places = clears(code)
                cleared += len(places)
                found += [f"{file.name} {16 * i:x}" for i in places if early_read(code, i)]
    report.check(cleared > 1000, f"the kernels clear registers {cleared} times")
    report.equal(found, [], "early reads")
    report.finish()


if __name__ == "__main__":
    main()
