# SPDX-License-Identifier: GPL-2.0
"""`make dkms-install`, what DKMS does with it, and `make dkms-uninstall`."""

import re
import unittest

from chroots import (MAKE_COPY, MAKE_NAME, MAKE_NO_KVM, MAKE_REAL_TIME,
                     MODULES, VERSION, WHOLE, StoryTest, paths)

# Names of kernels decide about the range.
OUTSIDE = {"old": "6.0.0-1-amd64", "new": "8.0.0-1-amd64"}
# Within it, and the modules do not compile for it.
STRANGE = "7.99.0-1-amd64"
NO_KVM = "6.99.0-no-kvm"
REAL_TIME = "6.98.0-rt"

MAKE = "make -s -C /mnt/repo"
INSTALLED = 'ls -1 "/lib/modules/$K/updates/dkms"'
NOTHING = '! ls -d "/lib/modules/$K/updates" 2>&1'
INFO = """cd "/lib/modules/$K/updates/dkms" &&
for m in $MODULES; do
	modinfo -F vermagic $m.ko* && modinfo -F version $m.ko* || exit
done"""
UNITS = ("vbalance-guest.service", "vbalance-host.service")
ENABLE = f"""cd /etc/systemd/system && ls {" ".join(UNITS)} &&
ls /etc/udev/rules.d/*vbalance.rules &&
! sed -n 's|^Documentation=file://||p' {" ".join(UNITS)} | grep . || exit
systemctl enable {" ".join(UNITS)} 2>/dev/null &&
find . -path '*.wants/vbalance-*' | grep .
"""
STILL_ENABLED = f"systemctl is-enabled {' '.join(UNITS)}"
# Somebody's, though named as DKMS's copies are.
TREE = f"/usr/src/vbalance-{VERSION}"
# Where all that it says is compared. To stderr comes what readelf says: dkms
# 3.0.10 has it look for a compiler's name in a vmlinux, which in the headers of
# backports is there for its BTF alone.
STATUS = "dkms status 2>/dev/null"
THEIRS = "/usr/src/vbalance-for-kvm /usr/src/vbalance-9.tar.gz"
MAKE_THEIRS = f"""mkdir {TREE} /usr/src/vbalance-for-kvm &&
touch {TREE}/file /usr/src/vbalance-9.tar.gz
"""
# A copy of DKMS's, which has the mark.
COPY_OURS = (f"cp -a {TREE} /usr/src/vbalance-mine && "
             "rm /usr/src/vbalance-mine/.done")
THERE_NOT = f"; ! ls -d {TREE} /var/lib/dkms/vbalance/{VERSION} 2>/dev/null"
THERE = "; ls -d /usr/src/vbalance-* /usr/src/vbalance-*/.done"
NEWER = f"{VERSION}.1"
MAKE_NEWER = f"""cp -r /mnt/repo /tmp/newer && cd /tmp/newer &&
echo {NEWER} > VERSION &&
sed -i 's/^PACKAGE_VERSION=.*/PACKAGE_VERSION="{NEWER}"/' dkms.conf
"""
BREAK_NEWER = 'echo "#error half of a change" >> /tmp/newer/core/vbtypes.h'
MEND_NEWER = "sed -i '$d' /tmp/newer/core/vbtypes.h"
# The machine runs kernel K.
RUNNING = r"""mkdir -p /tmp/bin && cat > /tmp/bin/uname <<-END &&
	#!/bin/sh
	case \$1 in -r) echo $K ;; *) exec $(command -v uname) "\$@" ;; esac
END
chmod +x /tmp/bin/uname && export PATH=/tmp/bin:$PATH || exit
"""
# As install.md says.
REBUILD = "".join(
    line.replace("sudo ", "") for line in re.findall(
        r"(?m)^    (V=.*\n)    (.*unbuild.*\n)",
        (paths.REPO / "Documentation/install.md").read_text())[0])
# DKMS cannot install what it has built for kernel K.
FAILING = r"""mkdir -p /tmp/failing && cat > /tmp/failing/dkms <<-END &&
	#!/bin/sh
	case "\$*" in *"install "*" $NOT") echo no room >&2; exit 5 ;; esac
	exec $(command -v dkms) "\$@"
END
chmod +x /tmp/failing/dkms && export PATH=/tmp/failing:$PATH || exit
"""
# What the build says, after one that went well.
LOG = f"""grep '^vbalance: ' \
	"/var/lib/dkms/vbalance/{VERSION}/$K/$(uname -m)/log/make.log"
"""
# Its own words, not DKMS's.
BUILD = """cp -r /mnt/repo /tmp/checkout &&
make -s -C /tmp/checkout KDIR="/lib/modules/$K/build"
"""
MAKE_STRANGE = MAKE_COPY + """
echo "#error as no kernel before" >> include/generated/utsrelease.h
"""
# What kernel packages run when they come and go.
NEW_HEADERS = ('run-parts --exit-on-error --arg="$K" '
               "/etc/kernel/header_postinst.d")
# That of the image comes before that of the headers, or after it.
NEW_IMAGE = '/etc/kernel/postinst.d/dkms "$K"'
KERNEL_GOES = 'run-parts --exit-on-error --arg="$K" /etc/kernel/prerm.d'


class Dkms(StoryTest):
    @classmethod
    def tell(cls, story):
        first, second = cls.kernel, cls.other
        story.files("before")
        story.step("version", "dkms --version")
        story.step("theirs", MAKE_THEIRS)
        story.step("into-theirs", f"{MAKE} dkms-install KERNEL=$K", K=first)
        story.step("theirs-stays", f"ls {TREE} && rm -r {TREE}")

        for which, name in OUTSIDE.items():
            story.step(f"{which}-kernel", MAKE_NAME, K=name, LIKE=first)
            story.step(f"{which}-install", f"{MAKE} dkms-install KERNEL=$K",
                       K=name)
            story.step(f"{which}-hook", NEW_HEADERS, K=name)
            story.step(f"{which}-nothing", NOTHING, K=name)

        story.step("strange-kernel", MAKE_STRANGE, K=STRANGE, LIKE=first)
        story.step("strange-install", f"{MAKE} dkms-install KERNEL=$K",
                   K=STRANGE)
        story.step("strange-log", 'grep "no kernel before" '
                   "/tmp/vbalance-make.log.*")
        story.step("strange-forgotten", f"{STATUS}{THERE_NOT}")
        story.step("strange-next", NEW_HEADERS, K=second)
        story.step("strange-next-nothing", NOTHING, K=second)

        story.step("install", f"{MAKE} dkms-install KERNEL=$K", K=first)
        story.step("status", "dkms status")
        story.step("installed", INSTALLED, K=first)
        story.step("info", INFO, K=first, MODULES=" ".join(MODULES))
        story.step("log", LOG, K=first)
        story.step("units", ENABLE)
        story.step("copy", COPY_OURS)
        story.step("modprobe", 'modprobe -S "$K" -n -v -a vbalance_host '
                   "vbalance_guest", K=first)
        story.step("again", f"{MAKE} dkms-install KERNEL=$K", K=first)
        story.step("source-goes", f"rm -r /usr/src/vbalance-{VERSION}")
        story.step("sourceless-remove", f"{MAKE} dkms-uninstall")
        story.step("sourceless-nothing", NOTHING, K=first)
        story.step("sourceless-status", "dkms status")
        story.step("return", f"{MAKE} dkms-install KERNEL=$K", K=first)
        story.step("enable", ENABLE)
        story.step("source-goes-too", f"rm -r /usr/src/vbalance-{VERSION}")
        story.step("over-it", f"{MAKE} dkms-install KERNEL=$K", K=first)
        story.step("still-enabled", STILL_ENABLED)
        story.step("installed-again", INSTALLED, K=first)
        if WHOLE:
            story.step("rebuild", f"{RUNNING}{REBUILD}", K=first)
            story.step("rebuilt", INSTALLED, K=first)
            newer = "make -s -C /tmp/newer dkms-install KERNEL=$K"
            story.step("newer", MAKE_NEWER)
            story.step("newer-breaks", BREAK_NEWER)
            story.step("newer-broken", newer, K=first)
            story.step("newer-not-there", STATUS, K=first)
            story.step("newer-next", NEW_HEADERS, K=second)
            story.step("newer-next-there", INFO + " | grep -v SMP", K=second,
                       MODULES=" ".join(MODULES))
            story.step("newer-mended", MEND_NEWER)
            story.step("newer-install", newer, K=first)
            story.step("newer-there", STATUS + THERE)
            story.step("older-install", f"{MAKE} dkms-install KERNEL=$K",
                       K=first)
            story.step("older-there", STATUS + THERE)
            story.step("enabled-all-the-time", STILL_ENABLED)
            # As before the next one came.
            story.step("next-goes", KERNEL_GOES, K=second)
        for which, name in OUTSIDE.items():
            story.step(f"{which}-hook-later", NEW_HEADERS, K=name)
            story.step(f"{which}-nothing-later", NOTHING, K=name)

        story.step("rt-kernel", MAKE_REAL_TIME, K=REAL_TIME, LIKE=first)
        story.step("rt-hook", NEW_HEADERS, K=REAL_TIME)
        story.step("rt-nothing", NOTHING, K=REAL_TIME)
        story.step("rt-others", INSTALLED, K=first)
        story.step("rt-dkms", f"dkms install vbalance/{VERSION} -k $K",
                   K=REAL_TIME)
        story.step("rt-make", BUILD, K=REAL_TIME)

        story.step("image-first", 'mv "/lib/modules/$K/build" /tmp/later && '
                   f"{NEW_IMAGE} && "
                   'mv /tmp/later "/lib/modules/$K/build"', K=second)
        story.step("image-first-nothing", NOTHING, K=second)
        story.step("upgrade", '"/var/lib/dpkg/info/linux-headers-$K.postinst"'
                   ' configure ""', K=second)
        story.step("upgraded", INSTALLED, K=second)
        story.step("upgraded-info", INFO, K=second,
                   MODULES=" ".join(MODULES))

        story.step("upgrade-off",
                   f"dkms uninstall vbalance/{VERSION} -k $K", K=second)
        story.step("upgrade-nothing", NOTHING, K=second)
        story.step("upgrade-on", f"dkms install vbalance/{VERSION} -k $K",
                   K=second)
        story.step("upgraded-again", INSTALLED, K=second)
        story.step("image-later", f"{NEW_IMAGE} && dkms uninstall "
                   f"vbalance/{VERSION} -k $K && {NEW_IMAGE}", K=second)
        story.step("image-later-installed", INSTALLED, K=second)

        story.step("no-kvm-kernel", MAKE_NO_KVM, K=NO_KVM, LIKE=first)
        story.step("no-kvm", NEW_HEADERS, K=NO_KVM)
        story.step("no-kvm-installed", INSTALLED, K=NO_KVM)
        story.step("no-kvm-log", LOG, K=NO_KVM)
        story.step("no-kvm-info", INFO, K=NO_KVM, MODULES=MODULES[0])

        story.step("strange-hook", NEW_HEADERS, K=STRANGE)
        story.step("strange-nothing", NOTHING, K=STRANGE)
        story.step("strange-others", INSTALLED, K=first)

        story.step("kernel-goes", KERNEL_GOES, K=second)
        story.step("kernel-gone", NOTHING, K=second)
        story.step("uninstall", f"dkms uninstall vbalance/{VERSION} -k $K",
                   K=first)
        story.step("uninstalled", NOTHING, K=first)
        story.step("built", "dkms status")
        story.step("reinstall", f"dkms install vbalance/{VERSION} -k $K",
                   K=first)
        story.step("headers-go", 'mv "/lib/modules/$A/build" /tmp && '
                   'rm "/lib/modules/$B/build"', A=first, B=NO_KVM)
        story.step("no-headers", "dkms status")
        story.step("remove", f"{MAKE} dkms-uninstall")
        story.step("removed-status", "dkms status")
        story.step("strange-hook-later", NEW_HEADERS, K=STRANGE)
        story.step("headers-return", 'mv /tmp/build "/lib/modules/$A"',
                   A=first)
        if WHOLE:
            story.step("half", f"{RUNNING}{FAILING}{MAKE} dkms-install",
                       K=first, NOT=second)
            story.step("half-status", STATUS)
            story.step("rest", f"{MAKE} dkms-install KERNEL=$K", K=first)
            story.step("rest-status", STATUS)
            story.step("rest-remove", f"{MAKE} dkms-uninstall")
            story.step("all", f"{RUNNING}{MAKE} dkms-install", K=first)
            story.step("all-first", INSTALLED, K=first)
            story.step("all-second", INSTALLED, K=second)
            story.step("all-status", "dkms status")
            for which in (first, second):
                story.step(f"last-{which}-goes", KERNEL_GOES, K=which)
            story.step("last-status", STATUS)
            story.step("last-hook", NEW_HEADERS, K=first)
            story.step("last-install", f"{MAKE} dkms-install KERNEL=$K",
                       K=first)
            story.step("last-installed", INSTALLED, K=first)
            story.step("all-remove", f"{MAKE} dkms-uninstall")
        story.step("theirs-left", f"ls -d {THEIRS} /usr/src/vbalance-mine && "
                   f"rm -r {THEIRS} /usr/src/vbalance-mine")
        story.step("as-before", 'for k in $NAMES $COPIES; do '
                   'rm -r "/lib/modules/$k" || exit; done; for k in $COPIES; '
                   'do rm -r "/usr/src/$k" || exit; done',
                   NAMES=" ".join(OUTSIDE.values()),
                   COPIES=f"{NO_KVM} {STRANGE} {REAL_TIME}")
        story.files("after")

    def assert_info(self, step, kernel, modules):
        lines = self.output(step).strip().splitlines()
        self.assertEqual(lines[1::2], [VERSION] * modules)
        self.assertEqual([line.split()[0] for line in lines[::2]],
                         [kernel] * modules)

    def test_version_of_dkms(self):
        self.assertIn(self.DKMS, self.output("version"))

    def test_install(self):
        self.output("install")
        self.assertIn(f"vbalance/{VERSION}, {self.kernel}, "
                      "x86_64: installed", self.output("status"))
        self.assert_installed("installed", MODULES)
        self.assert_info("info", self.kernel, 2)

    def test_what_the_build_found_is_in_its_log(self):
        self.assertRegex(self.output("log"), r"vbalance: \w+: found: ")
        self.assertNotIn("vbalance: KVM: missing", self.output("log"))
        self.assertIn("vbalance: KVM: missing", self.output("no-kvm-log"))

    def test_units(self):
        # And nothing of it is left: test_nothing_is_left().
        for unit in UNITS:
            self.assertIn(unit, self.output("units").split())

    def test_second_install_is_refused(self):
        self.assertEqual(self.steps["again"].status, 2)
        self.assertIn("is there already", self.steps["again"].output)

    def test_without_its_source(self):
        for step in ("source-goes", "sourceless-remove", "sourceless-nothing"):
            self.output(step)
        self.assertEqual(self.output("sourceless-status"), "")
        for step in ("return", "source-goes-too", "over-it"):
            self.output(step)
        self.assert_installed("installed-again", MODULES)

    def test_what_is_not_its_own_is_left_alone(self):
        self.output("theirs")
        self.assertEqual(self.steps["into-theirs"].status, 2)
        self.assertIn("move it away", self.steps["into-theirs"].output)
        self.assertEqual(self.output("theirs-stays").split(), ["file"])
        self.output("theirs-left")

    @unittest.skipUnless(WHOLE, "builds once more: make test")
    def test_the_same_kernel_again(self):
        self.output("rebuild")
        self.assert_installed("rebuilt", MODULES)

    def assert_enabled(self, step):
        self.assertEqual(self.output(step).split(), ["enabled"] * 2)

    def test_units_stay_enabled(self):
        self.output("enable")
        self.assert_enabled("still-enabled")

    @unittest.skipUnless(WHOLE, "builds two more: make test")
    def test_another_version(self):
        self.assertEqual(self.steps["newer-broken"].status, 2)
        self.assertIn("What is installed stays",
                      self.steps["newer-broken"].output)
        # Nor does the next kernel get what is no good.
        self.output("newer-next")
        self.assertEqual(self.output("newer-next-there").split(),
                         [VERSION] * 2)
        self.assertEqual(self.output("newer-not-there").splitlines(), [
            f"vbalance/{VERSION}, {self.kernel}, x86_64: installed"])
        for which, version in (("newer", NEWER), ("older", VERSION)):
            self.output(f"{which}-install")
            # For all kernels that had modules.
            self.assertEqual(
                sorted(line for line in self.output(
                    f"{which}-there").splitlines()
                       if line not in THEIRS.split()
                       and not line.endswith("-mine")),
                [f"/usr/src/vbalance-{version}",
                 f"/usr/src/vbalance-{version}/.done"] + sorted(
                    f"vbalance/{version}, {kernel}, x86_64: installed"
                    for kernel in (self.kernel, self.other)))
        self.assert_enabled("enabled-all-the-time")

    @unittest.skipUnless(WHOLE, "builds for three kernels: make test")
    def test_all_kernels_that_are_there(self):
        self.assertIn(f"For {STRANGE} no module is installed",
                      self.output("all"))
        for which in ("all-first", "all-second"):
            self.assert_installed(which, MODULES)
        self.assertEqual(self.output("all-status").count("installed"), 2)
        self.output("all-remove")

    @unittest.skipUnless(WHOLE, "builds for two kernels: make test")
    def test_install_that_failed_for_one_of_two_kernels(self):
        self.assertEqual(self.steps["half"].status, 2)
        self.assertIn(f"Not installed for {self.other}",
                      self.steps["half"].output)
        # As it says, it is called again, if only for one of them.
        self.output("rest")
        for step, how in (("half", "built"), ("rest", "installed")):
            self.assertEqual(
                sorted(self.output(f"{step}-status").splitlines()),
                sorted(f"vbalance/{VERSION}, {kernel}, x86_64: {state}"
                       for kernel, state in ((self.kernel, "installed"),
                                             (self.other, how))))

    @unittest.skipUnless(WHOLE, "builds for three kernels: make test")
    def test_last_kernel_is_removed(self):
        """Debian 12's DKMS forgets it with that: Documentation/install.md."""
        forgets = self.DKMS == "3.0.10"
        for kernel in (self.kernel, self.other):
            self.output(f"last-{kernel}-goes")
        self.assertEqual(self.output("last-status") == "", forgets)
        self.output("last-hook")
        self.assertEqual(self.steps["last-install"].status,
                         0 if forgets else 2)
        self.assert_installed("last-installed", MODULES)

    def test_kernel_upgrade(self):
        self.output("upgrade")
        self.assert_installed("upgraded", MODULES)
        self.assert_info("upgraded-info", self.other, 2)
        for step in ("upgrade-off", "upgrade-nothing", "upgrade-on"):
            self.output(step)
        self.assert_installed("upgraded-again", MODULES)

    def test_kernel_upgrade_without_its_headers(self):
        # They come later, or have come: dpkg must not notice a failure.
        for step in ("image-first", "image-first-nothing"):
            self.output(step)
        self.output("image-later")
        self.assert_installed("image-later-installed", MODULES)

    def test_kernel_outside_the_range(self):
        for which in OUTSIDE:
            with self.subTest(which):
                self.output(f"{which}-kernel")
                step = self.steps[f"{which}-install"]
                self.assertEqual(step.status, 2)
                self.assertRegex(step.output, r"BUILD_EXCLUSIVE(?s:.*)"
                                 r"No module is installed; vBalance is for "
                                 r"kernels 6\.1 to 7\.x(?s:.*)Error 77")

    def test_install_that_failed_is_tried_again(self):
        # Each after one that has failed.
        self.assertEqual(self.steps["strange-install"].status, 2)
        self.assertRegex(self.steps["strange-install"].output,
                         r"No module is installed.*/vbalance-make\.log\.")
        self.output("strange-log")
        # Nor does the next kernel get what is no good.
        self.assertEqual(self.output("strange-forgotten"), "")
        self.output("strange-next")
        self.output("strange-next-nothing")
        self.output("install")

    def test_real_time_kernel(self):
        self.output("rt-kernel")
        for step in ("rt-hook", "rt-nothing"):
            with self.subTest(step):
                self.output(step)
        self.assertEqual(self.steps["rt-dkms"].status, 77)
        self.assert_installed("rt-others", MODULES)

    def test_make_refuses_a_real_time_kernel(self):
        self.assertEqual(self.steps["rt-make"].status, 2)
        self.assertIn("vbalance: PREEMPT_RT kernels are not supported",
                      self.steps["rt-make"].output)

    def test_kernel_package_outside_the_range(self):
        for which in OUTSIDE:
            for step in ("hook", "nothing", "hook-later", "nothing-later"):
                with self.subTest(which, step=step):
                    self.output(f"{which}-{step}")

    def test_kernel_that_it_does_not_compile_for(self):
        self.output("strange-kernel")
        # Said, and not hidden: Documentation/install.md.
        self.assertNotEqual(self.steps["strange-hook"].status, 0)
        self.assertIn("make.log", self.steps["strange-hook"].output)
        self.output("strange-nothing")
        self.assert_installed("strange-others", MODULES)
        self.output("strange-hook-later")

    def test_kernel_without_kvm(self):
        self.output("no-kvm-kernel")
        self.output("no-kvm")
        self.assert_installed("no-kvm-installed", MODULES[:1])
        self.assert_info("no-kvm-info", NO_KVM, 1)

    def test_kernel_is_removed(self):
        self.output("kernel-goes")
        self.output("kernel-gone")

    def test_uninstall_keeps_what_was_built(self):
        self.output("uninstall")
        self.output("uninstalled")
        self.assertIn(f"{self.kernel}, x86_64: built", self.output("built"))
        self.output("reinstall")

    def test_status_without_headers(self):
        for kernel in (self.kernel, NO_KVM):
            self.assertIn(f"{kernel}, x86_64: installed\n",
                          self.output("no-headers") + "\n")

    def test_nothing_is_left(self):
        self.output("remove")
        self.assertEqual(self.output("removed-status"), "")
        self.output("as-before")
        self.assert_same_files("before", "after")


@unittest.skipUnless(WHOLE, "takes three minutes: make test")
class Trixie(Dkms, unittest.TestCase):
    ROOT = "packaging"
    DKMS = "3.2"

    def test_modprobe_finds_them(self):
        # Here its kernel is installed as well, not only the headers.
        self.assertRegex(self.output("modprobe"),
                         r"(?s)/kvm\.ko.*/vbalance_host\.ko.*"
                         r"/vbalance_guest\.ko")


class Bookworm(Dkms, unittest.TestCase):
    ROOT = "packaging-bookworm"
    DKMS = "3.0.10"


@unittest.skipUnless(WHOLE, "takes a package root and two minutes: make test")
class BookwormWithBackports(Dkms, unittest.TestCase):
    """Both kernels are 6.12."""
    ROOT = "packaging-bookworm-backports"
    DKMS = "3.0.10"


if __name__ == "__main__":
    unittest.main()
