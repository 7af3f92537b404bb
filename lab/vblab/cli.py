# SPDX-License-Identifier: GPL-2.0
"""Command line of lab/lab."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from . import build, kernels, options, root, session, util
from .util import Interrupted, LabError


def _run(o: argparse.Namespace) -> int:
    build.add_variants(o)
    build.add_test_modules(o)
    return session.run(o)


def _shell(o: argparse.Namespace) -> int:
    build.add_variants(o)
    build.add_test_modules(o)
    return session.shell(o)


def _build(o: argparse.Namespace) -> int:
    import shutil
    kernel = kernels.get(o.kernel)
    tools = root.ensure(kernels.data()["tools_root"])
    products = {**build.modules(kernel), **build.programs(tools)}
    if o.dir is not None:
        os.makedirs(o.dir, exist_ok=True)
    for name, path in products.items():
        if o.dir is not None:
            shutil.copy(path, os.path.join(o.dir, name))
            path = os.path.join(o.dir, name)
        print(path)
    return 0


def _chroot(o: argparse.Namespace) -> int:
    command = o.words[1:] if o.words[:1] == ["--"] else o.words
    if not command:
        raise LabError("chroot: no command given")
    return root.ensure(o.root).chroot_interactive(command)


def _deb(o: argparse.Namespace) -> int:
    from . import deb
    for path in deb.build(o.dir):
        print(path)
    return 0


def _add_jobs(p: argparse.ArgumentParser) -> None:
    p.add_argument("--jobs", type=options.positive, metavar="N",
                   help="boots side by side (default: one for each CPU, as "
                        "far as there are 5 GB of memory for each)")


def _add_record(p: argparse.ArgumentParser) -> None:
    p.add_argument("--record", type=Path, metavar="FILE",
                   help="results of boots go there; what is there already, of "
                        "the same sources and packages, is not run again. To go "
                        "on where a run was ended")


def _doctor(o: argparse.Namespace) -> int:
    from . import doctor
    return doctor.run(o)


def _test(o: argparse.Namespace) -> int:
    from . import suite
    return suite.run(o)


def _matrix(o: argparse.Namespace) -> int:
    from . import matrix
    return matrix.run(o)


def _debug(o: argparse.Namespace) -> int:
    from . import watched
    return watched.run(o)


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="lab/lab", description="The nested test bed: an emulated KVM "
        "host (L1) with real KVM guests (L2). See lab/README.md.")
    sub = p.add_subparsers(dest="command", required=True, metavar="COMMAND")

    c = sub.add_parser("doctor", help="check this machine and set the lab up")
    c.add_argument("--all", action="store_true",
                   help="set up all kernels of the distribution, not only "
                   "the default")
    c.add_argument("--update", action="store_true",
                   help="make the package roots that are there anew, with what "
                   "the mirror has by now; nothing else may use them meanwhile")
    c.set_defaults(func=_doctor)

    c = sub.add_parser("run", help="boot, run scripts, judge the logs")
    options.add_boot_options(c)
    options.add_run_options(c)
    c.set_defaults(func=_run)

    c = sub.add_parser("shell", help="a prompt in L1 with guests up")
    options.add_boot_options(c)
    options.add_out_options(c)
    c.set_defaults(func=_shell)

    c = sub.add_parser("build", help="build modules and helper programs")
    c.add_argument("--kernel", default=kernels.default(), metavar="K")
    c.add_argument("dir", nargs="?", metavar="DIR",
                   help="copy the products there")
    c.set_defaults(func=_build)

    c = sub.add_parser("chroot", help="run a command in the package root; "
                       "the checkout is its current folder, read-only")
    c.add_argument("--root", default=kernels.data()["tools_root"],
                   choices=list(kernels.data()["roots"]))
    c.add_argument("words", nargs=argparse.REMAINDER, metavar="[--] CMD...")
    c.set_defaults(func=_chroot)

    c = sub.add_parser("deb", help="build the Debian package")
    c.add_argument("dir", type=Path, metavar="DIR",
                   help="where it and its source go")
    c.set_defaults(func=_deb)

    c = sub.add_parser("test", help="unit tests and lab tests")
    c.add_argument("--filter", metavar="RE", default="",
                   help="only those whose name matches")
    c.add_argument("--list", action="store_true", help="only list them")
    options.add_kernel_options(c)
    c.add_argument("--long", action="store_true",
                   help="also what is marked long")
    c.add_argument("--begin-within", type=options.natural, metavar="MINUTES",
                   help="boots, and the tests in them, that have not begun "
                   "by then are skipped")
    options.add_env_option(c, "environment of the boots' tests")
    c.add_argument("--coverage", action="store_true",
                   help="which lines of the modules ran, by file")
    c.add_argument("--coverage-known", type=Path, metavar="FILE",
                   help="with --coverage: an error path that never ran and is "
                   "not listed there is a failure, and one that is and did")
    c.add_argument("--coverage-total", type=Path, metavar="FILE",
                   help="with what earlier runs have put there, and for later "
                        "ones")
    _add_jobs(c)
    _add_record(c)
    c.set_defaults(func=_test)

    c = sub.add_parser("matrix", help="lab tests on pairs of kernels")
    c.add_argument("--filter", metavar="RE", default="",
                   help="only those whose \"HOST/GUEST BOOT\" matches")
    c.add_argument("--list", action="store_true", help="only list them")
    options.add_env_option(c, "environment of the boots' tests")
    _add_jobs(c)
    _add_record(c)
    c.set_defaults(func=_matrix)

    c = sub.add_parser("debug", help="all lab tests on the kernels that watch "
                       "memory, locks or races: as host, then as guest")
    c.add_argument("--filter", metavar="RE", default="",
                   help="only those whose name matches")
    c.add_argument("--list", action="store_true", help="only list them")
    options.add_env_option(c, "environment of the boots' tests")
    _add_jobs(c)
    _add_record(c)
    c.set_defaults(func=_debug, long=True, begin_within=None, coverage=False,
                   coverage_known=None, coverage_total=None)
    return p


def main(argv: list[str]) -> int:
    o = parser().parse_args(argv)
    util.set_quiet(getattr(o, "quiet", False))
    util.install_signal_handlers()
    try:
        return o.func(o)
    except LabError as e:
        print(f"lab: {e}", file=sys.stderr)
        return session.EXIT_SETUP
    except Interrupted:
        print("lab: interrupted", file=sys.stderr)
        return session.EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return session.EXIT_SCRIPT
