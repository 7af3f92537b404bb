# SPDX-License-Identifier: GPL-2.0
import unittest

import checkpath  # noqa: F401
from vbcheck import members
from vbcheck.findings import Finding
from vblab.util import LabError

TEXTS = {
    "host-mod/facts.c": "VB_MEMBER(A, task_struct, on_rq), VB_X_FACTS(A)\n"
                        "\tVB_MEMBER(A, kvm_vcpu,\t\\\n\t\t  arch.cr0),",
    "guest-mod/facts.c": "VB_MEMBER(B, irq_desc, lock), VB_FUNC(B, f, \"0\"),"
                         "VB_Z_FACTS(B)",
    "compat/x.h": "#define VB_X_FACTS(group) \\\n"
                  "\tVB_Y_FACTS(group) VB_Z_FACTS(group)\n"
                  "#define VB_Y_FACTS(group)\n#else\n"
                  "#define VB_Y_FACTS(group) VB_MEMBER(group, page, lru),\n",
    "common/x.h": "#define VB_Z_FACTS(group)\\\n"
                  "VB_MEMBER_AS(group, cfs_rq, load.weight, vb_cfs_rq),\n"
                  "#define VB_NOBODYS_FACTS(group) "
                  "VB_MEMBER(group, page, index),",
    "core/x.h": "VB_MEMBER(X, page, flags),",
}


LOAD = {("cfs_rq", "load"), ("load_weight", "weight")}


def findings(*uses):
    return list(members.findings("\n".join(uses), members.facts(TEXTS)))


class Members(unittest.TestCase):
    def test_facts(self):
        self.assertEqual(members.facts(TEXTS), {
            "host-mod": {("task_struct", "on_rq"), ("kvm_vcpu", "arch"),
                         ("kvm_vcpu_arch", "cr0"), ("page", "lru"), *LOAD},
            "guest-mod": {("irq_desc", "lock"), *LOAD}})

    def test_a_path_through_what_is_not_known(self):
        with self.assertRaises(LabError):
            members.facts({"host-mod/a.c": "VB_MEMBER(A, kvm_vcpu, run.x)"})

    def test_facts_of_the_module_count(self):
        use = "task_struct.on_rq {}/a.c 3"
        self.assertEqual(findings(use.format("host-mod")), [])
        self.assertEqual(findings(use.format("guest-mod")), [
            Finding("guest-mod/a.c", 3,
                    "task_struct.on_rq is in no list of facts")])
        self.assertEqual(findings(use.format("core")), [])

    def test_lists_count_for_modules_that_name_them(self):
        for use, number in (("page.lru host-mod/a.c 1", 0),
                            ("page.lru guest-mod/a.c 1", 1),
                            ("cfs_rq.load guest-mod/a.c 1", 0),
                            ("page.index host-mod/a.c 1", 1)):
            self.assertEqual(len(findings(use)), number, use)

    def test_paths(self):
        self.assertEqual(findings("kvm_vcpu.arch host-mod/a.c 1",
                                  "kvm_vcpu_arch.cr0 host-mod/a.c 1"), [])
        for name in ("kvm_vcpu.cr1", "kvm_vcpu_arch.cr2", "other.arch",
                     "other.cr0", "kvm_vcpu.cr0", "cfs_rq.weight"):
            self.assertEqual(len(findings(f"{name} host-mod/a.c 1")), 1, name)

    def test_ours_and_whole_structures(self):
        self.assertEqual(findings("vb_bucket.tokens host-mod/a.c 1",
                                  "vbh_vcpu.word host-mod/a.c 1",
                                  ":vbh_h.symbol host-mod/a.c 1",
                                  "task_struct.* host-mod/a.c 1"), [])

    def test_inline_functions_of_the_kernels(self):
        file = members.File(
            members="task_struct.on_rq host-mod/a.c 1",
            calls="f host-mod/a.c 3\nours host-mod/a.c 4\nh host-mod/a.c 5",
            inside_calls="def f \n--r g f\n--r h f\n--r h g\n--r f h\n"
                         "--r not_called other\n--r h ",
            inside_members="def file.f_inode \n-r- task_struct.on_rq g\n"
                           "-m- file.f_inode h\n-r- inode.i_size other\n"
                           "-r- inode.i_mode ")
        self.assertEqual(
            list(members.through_inlines(file, members.facts(TEXTS))),
            [Finding("host-mod/a.c", line,
                     f"file.f_inode is in no list of facts: by {way}()")
             for line, way in ((3, "f > h"), (5, "h"))])

    def test_nameless(self):
        self.assertEqual(findings("?.on_rq host-mod/a.c 1"), [])
        self.assertEqual(len(findings("?.state host-mod/a.c 1")), 1)

    def test_what_is_not_understood_is_a_finding(self):
        self.assertEqual(findings("semind: cannot open"),
                         [Finding("", 0, "semind: cannot open")])


if __name__ == "__main__":
    unittest.main()
