# SPDX-License-Identifier: GPL-2.0
"""What a build says of a kernel, for each series."""

import re
import unittest

import booting  # noqa: F401
from vblab import build, kernels, paths

PROBES = {p.stem for p in (paths.REPO / "compat/probe").glob("*.c")} \
    - {"sanity"}
FOUND = {
    "6.1": {"pin_user_pages_vmas", "hf_smm_mask", "task_events",
            "vector_events"},
    "6.12": {"ftrace_regs_get_argument", "irqstat", "custom_slice",
             "sched_vlag", "hf_smm_mask", "task_events", "vector_events"},
    "newest": {"ftrace_regs_get_argument", "irqstat", "custom_slice",
               "hrtimer_setup", "task_throttled", "sched_vlag",
               "vhost_features_array", "hf_smm_mask", "task_events",
               "vector_events"},
}
# The newest one moves on: from 7.3 on.
EITHER = {"newest": {"sched_h_load"}}


class Facilities(unittest.TestCase):
    def said(self, kernel):
        modules = build.modules(kernels.get(kernel))
        log = (modules["vbalance_host.ko"].parent / "log").read_text()
        return re.findall(r"^vbalance: (\w+): (found|missing): \S", log, re.M)

    def test_every_probe_is_answered_once(self):
        for kernel, found in FOUND.items():
            with self.subTest(kernel):
                either = EITHER.get(kernel, set())
                want = {(p, "found" if p in found else "missing")
                        for p in PROBES - either} | {("BTF", "found")}
                said = self.said(kernel)
                self.assertEqual(
                    sorted(s for s in said if s[0] not in either),
                    sorted(want))
                self.assertEqual(len(said), len(PROBES) + 1)


if __name__ == "__main__":
    unittest.main()
