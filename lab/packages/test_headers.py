# SPDX-License-Identifier: GPL-2.0
"""Kernels whose headers are not what vbalance_guest was written for: the build
ends where something has changed, and does without what only one feature
needs. The log and debugfs then: selftests/hooks.sh."""

import re
import unittest

from chroots import MAKE_COPY, StoryTest

KERNEL = "6.95.0-other-headers"
FTRACE_H = "include/linux/ftrace.h"
IRQ_H = "include/trace/events/irq.h"
SCHED_H = "include/trace/events/sched.h"
VECTORS_H = "arch/x86/include/asm/trace/irq_vectors.h"
# Tracepoint: the header that has it, and another type in it.
CHANGED = {
    "irq_handler_entry": (IRQ_H, "s/int irq, struct/long irq, struct/"),
    "sched_switch": (SCHED_H, "s/unsigned int prev_state/long prev_state/"),
    "vector_config": (VECTORS_H, "s/unsigned int irq/unsigned long irq/"),
}
# What asks for it, and what is off without.
GONE = {
    "sched_switch": ("task_events", "hints of processes are off"),
    "vector_config": ("vector_events", "redirection is off"),
}
MAKE = MAKE_COPY + """
common=$(sed -n 's,^include \\(.*\\)/Makefile$,\\1,p' Makefile)
cp -a "$common" "/usr/src/$K-common"
sed -i "s,$common,/usr/src/$K-common," Makefile
cp -r /mnt/repo "/tmp/$K"
"""
# With one header that is another one meanwhile. CONFIG_KVM=: the guest's only.
TRY = """cd "/usr/src/$K-common" && cp "$FILE" /tmp/as-it-was &&
sed -i "$EDIT" "$FILE" && ! cmp -s "$FILE" /tmp/as-it-was || exit 99
make -s -C "/tmp/$K" KDIR="/usr/src/$K" KBUILD_MODPOST_WARN=1 CONFIG_KVM=
status=$?
cp /tmp/as-it-was "$FILE"
exit $status
"""


class Headers(StoryTest, unittest.TestCase):
    ROOT = "packaging"

    @classmethod
    def tell(cls, story):
        def attempt(step, file, edit):
            story.step(step, TRY, K=KERNEL, FILE=file, EDIT=edit)

        story.step("kernel", MAKE, K=KERNEL, LIKE=cls.kernel)
        for name, (file, edit) in CHANGED.items():
            attempt(f"changed-{name}", file,
                    f"/^TRACE_EVENT({name},/,/TP_ARGS/{edit}")
        for name in GONE:
            attempt(f"gone-{name}", CHANGED[name][0],
                    f"s/^TRACE_EVENT({name},/TRACE_EVENT({name}_gone,/")
        attempt("insane", FTRACE_H, "1i #error as in no kernel")

    def test_changed_tracepoint(self):
        self.output("kernel")
        for name in CHANGED:
            with self.subTest(name):
                step = self.steps[f"changed-{name}"]
                self.assertEqual(step.status, 2, step.output)
                errors = re.findall(r"^\S+:\d+:\d+: error: .*", step.output,
                                    re.M)
                self.assertEqual(len(errors), 1, step.output)
                self.assertRegex(errors[0], r"/vbg_load\.c:.*"
                                 rf"\bcheck_trace_callback_type_{name}\b")

    def test_tracepoint_of_one_feature_is_gone(self):
        for name, (probe, off) in GONE.items():
            with self.subTest(name):
                said = self.output(f"gone-{name}")
                self.assertIn(f"vbalance: {probe}: missing: vbalance_guest: "
                              f"{off}\n", said)
                self.assertEqual(said.count("vbalance_guest:"), 1, said)
                self.assertNotRegex(said, r"\.[ch]:\d+:.*warning:")

    def test_nothing_is_said_when_no_answer_counts(self):
        step = self.steps["insane"]
        self.assertEqual(step.status, 2, step.output)
        self.assertIn("vbalance: a file that includes only kernel headers "
                      "does not compile", step.output)
        self.assertNotRegex(step.output, "(?m)^vbalance: ")
        self.assertNotIn("error: ", step.output)


if __name__ == "__main__":
    unittest.main()
