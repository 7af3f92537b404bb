# SPDX-License-Identifier: GPL-2.0
"""abi.h does not change without its version.

check/abi/N.txt records version N as the compiler sees it: every constant,
structure and field. With the same version constants and fields may only be
added, fields where something was reserved; and then the record follows. What
was ever committed of a version holds for the record as well as for the header.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from vblab import kernels, root
from vblab.root import REPO_IN_ROOT
from vblab.util import LabError

from .findings import SEEDS, Finding
from .tools import Tools
from .tree import Tree

VERSION = "VB_ABI_VERSION"
# Header, and the folder with its records.
HEADERS = (("include/vbalance/abi.h", "check/abi"),
           (f"{SEEDS}abi/abi.h", f"{SEEDS}abi"))
RECORD = "check/check --record-abi"

_MACRO = re.compile(r"^#define (VB_\w+)(\([^)]*\))?[ \t]+(.*)$", re.MULTILINE)
_STRUCT = re.compile(r"\bstruct (vb_\w+) \{([^{}]*)\};")
_FIELD = re.compile(r"\s*(\w+) (\w+)(?:\[[^;]*\])?;")

# How many there are of something: grows when one is added.
_COUNT = re.compile(r"VB_NR_")


@dataclass(frozen=True)
class Field:
    type: str
    offset: int
    size: int

    def __str__(self) -> str:
        return f"{self.type}, {self.size} bytes at {self.offset:#x}"


@dataclass
class Abi:
    constants: dict[str, str] = field(default_factory=dict)
    # Fields by name, and "" for the structure itself.
    structs: dict[str, dict[str, Field]] = field(default_factory=dict)

    @property
    def version(self) -> int:
        return int(self.constants[VERSION], 0)


def parse(text: str) -> Abi:
    """A record: `NAME = VALUE` and `STRUCT[.FIELD]: TYPE OFFSET SIZE`."""
    abi = Abi()
    for line in text.splitlines():
        if m := re.match(r"(\w+(?:\(.*?\))?) = (.*)$", line):
            abi.constants[m[1]] = m[2]
        elif m := re.match(r"(\w+)(?:\.(\w+))?: (\w+) (\w+) (\w+)$", line):
            abi.structs.setdefault(m[1], {})[m[2] or ""] = Field(
                m[3], int(m[4], 0), int(m[5], 0))
        else:
            raise LabError(f"not a line of a record of the ABI: {line!r}")
    return abi


def _own_lines(preprocessed: str, header: str) -> str:
    """Without what it includes."""
    own, lines = False, []
    for line in preprocessed.splitlines():
        if m := re.match(r'# \d+ "([^"]*)"', line):
            own = m[1] == header
        elif own:
            lines.append(line)
    return "\n".join(lines)


def _program(header: str, macros: str, code: str) -> tuple[list[str], str]:
    """Lines of the record that are known, and a program for the others."""
    known, asked = [], []
    for name, arguments, body in sorted(_MACRO.findall(macros)):
        if arguments:
            known.append(f"{name}{arguments} = {' '.join(body.split())}")
        else:
            asked.append(f'printf("{name} = %#llx\\n", '
                         f'(unsigned long long)({name}));')
    structs = _STRUCT.findall(code)
    if len(structs) != len(re.findall(r"\b(?:struct|union|enum) \w* ?\{", code)):
        raise LabError(f"{header}: something that is no plain structure")
    for name, body in structs:
        asked.append(f'printf("{name}: struct 0 %zu\\n", '
                     f'sizeof(struct {name}));')
        rest = _FIELD.sub("", body).strip()
        if rest:
            raise LabError(f"{header}: struct {name}: not understood: {rest}")
        for kind, member in _FIELD.findall(body):
            asked.append(
                f'printf("{name}.{member}: {kind} %#zx %zu\\n", '
                f'__builtin_offsetof(struct {name}, {member}), '
                f'sizeof(((struct {name} *)0)->{member}));')
    return known, (f'#include <stdio.h>\n#include "{header}"\n'
                   "int main(void)\n{\n" + "\n".join(asked) + "\n}\n")


def describe(tools: Tools, header: str) -> str:
    """The record of a header as it is now."""
    compiler = root.ensure(kernels.data()["tools_root"])
    name = f"/{REPO_IN_ROOT}/{header}"
    known, program = _program(
        name, tools.run(["gcc", "-E", "-dM", name], root=compiler),
        _own_lines(tools.run(["gcc", "-E", name], root=compiler), name))
    source, made = tools.work / "abi.c", tools.work / "abi"
    source.write_text(program)
    tools.run(["gcc", "-o", tools.inside(made), tools.inside(source)],
              root=compiler)
    said = tools.run([tools.inside(made)], root=compiler)
    return "".join(f"{line}\n" for line in known) + said


def broken(old: Abi, new: Abi) -> Iterator[tuple[str, str]]:
    """What an old host or guest would misunderstand: name, and why."""
    for name, value in old.constants.items():
        if name == VERSION or (_COUNT.match(name)
                               and int(new.constants.get(name, "0"), 0)
                               > int(value, 0)):
            continue
        if new.constants.get(name) != value:
            yield name, (f"is {new.constants.get(name, 'gone')}, "
                         f"was {value}")
    for struct, was in old.structs.items():
        now = new.structs.get(struct)
        if now is None:
            yield struct, "is gone"
            continue
        for name, f in was.items():
            if now.get(name) != f and not name.startswith("reserved"):
                yield name or struct, (f"is {now.get(name, 'gone')}, was {f}")
        free = [f for name, f in was.items() if name.startswith("reserved")]
        for name, f in now.items():
            if name not in was and not name.startswith("reserved") and not any(
                    r.offset <= f.offset
                    and f.offset + f.size <= r.offset + r.size for r in free):
                yield name, "is new, where nothing was reserved"


def verdict(old: str | None, new: str) -> list[tuple[str, str]]:
    """@old: the record of this version. Findings by the name that they are of."""
    if old is None:
        return [(VERSION, f"nothing is recorded of version "
                 f"{parse(new).version}: run `{RECORD}` and commit the file")]
    wrong = list(broken(parse(old), parse(new)))
    if wrong:
        return [(name, f"{why}: who was built with the old header would "
                 f"misunderstand it. Undo it, or raise {VERSION} and run "
                 f"`{RECORD}`") for name, why in wrong]
    if old != new:
        return [(VERSION, "something was added to or renamed in what is "
                 "reserved. If zero keeps its old meaning there, run "
                 f"`{RECORD}` and commit the file")]
    return []


def _record_path(repo: Path, folder: str, text: str) -> Path:
    return repo / folder / f"{parse(text).version}.txt"


def _git(repo: Path, *words: str) -> str:
    """Nothing where this is no clone, or there is no git."""
    try:
        # A checkout may be somebody else's.
        return subprocess.run(["git", "-c", "safe.directory=*", "-C", repo,
                               *words], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL).stdout
    except FileNotFoundError:
        return ""


def committed(repo: Path, folder: str) -> list[tuple[str, str, str]]:
    """Path, text and a commit of each record, as it ever was in what leads to
    here."""
    blobs = {}
    for commit in _git(repo, "rev-list", "--full-history", "HEAD", "--",
                       folder).split():
        for line in _git(repo, "ls-tree", commit, f"{folder}/").splitlines():
            about, path = line.split("\t")
            blobs[path, about.split()[2]] = commit
    return [(path, _git(repo, "cat-file", "blob", blob), commit)
            for (path, blob), commit in blobs.items()]


def rewritten(repo: Path, folder: str) -> list[Finding]:
    """Records that do not hold what was committed under their number."""
    found = set()
    for path, text, commit in committed(repo, folder):
        file = repo / path
        if not file.exists():
            found.add(Finding(path, 0, f"is gone, and was in {commit[:12]}"))
            continue
        now = file.read_text()
        for name, why in broken(parse(text), parse(now)):
            found.add(Finding(path, _line_of(name, now.splitlines()),
                              f"{name} {why} in {commit[:12]}: this version "
                              f"is out. Undo it, or raise {VERSION}"))
    return sorted(found)


def _line_of(name: str, lines: list[str]) -> int:
    word = re.compile(rf"\b{re.escape(name.split('(')[0])}\b")
    return next((n for n, text in enumerate(lines, 1) if word.search(text)), 1)


def check(tree: Tree, tools: Tools) -> list[Finding]:
    records = HEADERS[0][1]
    found = rewritten(tree.repo, records)
    if not committed(tree.repo, records) or _git(
            tree.repo, "rev-parse", "--is-shallow-repository").strip() == "true":
        print("left out: abi: what else was committed of the records (no "
              "clone, or without its history)", flush=True)
    for header, folder in HEADERS:
        new = describe(tools, header)
        path = _record_path(tree.repo, folder, new)
        old = path.read_text() if path.exists() else None
        lines = (tree.repo / header).read_text().splitlines()
        for name, why in verdict(old, new):
            found.append(Finding(header, _line_of(name, lines),
                                 f"{name} {why}"))
    return found


def record(tree: Tree, tools: Tools) -> Path:
    """Writes the record of the present version, unless it would not be one."""
    header, folder = HEADERS[0]
    new = describe(tools, header)
    path = _record_path(tree.repo, folder, new)
    if path.exists():
        wrong = list(broken(parse(path.read_text()), parse(new)))
        if wrong:
            raise LabError(f"{header}: {wrong[0][0]} {wrong[0][1]}: "
                           f"raise {VERSION} first")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(new)
    return path
