# SPDX-License-Identifier: GPL-2.0
"""What a build says of a kernel, for each series; and that DKMS builds for
each, and for none that is newer than all of them."""

import re
import subprocess
import unittest

import booting  # noqa: F401
from vblab import build, kernels, paths, util

PROBES = {p.stem for p in (paths.REPO / "compat/probe").glob("*.c")} \
    - {"sanity", "insane"}
# And whether functions that are linked to have versions.
ASKED = PROBES | {"MODVERSIONS"}
FOUND = {
    "6.1": {"MODVERSIONS", "cpu_is_isolated", "pin_user_pages_vmas", "hf_smm_mask",
            "task_events", "vector_events"},
    "6.12": {"MODVERSIONS", "arch_ftrace_regs", "cpu_is_isolated",
             "ftrace_regs_get_argument", "irqstat",
             "custom_slice", "pcpu_hot", "pgty_hugetlb", "sched_vlag",
             "hf_smm_mask", "task_events", "vector_events"},
    "newest": {"arch_ftrace_regs", "cpu_is_isolated",
               "ftrace_regs_get_argument", "irqstat",
               "custom_slice", "hrtimer_setup", "page_compound_info",
               "pgty_hugetlb", "task_throttled",
               "vhost_features_array", "hf_smm_mask", "task_events",
               "vector_events"},
}
# The newest one moves on.
EITHER = {"newest": {"sched_vlag"}}


def log_of(kernel, repo=paths.REPO):
    """Of a build, from the report at its end on."""
    modules = build.modules(kernels.get(kernel), repo=repo)
    log = (modules["vbalance_host.ko"].parent / "log").read_text()
    return log[log.index("\nvbalance: ") + 1:]


def release_of(kernel):
    """(major, minor)"""
    return tuple(map(int, kernels.get(kernel).release.split(".")[:2]))


def first_not_tried():
    text = (paths.REPO / "compat/probe/tried.c").read_text()
    bound = re.search(r">= KERNEL_VERSION\((\d+), (\d+), 0\)$", text, re.M)
    return tuple(map(int, bound.groups()))


def found_in(kernel):
    found = set(FOUND[kernel])
    if release_of(kernel) >= (7, 3):
        found.add("sched_h_load")
    if release_of(kernel) < first_not_tried():
        found.add("tried")
    return found


class Facilities(unittest.TestCase):
    def test_every_probe_is_answered_once(self):
        for kernel in FOUND:
            with self.subTest(kernel):
                found, either = found_in(kernel), EITHER.get(kernel, set())
                want = {(p, "found" if p in found else "missing")
                        for p in ASKED - either} | {("BTF", "found")}
                said = re.findall(r"^vbalance: (\w+): (found|missing): \S",
                                  log_of(kernel), re.M)
                self.assertEqual(
                    sorted(s for s in said if s[0] not in either),
                    sorted(want))
                self.assertEqual(len(said), len(ASKED) + 1)


class Functions(unittest.TestCase):
    """That are hooked, in the kernel's own modules and in its BTF."""

    def test_they_are_read(self):
        for kernel in FOUND:
            with self.subTest(kernel):
                said = log_of(kernel)
                # Debian's headers of 6.1 have no BTF.
                self.assertEqual(
                    re.findall("^vbalance: (.*): whether it has all", said,
                               re.M),
                    ["the kernel: neither runs nor comes with its headers"] *
                    (kernel == "6.1"))
                self.assertNotIn("(): missing in", said)

    def test_some_that_are_not_there(self):
        with util.temp_dir(paths.tmp(), "build-") as repo:
            build.copy_sources(paths.REPO, build.source_files(
                build.MODULE_SOURCES, paths.REPO), repo)
            facts = repo / "host-mod/vbh_facts.c"
            text = facts.read_text()
            for name, other in (("ioeventfd_write", "ioeventfd_wrote"),
                                ("__sched_setscheduler", "__sched_was_set")):
                self.assertEqual(text.count(f", {name},"), 1, name)
                text = text.replace(f", {name},", f", {other},")
            facts.write_text(text)
            said = re.findall(r"^vbalance: (.*\(\): .*)",
                              log_of(kernels.default(), repo), re.M)
        self.assertEqual(said, [
            "__sched_was_set(): missing in the kernel: vbalance_host: "
            "feature boost is off",
            "ioeventfd_wrote(): missing in kvm: vbalance_host: "
            "feature kicks is off"])

    def test_headers_declare_what_they_are_trusted_with(self):
        facts = (paths.REPO / "host-mod/vbh_facts.c").read_text()
        declared = set(re.findall(r"\bVB_FUNC\(\w+, (\w+),", facts))
        self.assertGreater(len(declared), 3)
        for kernel in FOUND:
            (common,) = kernels.get(kernel).root.path.glob(
                "usr/src/linux-headers-*-common*")
            found = subprocess.run(
                ["grep", "-rhoE", rf"\b({'|'.join(declared)})\(",
                 "include", "arch/x86/include"], cwd=common, text=True,
                stdout=subprocess.PIPE, check=True).stdout
            self.assertEqual({f.rstrip("(") for f in found.split()}, declared,
                             kernel)


class Range(unittest.TestCase):
    def test_dkms_takes_what_is_tried(self):
        found = {name: kernels.get(name).release for name in FOUND}
        text = (paths.REPO / "dkms.conf").read_text()
        taken = re.search(r"^vb_range='(.*)'$", text, re.M)[1]
        for release in found.values():
            self.assertRegex(release, taken)
        major = int(found["newest"].split(".")[0])
        self.assertRegex(f"{major}.99.0-1-amd64", taken)
        self.assertNotRegex(f"{major + 1}.0.0-1-amd64", taken)

    def test_no_other_counts_as_tried(self):
        first_other = first_not_tried()
        major, minor = newest = release_of("newest")
        self.assertLessEqual(first_other, (major, minor + 1))
        last = f"{first_other[0]}.{first_other[1] - 1}"
        for path, words in (
                ("compat/probe/tried.c", f"up to {last}"),
                ("Documentation/kernels.md", f"up to {last}"),
                ("Documentation/install.md",
                 f"6.1, 6.12 and {last} are what our tests build and run")):
            self.assertIn(words, (paths.REPO / path).read_text(), path)
        # No mistake of anybody's, but not to be missed.
        if newest >= first_other:
            self.skipTest(f"nobody has looked at {major}.{minor} yet: "
                          "compat/probe/tried.c")


if __name__ == "__main__":
    unittest.main()
