# SPDX-License-Identifier: GPL-2.0
"""`make install` and `make uninstall`: one kernel, without DKMS."""

import unittest

from chroots import MODULES, StoryTest

# The modules are built where the source is.
COPY = "cp -r /mnt/repo /tmp/checkout"
MAKE = 'make -C /tmp/checkout KDIR="/lib/modules/$K/build"'
# As secure-boot.md says, between make and make install.
SIGN = """set -e
cd /tmp/checkout
openssl req -new -x509 -nodes -subj "/CN=a key of our own" -newkey rsa:2048 \
	-keyout /tmp/key -outform DER -out /tmp/certificate 2>/dev/null
for module in guest-mod/vbalance_guest.ko host-mod/vbalance_host.ko; do
	"/lib/modules/$K/build/scripts/sign-file" sha256 /tmp/key \
		/tmp/certificate "$module"
done
"""
EACH = 'for m in vbalance_guest vbalance_host; do modinfo -k "$K" %s "$m"; done'
FOUND = EACH % "-n"
ELSEWHERE = f"{MAKE} INSTALL_MOD_PATH=/tmp/elsewhere"
IN_ELSEWHERE = ('grep -o "^[^:]*vbalance[^:]*" '
                '"/tmp/elsewhere/lib/modules/$K/modules.dep"')
NOTHING = '! ls -d "%s/lib/modules/$K/updates" 2>&1'
HEADERS = "/lib/modules/$K/build"
NOBODY = "setpriv --reuid=nobody --regid=nogroup --clear-groups"
FOR_ROOT = ("install", "uninstall", "dkms-install", "dkms-uninstall")
DKMS_MODULE = '"/lib/modules/$K/updates/dkms/vbalance_guest.ko.xz"'


class Install(StoryTest):
    @classmethod
    def tell(cls, story):
        def step(name, command):
            story.step(name, command, K=cls.kernel)

        story.files("before")
        step("copy", COPY)
        step("make", f"{MAKE} -s")
        step("sign", SIGN)
        step("dkms-is-there", f"install -D /dev/null {DKMS_MODULE}")
        step("beside-dkms", f"{MAKE} install")
        step("dkms-goes", f"rm {DKMS_MODULE} && "
             'rmdir -p --ignore-fail-on-non-empty "$(dirname '
             f'{DKMS_MODULE})"')
        step("refused", NOTHING % "")
        step("install", f"{MAKE} install")
        step("found", FOUND)
        step("signer", EACH % "-F signer")
        step("modprobe", 'modprobe -S "$K" -n -v -a vbalance_host '
             "vbalance_guest")
        step("dkms-install", f"{MAKE} dkms-install KERNEL=$K")
        step("no-dkms", "! find /usr/src/vbalance-* /var/lib/dkms/vbalance "
             "2>/dev/null | grep .")
        for what in FOR_ROOT:
            step(f"nobody-{what}", f"{NOBODY} {MAKE} {what}")
        step("found-still", FOUND)
        step("uninstall", f"{MAKE} uninstall")
        step("uninstalled", NOTHING % "")
        step("lost", FOUND)
        step("uninstall-again", f"{MAKE} uninstall")
        step("install-again", f"{MAKE} -s install")
        step("found-again", FOUND)
        step("headers-go", f'mv "{HEADERS}" /tmp/headers')
        step("uninstall-nothing", "make -C /tmp/checkout uninstall "
             "KDIR=/tmp/headers-of-nothing")
        step("uninstall-without", f"{MAKE} uninstall")
        step("uninstalled-without", NOTHING % "")
        step("headers-return", f'mv /tmp/headers "{HEADERS}"')
        step("elsewhere", f"{ELSEWHERE} install")
        step("in-elsewhere", IN_ELSEWHERE)
        step("not-here", NOTHING % "")
        step("elsewhere-uninstall", f"{ELSEWHERE} uninstall")
        step("elsewhere-uninstalled", NOTHING % "/tmp/elsewhere")
        story.files("after")

    def assert_refused(self, step, *words):
        self.assertEqual(self.steps[step].status, 2)
        for word in words:
            self.assertIn(word, self.steps[step].output)

    def test_modprobe_finds_them(self):
        self.output("install")
        self.assert_installed("found", MODULES)
        self.assertRegex(self.output("modprobe"),
                         r"(?s)/host-mod/vbalance_host\.ko.*"
                         r"/guest-mod/vbalance_guest\.ko")

    def test_signed_before_they_are_installed(self):
        self.output("sign")
        self.assertEqual(self.output("signer").splitlines(),
                         ["a key of our own"] * 2)

    def test_not_beside_dkms(self):
        self.output("dkms-is-there")
        self.assert_refused("beside-dkms", "updates/dkms/vbalance_guest.ko.xz",
                            "make dkms-uninstall", "vbalance-dkms")
        self.output("dkms-goes")
        self.output("refused")

    def test_dkms_does_not_come_beside_them(self):
        self.assert_refused("dkms-install", "-mod/vbalance_",
                            "make uninstall")
        self.output("no-dkms")

    def test_uninstall(self):
        self.output("uninstall")
        self.output("uninstalled")
        self.assertNotIn("/", self.steps["lost"].output)
        self.output("uninstall-again")

    def test_uninstall_when_the_headers_have_gone(self):
        self.output("install-again")
        self.assert_installed("found-again", MODULES)
        for step in ("headers-go", "uninstall-without",
                     "uninstalled-without", "headers-return"):
            self.output(step)
        self.assert_refused("uninstall-nothing", "Of which kernel?",
                            "KDIR=/lib/modules/RELEASE/build")

    def test_who_is_not_root_is_told(self):
        for what in FOR_ROOT:
            with self.subTest(what):
                self.assert_refused(f"nobody-{what}", "needs root")
        self.assert_installed("found-still", MODULES)

    def test_into_another_root(self):
        self.output("elsewhere")
        self.assert_installed("in-elsewhere", MODULES)
        self.output("not-here")
        self.output("elsewhere-uninstall")
        self.output("elsewhere-uninstalled")

    def test_nothing_is_left(self):
        self.assert_same_files("before", "after")


class Trixie(Install, unittest.TestCase):
    ROOT = "packaging"


class Bookworm(Install, unittest.TestCase):
    ROOT = "packaging-bookworm"


if __name__ == "__main__":
    unittest.main()
