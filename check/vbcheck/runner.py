# SPDX-License-Identifier: GPL-2.0
"""Runs the checks side by side and tells what they have found."""

from __future__ import annotations

import functools
import os
import re
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import NoReturn

from vblab import kernels, paths
from vblab.ktap import FAILED, PASSED, Result
from vblab.root import PackageRoot, install_host_packages, require_root_user
from vblab.suite import Tally
from vblab.util import Interrupted, LabError, temp_dir

from . import abi, findings, kbuild, semantic, texts, toolroot
from .findings import Finding
from .tools import Tools
from .tree import Tree


@dataclass(frozen=True)
class Check:
    name: str
    find: Callable[[Tree, Tools], list[Finding]]
    seeds: str      # in check/seeds; what its findings are judged by

    # Checks of one kind on several kernels share their exceptions.
    @property
    def kind(self) -> str:
        return self.name.split()[0]


def checks(tree: Tree, tools: Tools) -> list[Check]:
    builds = kbuild.Builds(tree, tools)

    def build(kind: str) -> list[Check]:
        return [Check(f"{kind} {kernel}",
                      functools.partial(lambda kernel, *_: builds.findings(
                          kernel, kind), kernel),
                      f"kbuild/{kind}") for kernel in kbuild.KERNELS]

    # The longest first; sparse has its results when the builds are done.
    return build("warnings") + [
        Check("kernel-cocci", semantic.kernel_scripts, "kernel-cocci"),
        Check("checkpatch", texts.checkpatch, "checkpatch"),
        Check("cocci", semantic.our_rules, "cocci"),
        Check("contexts", semantic.allowed_calls, "contexts"),
        Check("kernel-doc", texts.kernel_doc, "kernel-doc"),
        Check("shellcheck", texts.shellcheck, "shellcheck"),
        Check("abi", abi.check, "abi"),
        Check("pyflakes", texts.pyflakes, "pyflakes"),
        Check("spelling", texts.spelling, "spelling")
    ] + build("sparse") + build("members")


def _left(check: Check, future: Future, tree: Tree,
          exceptions: list[findings.Exception_]) -> list[Finding]:
    seeds = [s for s in tree.files
             if s.startswith(findings.SEEDS + check.seeds)]
    try:
        return findings.judge(check.kind, future.result(),
                              findings.marked(tree.repo, seeds), exceptions)
    except LabError as e:
        return [Finding("", 0, str(e))]


def _tell(tally: Tally, name: str, left: list[Finding]) -> None:
    tally.add([Result(name, FAILED if left else PASSED)])
    for f in left:
        print(f"    {f}", flush=True)


def _interrupted() -> NoReturn:
    # Threads cannot be stopped, nor what they wait for: it goes with us.
    print("interrupted", flush=True)
    os._exit(130)


def _tools_root(whole: bool) -> PackageRoot:
    """The checkers. With an empty cache most of the time goes into such folders,
    so those of the kernels are made meanwhile if all checks are to run. One
    that cannot be had is left to the checks that need it."""
    install_host_packages()
    with ThreadPoolExecutor() as pool:
        try:
            for name in kbuild.KERNELS if whole else ():
                pool.submit(kernels.get, name)
            return toolroot.ensure()
        except Interrupted:
            _interrupted()


def run(pattern: re.Pattern) -> int:
    require_root_user("make check")
    tree = Tree(paths.REPO)
    exceptions = findings.load_exceptions(tree.repo)
    tally = Tally()
    began = time.monotonic()
    with temp_dir(paths.tmp(), "check-") as work:
        tools = Tools(_tools_root(not pattern.pattern), work)
        chosen = [c for c in checks(tree, tools) if pattern.search(c.name)]
        with ThreadPoolExecutor(tools.cpus) as pool:
            running = {pool.submit(c.find, tree, tools): c for c in chosen}
            try:
                for future in as_completed(running):
                    check = running[future]
                    _tell(tally, check.name,
                          _left(check, future, tree, exceptions))
            except Interrupted:
                _interrupted()
    if not pattern.pattern:
        _tell(tally, "exceptions", findings.stale(exceptions))
    print(f"{time.monotonic() - began:.0f} s")
    print(tally.recap(), end="")
    print(tally.summary(), flush=True)
    return 1 if tally.count(FAILED) or not tally.results else 0
