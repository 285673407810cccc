#!/usr/bin/env python3
"""Every README is true: its command blocks run, its tables are complete, its paths exist.

A fenced block begins with a line ```KIND WORD, and KIND says how it is checked:
  console         lines that begin with "$ " run; other lines are their output. Numbers may differ,
                  a line "..." stands for any lines. WORD daemon: the block starts a daemon
  sh              each line runs and ends with 0. WORD make: targets must exist (make -n). WORD card
                  or WORD data: the lines need a GPU or files from elsewhere; options must exist.
                  WORD tool: lines whose program is not installed are skipped
  python          runs
  c, xml, ini...  WORD is the name of a file that the commands below it use
  text            output
Any other block is an error, and so is an indented one. The blocks of one README share a folder, a
shell, a daemon on free ports (7410 and 7480 are replaced), an installation, and the files
scene.xml, hand.xml, hand.urdf and mug.obj.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from common_daemon import BUILD, Report

ROOT = Path.cwd()
TRIBO = os.environ["TRIBO"]
TRIBOD = os.environ["TRIBOD"]
CARD = BUILD / "tests/plugin/card.so"
ROOMS = ("solver", "server", "clients", "tests", "deploy", "db", "proto")
WORDS_OF_README = 1500
COMMAND_SECONDS = 120


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    line: int
    kind: str
    word: str
    text: str


def readmes() -> list[Path]:
    """The READMEs of the tree, that of the top first."""
    found = [ROOT / "README.md"]
    for room in ROOMS:
        found += sorted((ROOT / room).rglob("README.md"))
    return found


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a README; an indented one comes as kind "indented"."""
    lines = text.split("\n")
    i = 0
    while i < len(lines):
        if lines[i].startswith("```"):
            end = next(k for k in range(i + 1, len(lines)) if lines[k] == "```")
            kind, _, word = lines[i][3:].partition(" ")
            yield Block(i + 1, kind, word, "\n".join(lines[i + 1 : end]))
            i = end
        elif lines[i].startswith("    ") and i > 0 and lines[i - 1] == "":
            yield Block(i + 1, "indented", "", lines[i])
        i += 1


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """The commands of a console or sh block, each with the output that the README shows."""
    command, output, console = "", [], block.kind == "console"
    for line in block.text.split("\n"):
        if command.endswith("\\"):
            command += "\n" + line
        elif line.startswith("$ ") or not console:
            if command:
                yield command, "\n".join(output)
            command, output = line.removeprefix("$ "), []
        else:
            output.append(line)
    if command:
        yield command, "\n".join(output)


def masked(text: str) -> list[str]:
    """Lines of output without the parts that differ from run to run: ids, numbers, units of
    times."""
    text = re.sub(r"\b[0-9a-f]{12,64}\b", "ID", text)
    text = re.sub(r"[-+]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?", "N", text)
    text = re.sub(r"N (ns|µs|us|ms|s)\b", "N TIME", text)
    return [" ".join(line.split()) for line in text.split("\n") if line.strip()]


def same(shown: str, printed: str) -> bool:
    """Whether the output is as shown; "..." matches any lines."""
    pattern = "\n".join(".*" if line == "..." else re.escape(line) for line in masked(shown))
    return re.fullmatch(pattern, "\n".join(masked(printed)), re.DOTALL) is not None


class Daemon:
    """A daemon on free ports."""

    def __init__(self, arguments: list[str], folder: Path, **variables: str) -> None:
        flags = ["--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"]
        self.process = subprocess.Popen(
            [TRIBOD, *arguments, *flags],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **variables},
        )
        assert self.process.stdout is not None
        self.ready = self.process.stdout.readline()
        words = dict(word.split("=", 1) for word in self.ready.split()[1:])
        self.grpc, self.http = words.get("grpc", ""), words.get("http", "")

    def stop(self) -> None:
        """Ends it by a drain."""
        self.process.terminate()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


class Shell:
    """A shell that runs the commands of one README, one after the other."""

    def __init__(self, folder: Path, prefix: Path) -> None:
        self.process = subprocess.Popen(
            ["bash"],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={
                **os.environ,
                "PATH": f"{prefix}/bin:{os.environ['PATH']}",
                "PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig",
                "LD_LIBRARY_PATH": f"{prefix}/lib",
                "TRIBO_GPU_PLUGIN": "",
            },
        )

    def run(self, command: str) -> tuple[int, str]:
        """Exit code and output."""
        pipe_in, pipe_out = self.process.stdin, self.process.stdout
        assert pipe_in is not None
        assert pipe_out is not None
        limit = threading.Timer(COMMAND_SECONDS, self.process.kill)
        limit.start()
        print(
            f"{{ {command}\n}} </dev/null; code=$?; echo; echo @@end $code",
            file=pipe_in,
            flush=True,
        )
        printed = ""
        for line in pipe_out:
            if line.startswith("@@end "):
                limit.cancel()
                return int(line.split()[1]), printed
            printed += line
        limit.cancel()
        return -1, printed

    def stop(self) -> None:
        """Ends it."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process.wait()


class Run:
    """One README's blocks."""

    def __init__(self, report: Report, readme: Path, folder: Path, prefix: Path) -> None:
        self.report = report
        self.readme = readme
        self.name = str(readme.relative_to(ROOT))
        self.folder = folder
        self.daemon: Daemon | None = None
        self.shell = Shell(folder, prefix)
        for room in ROOMS:
            (folder / room).symlink_to(ROOT / room)
        (folder / "build").symlink_to(BUILD.resolve())
        for program, *arguments in (["mug", "."], ["hand", ".", "0.7", "0.003"]):
            path = BUILD.resolve() / "tests/data" / program
            subprocess.run([path, *arguments], cwd=folder, check=True, capture_output=True)
        first = (ROOT / "README.md").read_text().split("```xml scene.xml\n")[1].split("```")[0]
        (folder / "scene.xml").write_text(first)

    def all(self) -> None:
        """Checks every block."""
        text = self.readme.read_text()
        if re.search("7410|7480", text):
            self.start([])
        for block in blocks(text):
            where = f"{self.name}:{block.line}"
            check = getattr(self, f"check_{block.kind}", None)
            if block.kind == "text":
                self.report.passed += 1
            elif check is not None:
                check(block, where)
            elif block.kind.isalpha() and block.word and block.kind != "indented":
                (self.folder / block.word).write_text(block.text + "\n")
                self.report.passed += 1
            else:
                self.report.check(False, f"{where}: a block that is neither run nor output")

    def start(self, arguments: list[str]) -> None:
        """A daemon that the commands from here on talk to."""
        if self.daemon is not None:
            self.daemon.stop()
        self.daemon = Daemon(arguments or ["--data", ""], self.folder)
        self.shell.run(f"export TRIBO_SERVER={self.daemon.grpc}")

    def local(self, text: str) -> str:
        """The text with this machine's ports."""
        if self.daemon is None:
            return text
        for port, address in (("7410", self.daemon.grpc), ("7480", self.daemon.http)):
            text = text.replace(f"127.0.0.1:{port}", address)
            text = text.replace(f"robot7:{port}", address.replace("127.0.0.1", "localhost"))
        return text.replace("robot7", "localhost")

    def check_console(self, block: Block, where: str) -> None:
        """Commands print the shown output."""
        for command, shown in commands(block):
            if block.word == "daemon":
                self.start(command.split()[1:])
                printed, code = self.daemon.ready if self.daemon else "", 0
            else:
                code, printed = self.shell.run(self.local(command))
            what = f"{where}: $ {command}\n{printed}"
            self.report.check(code == 0 and same(shown, printed), f"{what}(exit code {code})")

    def check_sh(self, block: Block, where: str) -> None:
        """Commands end with 0."""
        for command, _ in commands(block):
            words = shlex.split(command, comments=True)
            if not words:
                continue
            if block.word == "make":
                self.check_target(words, where)
            elif block.word == "tool" and shutil.which(words[0]) is None:
                self.report.skip(f"{where}: {words[0]} is not installed")
            elif block.word and block.word != "tool":
                self.check_options(words, where)
            else:
                code, printed = self.shell.run(self.local(command))
                self.report.check(code == 0, f"{where}: {command}: exit code {code}\n{printed}")

    def check_target(self, words: list[str], where: str) -> None:
        """The target is there."""
        made = subprocess.run(
            ["make", "-n", f"BUILD={os.path.relpath(BUILD)}", "NVCC=", *words[1:]],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        what = f"{where}: {' '.join(words)}: {made.stderr}"
        self.report.check(words[0] == "make" and made.returncode == 0, what)

    def check_options(self, words: list[str], where: str) -> None:
        """The program knows the options, or its source is there."""
        if words[0] == "tribo":
            told = subprocess.run([TRIBO, words[1], "--help"], capture_output=True, text=True)
            for option in (word for word in words if word.startswith("--")):
                known = re.search(rf"{option}\b", told.stdout) is not None
                self.report.check(known, f"{where}: tribo {words[1]} has no {option}")
        else:
            source = words[0].removeprefix("build/").removeprefix("stages/")
            found = [ROOT / source, ROOT / f"{source}.c", BUILD / source]
            found += ROOT.glob(f"tests/bench/*/{Path(source).name}.c")
            self.report.check(any(f.exists() for f in found), f"{where}: no {words[0]}")

    def check_python(self, block: Block, where: str) -> None:
        """The program runs."""
        program = self.folder / "example.py"
        program.write_text(self.local(block.text))
        ran = subprocess.run(
            [sys.executable, program.name], cwd=self.folder, capture_output=True, text=True
        )
        self.report.check(ran.returncode == 0, f"{where}: {ran.stderr}")

    def stop(self) -> None:
        """Ends shell and daemon."""
        self.shell.stop()
        if self.daemon is not None:
            self.daemon.stop()


def install(prefix: Path) -> None:
    """An installation of the present build, without new builds: other tests are using
    it."""
    build = os.path.relpath(BUILD)
    kept = ["all", f"{build}/libtribo_client.a", f"{build}/libtribo_gpu.so"]
    old = [word for name in kept for word in ("-o", name)]
    subprocess.run(
        ["make", "-s", *old, f"BUILD={build}", "NVCC=", "install", f"PREFIX={prefix}"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )


def check_paths(report: Report, readme: Path) -> None:
    """Files and folders that a README names are there."""
    text = re.sub(r"^```.*?^```$", "", readme.read_text(), flags=re.DOTALL | re.MULTILINE)
    for name in re.findall(r"`([\w./{},*-]+/[\w./{},*-]*)`", text):
        if name.startswith("build/") or name.split("/")[0] not in ROOMS:
            continue
        head, _, rest = name.partition("{")
        inner, _, tail = rest.partition("}")
        for part in inner.split(","):
            there = [*ROOT.glob((head + part + tail).rstrip("/"))]
            report.check(bool(there), f"{readme.relative_to(ROOT)}: no {name}")


def rows(readme: str, section: str = "") -> dict[str, str]:
    """First cells in backticks, and the second cells, of the tables below a heading."""
    text = (ROOT / readme).read_text()
    if section:
        text = re.split(r"^#+ ", text.split(f"# {section}\n", 1)[1], maxsplit=1, flags=re.M)[0]
    found = {}
    for line in text.split("\n"):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[0].startswith("`"):
            for name in re.findall(r"`([^`]+)`", cells[0]):
                found[name] = cells[1].strip("`")
    return found


def compare(report: Report, shown: dict[str, str], known: dict[str, str], what: str) -> None:
    """One check whose failure names the rows that differ."""
    wrong = sorted({name for name, _ in shown.items() ^ known.items()})
    report.check(not wrong, f"{what}: missing, needless or otherwise: {', '.join(wrong)}")


def compare_names(report: Report, shown: dict[str, str], known: set[str], what: str) -> None:
    """The same for names alone."""
    compare(report, dict.fromkeys(shown, ""), dict.fromkeys(known, ""), what)


def check_options(report: Report) -> None:
    """server/README.md has every option with its default."""
    printed = subprocess.run([TRIBOD, "--print-config"], capture_output=True, text=True).stdout
    for section in re.split(r"^\[", printed, flags=re.M)[1:]:
        name, _, body = section.partition("]")
        options = dict(re.findall(r"^(\w+) =(?: (.*))?$", body, flags=re.M))
        compare(report, rows("server/README.md", f"[{name}]"), options, f"options of [{name}]")


def check_metrics(report: Report) -> None:
    """server/README.md has every metric with its type, those of cards too."""
    daemon = Daemon(
        ["--data", ""], ROOT, TRIBO_GPU_PLUGIN=str(CARD.resolve()), TRIBOD_SERVER_BACKEND="auto"
    )
    with urllib.request.urlopen(f"http://{daemon.http}/metrics") as answer:
        page = answer.read().decode()
    daemon.stop()
    metrics = dict(re.findall(r"^# TYPE (\w+) (\w+)$", page, flags=re.M))
    compare(report, rows("server/README.md", "Metrics"), metrics, "metrics")


def check_commands(report: Report) -> None:
    """clients/cli/README.md has every command, solver/README.md every solver and field."""
    told = subprocess.run([TRIBO, "--help"], capture_output=True, text=True).stdout
    names = set(re.findall(r"^  (\w+)  ", told, flags=re.M))
    compare_names(report, rows("clients/cli/README.md", "Commands"), names, "commands")
    told = subprocess.run([TRIBO, "version"], capture_output=True, text=True).stdout
    solvers = set(re.findall(r"^  (\w+) ", told.split("\n\n")[1], flags=re.M))
    compare_names(report, rows("solver/README.md", "Solvers"), solvers, "solvers")
    header = (ROOT / "solver/tribo_step.h").read_text()
    body = header.split("typedef struct tb_certificate {")[1].split("} tb_certificate;")[0]
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL)
    fields = set(re.findall(r"(\w+)(?:\[\d+\])?[,;]", body))
    compare_names(
        report, rows("solver/README.md", "Certificate"), fields, "fields of a certificate"
    )


def check_version(report: Report) -> None:
    """The two places of the version, which README.md names, agree."""
    header = (ROOT / "solver/tribo.h").read_text()
    package = (ROOT / "clients/python/src/tribo/_version.py").read_text()
    version = re.findall(r'define TB_VERSION "(.*)"', header)
    report.equal(re.findall(r'^VERSION = "(.*)"', package, flags=re.M), version, "VERSION")


def check_hops(report: Report) -> None:
    """The functions on the paths of a Step and of an impulse are in the files that READMEs name."""
    for room in ("server", "solver"):
        text = (ROOT / room / "README.md").read_text()
        hops = re.findall(r"^\d+\. `(\w+)` \((\w\S*\.[ch])\)", text, flags=re.M)
        report.check(len(hops) > 20, f"{room}/README.md: {len(hops)} hops")
        for name, file in hops:
            source = ROOT / room / file
            there = source.exists() and re.search(rf"\b{name}\(", source.read_text()) is not None
            report.check(there, f"{room}/README.md: no {name} in {file}")


def check_variables(report: Report) -> None:
    """solver/gpu/README.md has every variable that the plug-in reads."""
    sources = [*(ROOT / "solver").rglob("*.c"), *(ROOT / "solver").rglob("*.cu")]
    read = {name for s in sources for name in re.findall(r'"(TRIBO_GPU_\w+)"', s.read_text())}
    compare_names(report, rows("solver/gpu/README.md", "Variables"), read, "variables")


def main() -> int:
    """All of it."""
    report = Report()
    scratch = Path(tempfile.mkdtemp(prefix="tribo_readmes_"))
    prefix = scratch / "prefix"
    words = len((ROOT / "README.md").read_text().split())
    report.check(words <= WORDS_OF_README, f"README.md has {words} words")
    for check in (
        check_options,
        check_metrics,
        check_commands,
        check_variables,
        check_version,
        check_hops,
    ):
        with report.case(check.__name__):
            check(report)
    try:
        install(prefix)
        for number, readme in enumerate(readmes()):
            folder = scratch / str(number)
            folder.mkdir()
            check_paths(report, readme)
            run = Run(report, readme, folder, prefix)
            with report.case(run.name):
                run.all()
            run.stop()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
