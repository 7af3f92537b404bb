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
KVM_H = "include/linux/kvm_host.h"
# Tracepoint: the header that has it, and another type in it.
CHANGED = {
    "irq_handler_entry": (IRQ_H, "s/int irq, struct/long irq, struct/"),
    "sched_switch": (SCHED_H, "s/unsigned int prev_state/long prev_state/"),
    "vector_config": (VECTORS_H, "s/unsigned int irq/unsigned long irq/"),
}
# The same of functions that the host module hooks.
HOOKED = {
    "kvm_arch_vcpu_load": (KVM_H, "s/, int cpu)/, long cpu)/"),
    "set_user_nice": ("include/linux/sched.h", "s/, long nice)/, int nice)/"),
}
# What asks for it, and what is off without.
GONE = {
    "sched_switch": ("task_events", "hints of processes are off"),
    "vector_config": ("vector_events", "redirection is off"),
}
NEEDED = "irq_handler_entry"
MAKE = MAKE_COPY + """
common=$(sed -n 's,^include \\(.*\\)/Makefile$,\\1,p' Makefile)
cp -a "$common" "/usr/src/$K-common"
sed -i "s,$common,/usr/src/$K-common," Makefile
cp -r /mnt/repo "/tmp/$K"
"""
# With one header that is another one meanwhile. ONLY=CONFIG_KVM=: the guest's.
TRY = """cd "/usr/src/$K-common" && cp "$FILE" /tmp/as-it-was &&
sed -i "$EDIT" "$FILE" && ! cmp -s "$FILE" /tmp/as-it-was || exit 99
make -s -C "/tmp/$K" KDIR="/usr/src/$K" KBUILD_MODPOST_WARN=1 $ONLY $MORE
status=$?
cp /tmp/as-it-was "$FILE"
exit $status
"""


class Headers(StoryTest, unittest.TestCase):
    ROOT = "packaging"

    @classmethod
    def tell(cls, story):
        def attempt(step, file, edit, only="CONFIG_KVM=", more=""):
            story.step(step, TRY, K=KERNEL, FILE=file, EDIT=edit, ONLY=only,
                       MORE=more)

        story.step("kernel", MAKE, K=KERNEL, LIKE=cls.kernel)
        for name, (file, edit) in CHANGED.items():
            attempt(f"changed-{name}", file,
                    f"/^TRACE_EVENT({name},/,/TP_ARGS/{edit}")
        for name in (*GONE, NEEDED):
            attempt(f"gone-{name}", CHANGED[name][0],
                    f"s/^TRACE_EVENT({name},/TRACE_EVENT({name}_gone,/")
        for name, (file, edit) in HOOKED.items():
            attempt(f"hooked-{name}", file, f"/\\b{name}(/{edit}", only="")
        attempt("insane", FTRACE_H, "1i #error as in no kernel")
        # One that has nothing to say against anything.
        attempt("any", FTRACE_H, "1i /* as it was */", more="CC=true")
        attempt("none", FTRACE_H, "1i /* as it was */", more="CC=gcc-none")
        attempt("old", FTRACE_H, "1i /* as it was */",
                more="VERSION=6 PATCHLEVEL=0")
        # What no answer but one needs.
        attempt("half-sane", SCHED_H, "1i #error as in no other kernel")

    def assert_only_error(self, step, error):
        self.output("kernel")
        step = self.steps[step]
        self.assertEqual(step.status, 2, step.output)
        errors = re.findall(r"^\S+:\d+:\d+: error: .*", step.output, re.M)
        self.assertEqual(len(errors), 1, step.output)
        self.assertRegex(errors[0], error)

    def test_changed_tracepoint(self):
        for name in CHANGED:
            with self.subTest(name):
                self.assert_only_error(
                    f"changed-{name}", r"/vbg_load\.c:.*"
                    rf"\bcheck_trace_callback_type_{name}\b")

    def test_changed_function_that_is_hooked(self):
        for name in HOOKED:
            with self.subTest(name):
                self.assert_only_error(
                    f"hooked-{name}", r"/vbh_canaries\.h:.*"
                    rf"\bconflicting types for \W{name}\b")

    def test_tracepoint_of_one_feature_is_gone(self):
        for name, (probe, off) in GONE.items():
            with self.subTest(name):
                said = self.output(f"gone-{name}")
                self.assertIn(f"vbalance: {probe}: missing: vbalance_guest: "
                              f"{off}\n", said)
                self.assertEqual(said.count("vbalance_guest:"), 1, said)
                self.assertNotRegex(said, r"\.[ch]:\d+:.*warning:")

    def assert_no_answers(self, step, reason):
        """Return: all that was said."""
        step = self.steps[step]
        self.assertEqual(step.status, 2, step.output)
        self.assertIn(reason, step.output)
        self.assertNotRegex(step.output, "(?m)^vbalance: ")
        return step.output

    def test_nothing_is_said_when_no_answer_counts(self):
        said = self.assert_no_answers(
            "insane", "vbalance: a file that includes only kernel headers "
            "does not compile")
        self.assertIn("error: #error as in no kernel", said)

    def test_a_compiler_that_is_not_there(self):
        said = self.assert_no_answers(
            "none", "is the compiler the one that it was configured for?")
        self.assertRegex(said, "gcc-none: .*(not found|No such file)")

    def test_a_kernel_that_is_too_old(self):
        self.assert_no_answers(
            "old", "vbalance: kernels before 6.1 are not supported")

    def test_nor_when_each_would_be_yes(self):
        self.assert_no_answers(
            "any", "vbalance: a file that calls what no header declares "
            "compiles: is true a compiler, and ")

    def test_a_header_that_does_not_compile_is_no_answer(self):
        said = self.assert_no_answers(
            "half-sane", "headers of this kernel that "
            "compat/probe/task_events.c includes do not compile")
        self.assertIn("error: #error as in no other kernel", said)

    def test_tracepoint_that_all_need_is_gone(self):
        step = self.steps[f"gone-{NEEDED}"]
        self.assertEqual(step.status, 2, step.output)
        self.assertRegex(step.output, rf"/vbg_load\.c:.*error: .*{NEEDED}\b")


if __name__ == "__main__":
    unittest.main()
