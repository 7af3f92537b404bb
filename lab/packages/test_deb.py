# SPDX-License-Identifier: GPL-2.0
"""The package that `make deb` builds: clean, and gone when it is purged."""

import functools
import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path

from chroots import (EXPORT, MAKE_NAME, MAKE_NO_KVM, MAKE_REAL_TIME, MODULES,
                     MODULES_OF, VERSION, WHOLE, Story, StoryTest, releases)
import booting      # chroots says where it is
from signature import split_module
from vblab import deb, paths, root, util

UNITS = ("vbalance-guest.service", "vbalance-host.service")
COMMAND_LINES = {"quiet": "succeeded", "quiet vbalance=off": "failed",
                 "vbalance=offline": "succeeded"}
DOCUMENTS = "/usr/share/doc/vbalance-dkms/"
INSTALL = "dpkg -i /mnt/work/vbalance-dkms_*.deb"
MADE_MODULES = ("guest-mod/vbalance_guest", "host-mod/vbalance_host")
UPDATES = '"/lib/modules/$K/updates/dkms"'
INSTALLED = f"ls -1 {UPDATES}"
# So that only one kernel's modules are built.
HIDE = 'mv "/lib/modules/$K/build" /tmp'
SHOW = 'mv /tmp/build "/lib/modules/$K"'
HIDE_FIRST = 'mv "/lib/modules/$K/build" /tmp/first'
SHOW_FIRST = 'mv /tmp/first "/lib/modules/$K/build"'
# Kernels that are the only ones: how they are made, and which modules they get.
ODD = {
    "outside": ("8.0.0-1-amd64", MAKE_NAME, ()),
    "real-time": ("6.98.0-rt", MAKE_REAL_TIME, ()),
    "no-kvm": ("6.99.0-no-kvm", MAKE_NO_KVM, MODULES[:1]),
    "no-headers": ("6.97.0-nothing", 'mkdir "/lib/modules/$K"', ()),
}
# Of somebody's own, as Documentation/secure-boot.md says.
OWN_KEY = "/etc/dkms/framework.conf.d/key.conf"
USE_OWN_KEY = f"""cd /root && openssl req -new -x509 -nodes -subj /CN=own \\
	-newkey rsa:2048 -keyout module.key -outform DER -out module.der &&
openssl x509 -inform DER -in module.der -out /mnt/work/own.pem &&
grep -E '^ +mok_(signing_key|certificate)=' \\
	/mnt/repo/Documentation/secure-boot.md > {OWN_KEY} &&
test "$(wc -l < {OWN_KEY})" = 2
"""
# The kernel's question: is this the message of a key that I know about this?
VERIFY = """cd /mnt/work && openssl cms -verify -binary -inform DER \\
	-in "$FILE.p7s" -content "$FILE" -certfile "$KEY.pem" \\
	-CAfile "$KEY.pem" -purpose any -out /dev/null"""


# In L1: with these modules instead of the lab's own.
SMOKE = """. /lab/lib.sh
cd /lab/selftests && VARIANT=dkms GUEST_VARIANT=dkms exec ./smoke.sh
"""


NEWER = VERSION + ".1"
# Of a checkout. The modules by name only.
TREE = f"/usr/src/vbalance-{VERSION}"
MADE_SOURCE = ("make -s -C /mnt/repo dkms-source && "
               f"echo {VERSION} > {TREE}/.from-make-dkms-install")
# DKMS knows it, and its source is gone.
MADE_KNOWN = f"mkdir -p /var/lib/dkms/vbalance/{VERSION}"
NOT_ITS_OWN = f"mkdir {TREE} && echo precious > {TREE}/file"
MADE_MODULE = 'install -D /dev/null "/lib/modules/$K/updates/$M.ko.xz"'
REMOVE_MADE = ('rm "/lib/modules/$K/updates/$M.ko.xz" && rmdir -p '
               '--ignore-fail-on-non-empty "/lib/modules/$K/updates/${M%/*}"')
SOURCES = "cd /usr/src && ls -d vbalance-*"
# It can be read up to the end of what prerm does.
BREAK_NEWER = ("head -c -1000 /mnt/work/newer/vbalance-dkms_*.deb "
               "> /tmp/broken.deb")
UPGRADED_INFO = """cd "/lib/modules/$K/updates/dkms" &&
modinfo -F version vbalance_guest.ko* && modinfo -F version vbalance_host.ko*
"""


def with_newer_version(tree: Path) -> None:
    for name in ("VERSION", "dkms.conf", "debian/changelog"):
        path = tree / name
        path.write_text(path.read_text().replace(VERSION, NEWER, 1))


@functools.cache
def build(edit=None) -> Path:
    """One for all tests, by `make deb`; with a change: by what that calls."""
    context = util.temp_dir(paths.tmp(), "debs-")
    out = context.__enter__()
    unittest.addModuleCleanup(context.__exit__, None, None, None)
    if edit:
        deb.build(out, edit)
    else:
        subprocess.run(["make", "-s", "-C", paths.REPO, "deb", f"OUT={out}"],
                       check=True, stdout=subprocess.PIPE)
    return out


class Source(unittest.TestCase):
    def test_lintian(self):
        with util.temp_dir(paths.tmp(), "lintian-") as work:
            for path in build().iterdir():
                shutil.copy(path, work)
            story = Story(root.ensure(deb.ROOT), work)
            story.step("lintian", "lintian --allow-root --fail-on "
                       "error,warning --display-info --pedantic "
                       "--tag-display-limit 0 "
                       "/mnt/work/*.changes")
            step = story.run()["lintian"]
        self.assertEqual((step.status, step.output), (0, ""))

    # debian/control: Testsuite.
    @unittest.skipUnless(WHOLE, "builds for two kernels: make test")
    def test_as_debian_would(self):
        packaging = root.ensure(deb.ROOT)
        with util.temp_dir(paths.tmp(), "autopkgtest-") as work:
            for path in build().glob("*.deb"):
                shutil.copy(path, work)
            story = Story(packaging, work)
            story.step("run", "cd /tmp && /usr/lib/dkms/dkms-autopkgtest "
                       "/mnt/work/vbalance-dkms_*_all.deb")
            step = story.run()["run"]
        self.assertEqual(step.status, 0, step.output)
        self.assertEqual(
            sorted(re.findall("^I: ([A-Z]+ vbalance/.*)", step.output, re.M)),
            sorted(f"PASS vbalance/{VERSION} {release}"
                   for release in releases(packaging)))

    def test_documents(self):
        with util.temp_dir(paths.tmp(), "documents-") as work:
            for path in build().glob("*.deb"):
                shutil.copy(path, work)
            story = Story(root.ensure(deb.ROOT), work)
            story.step("list", "dpkg-deb -c /mnt/work/*.deb")
            step = story.run()["list"]
        self.assertEqual(step.status, 0, step.output)
        files, links = set(), {}
        for line in step.output.splitlines():
            name, *target = line.split()[5:]
            files.add(name[1:])
            if target and target[0] == "->":
                links[name[1:]] = os.path.normpath(
                    os.path.join(os.path.dirname(name[1:]), target[1]))
        for unit in UNITS:
            text = (paths.REPO / "contrib/systemd" / unit).read_text()
            self.assertIn(re.search(r"^Documentation=file://(\S+)$", text,
                                    re.M)[1], files)
        for name in ("README.md", "CHANGES.md", *(
                f"Documentation/{p.name}" for p in (
                    paths.REPO / "Documentation").glob("*.md"))):
            self.assertIn(DOCUMENTS + name, files)
            for link in re.findall(r"\]\(([^)#:]+)[^)]*\)",
                                   (paths.REPO / name).read_text()):
                path = os.path.normpath(os.path.join(name, "..", link))
                # What only the source has, README.md says.
                if path.split("/")[0] in ("lab", "check", "common"):
                    continue
                top, *rest = path.split("/", 1)
                target = links.get(DOCUMENTS + top, DOCUMENTS + top)
                self.assertIn("/".join([target, *rest]), files, name)
        self.assertIn(links[DOCUMENTS + "LICENSE"], files)


class Package(StoryTest):
    @classmethod
    def tell(cls, story):
        for path in build().iterdir():
            shutil.copy(path, cls.work)
        (cls.work / "newer").mkdir()
        for path in build(with_newer_version).glob("*.deb"):
            shutil.copy(path, cls.work / "newer")
        story.files("before")
        story.step("hide", HIDE, K=cls.other)
        if WHOLE:
            cls.tell_of_odd_kernels(story)
        story.step("made-source", MADE_SOURCE)
        story.step("beside-source", INSTALL)
        story.step("remove-source", "rm -r /usr/src/vbalance-*")
        story.step("made-known", MADE_KNOWN)
        story.step("beside-known", INSTALL)
        # As it says.
        story.step("remove-known", "make -s -C /mnt/repo dkms-uninstall && "
                   "! find /var/lib/dkms/vbalance/[0-9]* /usr/src/vbalance-* "
                   "2>/dev/null | grep .")
        story.step("made-folder", NOT_ITS_OWN)
        story.step("beside-folder", INSTALL)
        story.step("remove-folder", f"cat {TREE}/* && rm -r {TREE}")
        for name in MADE_MODULES:
            module = {"K": cls.kernel, "M": name}
            name = name.split("/")[0]
            story.step(f"made-{name}", MADE_MODULE, **module)
            story.step(f"beside-{name}", INSTALL)
            story.step(f"remove-{name}", REMOVE_MADE, **module)
        story.step("refused", "dkms status; find /usr/src /usr/share/doc "
                   "-name 'vbalance*'")
        story.step("install", INSTALL)
        story.step("installed", INSTALLED, K=cls.kernel)
        story.step("export", EXPORT, K=cls.kernel)
        if WHOLE:
            # Of the same version, as when a key had not been there.
            story.step("reinstall", f"rm {UPDATES}/* && {INSTALL}",
                       K=cls.kernel)
            story.step("reinstalled", INSTALLED, K=cls.kernel)
            other = {"K": cls.other}
            story.step("show-other", SHOW, **other)
            story.step("other", "dkms install vbalance/" + VERSION + " -k $K",
                       **other)
            story.step("export-other", MODULES_OF, **other)
        story.step("make", "make -C /mnt/repo dkms-uninstall")
        story.step("enabled", f"systemctl is-enabled {' '.join(UNITS)}")
        story.step("enable", f"systemctl enable {' '.join(UNITS)} && "
                   "cd /etc/systemd/system && ls -1 *.wants/vb*")
        for words in COMMAND_LINES:
            for unit in UNITS:
                story.step(f"{unit}-{words.replace(' ', '-')}",
                           f"systemd-analyze condition --unit={unit}",
                           SYSTEMD_PROC_CMDLINE=words)
        story.step("verify", "cd /usr/lib/systemd/system && "
                   f"systemd-analyze verify {' '.join(UNITS)}")
        if WHOLE:
            story.step("break", BREAK_NEWER)
            story.step("broken", "dpkg -i /tmp/broken.deb")
            story.step("not-broken", "dpkg-query -W -f '${Status}\\n' "
                       "vbalance-dkms && dkms status")
        story.step("own-key", USE_OWN_KEY)
        story.step("upgrade", "dpkg -i /mnt/work/newer/vbalance-dkms_*.deb")
        story.step("upgraded", INSTALLED, K=cls.kernel)
        story.step("export-own", MODULES_OF, K=cls.kernel, TO="own")
        story.step("no-key", f"rm {OWN_KEY} /root/module.*")
        story.step("upgraded-status", "dkms status")
        story.step("upgraded-info", UPGRADED_INFO, K=cls.kernel)
        if WHOLE:
            story.step("upgraded-other", UPGRADED_INFO, **other)
        story.step("upgraded-sources", SOURCES)
        story.step("still-enabled", f"systemctl is-enabled {' '.join(UNITS)}")
        story.step("purge", "dpkg --purge vbalance-dkms")
        if not WHOLE:
            story.step("show", SHOW, K=cls.other)
        story.files("after")

    @classmethod
    def tell_of_odd_kernels(cls, story):
        """With the headers of one such kernel and of no other."""
        hidden = {"K": cls.kernel}
        for which, (name, make, _) in ODD.items():
            story.step(f"{which}-kernel", make, K=name, LIKE=cls.kernel)
            story.step(f"{which}-hide", HIDE_FIRST, **hidden)
            story.step(f"{which}-install", f"{INSTALL} && dpkg-query -W "
                       "-f '${Status}\n' vbalance-dkms")
            story.step(f"{which}-modules", f"! {INSTALLED}", K=name)
            story.step(f"{which}-purge", "dpkg --purge vbalance-dkms")
            story.step(f"{which}-show", SHOW_FIRST, **hidden)
            story.step(f"{which}-goes", 'rm -rf "/lib/modules/$K" "/usr/src/$K"',
                       K=name)

    @unittest.skipUnless(WHOLE, "installs it four times: make test")
    def test_kernels_that_it_is_not_for(self):
        for which, (_, _, modules) in ODD.items():
            with self.subTest(which):
                self.output(f"{which}-kernel")
                self.assertIn("install ok installed\n",
                              self.output(f"{which}-install"))
                step = self.steps[f"{which}-modules"]
                self.assertEqual(step.status, bool(modules), step.output)
                self.assertEqual(
                    re.findall(r"^vbalance_\w+", step.output, re.M),
                    list(modules))
                self.output(f"{which}-purge")

    def test_install(self):
        self.output("install")
        self.assert_installed("installed", MODULES)

    @unittest.skipUnless(WHOLE, "builds once more: make test")
    def test_reinstall_builds_again(self):
        self.output("reinstall")
        self.assert_installed("reinstalled", MODULES)

    def test_refuses_what_make_has_installed(self):
        for name, words in (("source", "make dkms-uninstall"),
                            ("known", "make dkms-uninstall"),
                            ("folder", "move it away"),
                            ("guest-mod", "make uninstall KDIR="),
                            ("host-mod", "make uninstall KDIR=")):
            with self.subTest(name):
                self.output(f"made-{name}")
                self.assertEqual(self.steps[f"beside-{name}"].status, 1)
                self.assertIn(words, self.steps[f"beside-{name}"].output)
                self.output(f"remove-{name}")
        self.assertEqual(self.output("remove-folder").strip(), "precious")
        self.assertEqual(self.output("refused"), "")

    def test_upgrade(self):
        self.output("upgrade")
        self.assert_installed("upgraded", MODULES)
        self.assertEqual(self.output("upgraded-info").split(), [NEWER] * 2)
        self.assertEqual(sorted(self.output("upgraded-status").splitlines()),
                         self.installed(NEWER))
        self.assertEqual(self.output("upgraded-sources").split(),
                         [f"vbalance-{NEWER}"])
        self.assertEqual(self.output("still-enabled").split(),
                         ["enabled"] * 2)

    def installed(self, version):
        """What DKMS says where @version is installed for all kernels."""
        kernels = (self.kernel, self.other) if WHOLE else (self.kernel,)
        return sorted(f"vbalance/{version}, {kernel}, x86_64: installed"
                      for kernel in kernels)

    @unittest.skipUnless(WHOLE, "builds for two kernels: make test")
    def test_upgrade_for_all_kernels_that_had_it(self):
        self.assertEqual(self.output("upgraded-other").split(), [NEWER] * 2)

    @unittest.skipUnless(WHOLE, "builds for two kernels: make test")
    def test_upgrade_that_dpkg_gives_up(self):
        self.output("break")
        self.assertEqual(self.steps["broken"].status, 1)
        status, *known = self.output("not-broken").splitlines()
        self.assertEqual(status, "install ok installed")
        self.assertEqual(sorted(known), self.installed(VERSION))

    def test_make_leaves_it_alone(self):
        self.assertIn("apt purge vbalance-dkms", self.steps["make"].output)
        self.assertEqual(self.steps["make"].status, 2)

    def test_units_are_off_and_can_be_enabled(self):
        self.assertEqual(self.steps["enabled"].output.split(),
                         ["disabled"] * 2)
        self.assertLessEqual({
            "dev-kvm.device.wants/vbalance-host.service",
            "multi-user.target.wants/vbalance-guest.service"},
            set(self.output("enable").split()))

    def test_units(self):
        self.assertEqual(self.output("verify"), "")

    def test_kernel_command_line_keeps_them_off(self):
        for words, result in COMMAND_LINES.items():
            for unit in UNITS:
                with self.subTest(unit, words=words):
                    self.assertIn(
                        f"ConditionKernelCommandLine=!vbalance=off {result}",
                        self.steps[f"{unit}-{words.replace(' ', '-')}"].output)

    def test_signatures(self):
        self.output("export")
        self.output("own-key")
        self.output("export-own")
        folders = {self.kernel: "mok", "own": "own"}
        if WHOLE:
            self.output("export-other")
            folders[self.other] = "mok"
        verify = Story(self.root, self.work)
        expected = {}
        for path in (self.work / folder / f"{module}.ko"
                     for folder in folders for module in MODULES):
            signed, message = split_module(path.read_bytes())
            other = bytearray(signed)
            other[len(other) // 2] ^= 1
            for name, data in (("as-signed", signed), ("changed", other)):
                for key in ("mok", "other", "own"):
                    step = f"{path.parent.name}-{path.stem}-{name}-{key}"
                    (self.work / step).write_bytes(data)
                    (self.work / f"{step}.p7s").write_bytes(message)
                    verify.step(step, VERIFY, FILE=step, KEY=key)
                    expected[step] = (name == "as-signed" and
                                      key == folders[path.parent.name])
        self.assertEqual({name: step.status == 0
                          for name, step in verify.run().items()}, expected)

    def assert_modules_work(self, kernel, release):
        """@kernel: of the lab; @release: for which they were built here."""
        self.need_in_lab(kernel, release)
        run = booting.Run("--host-kernel", kernel, "--guest-kernel", kernel,
                          "--blk", "1", "--timeout", "520",
                          "--add", f"{self.work / release}:dkms",
                          # smoke.sh takes some away.
                          "--allow-log", r"pending bits, \d+ were taken",
                          l1=SMOKE)
        self.addCleanup(run.remove)
        self.assertEqual(run.wait(), 0, run.stderr)
        said = run.read("l1-script.log")
        self.assertIn("interrupts are redirected", said)
        self.assertNotIn("not ok", said)

    @unittest.skipUnless(WHOLE, "takes a boot: make test")
    def test_modules_work(self):
        self.output("export")
        self.assert_modules_work(self.KERNEL, self.kernel)

    @unittest.skipUnless(WHOLE, "takes a boot: make test")
    def test_modules_of_the_ordinary_flavour_work(self):
        self.output("other")
        self.output("export-other")
        self.assert_modules_work(self.OTHER, self.other)

    def test_purge(self):
        self.output("purge")
        self.assert_same_files("before", "after")


class Trixie(Package, unittest.TestCase):
    ROOT = "packaging"
    KERNEL = "6.12"
    OTHER = "newest-full"


@unittest.skipUnless(WHOLE, "takes two minutes: make test")
class Bookworm(Package, unittest.TestCase):
    ROOT = "packaging-bookworm"
    KERNEL = "6.1"
    OTHER = "6.1-full"


if __name__ == "__main__":
    unittest.main()
