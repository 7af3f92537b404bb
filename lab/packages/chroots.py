# SPDX-License-Identifier: GPL-2.0
"""What a user does, step by step in a clean Debian, for the packaging tests."""

import re
import shlex
import sys
from pathlib import Path

LAB = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(LAB), str(LAB / "boots")]

import booting  # noqa: E402
from vblab import kernels, paths, root, util  # noqa: E402

VERSION = (paths.REPO / "VERSION").read_text().strip()
MODULES = ("vbalance_guest", "vbalance_host")
WHOLE = booting.WHOLE
# Of any Debian; and what dkms and depmod leave behind, whatever is removed.
LEFT = re.compile(r"/(proc|mnt|tmp|run|var/log|var/cache)(/|$)"
                  r"|/etc/udev(/rules\.d)?$|/var/lib/dpkg/"
                  r"|/usr/lib/modules/[^/]+/modules\.[\w.]+$"
                  r"|/var/lib/dkms/mok\.(key|pub)$")
# A kernel with headers of its own, as those of another one.
MAKE_COPY = """set -e
cp -a "$(readlink -f "/lib/modules/$LIKE/build")" "/usr/src/$K"
cd "/usr/src/$K"
sed -i "s/\\"$LIKE\\"/\\"$K\\"/" include/generated/utsrelease.h
mkdir "/lib/modules/$K"
ln -s "/usr/src/$K" "/lib/modules/$K/build"
"""
# A kernel by name only: its headers are another one's.
MAKE_NAME = """mkdir "/lib/modules/$K" &&
ln -s "$(readlink -f "/lib/modules/$LIKE/build")" "/lib/modules/$K/build"
"""
MAKE_NO_KVM = MAKE_COPY + """
sed -i -E '/CONFIG_KVM_GUEST/b; /CONFIG_(HAVE_)?KVM[=_ ]/d' .config \
	include/config/auto.conf include/generated/autoconf.h
"""
MAKE_REAL_TIME = MAKE_COPY + """
echo CONFIG_PREEMPT_RT=y | tee -a .config >> include/config/auto.conf
"""
# The modules that DKMS has built, uncompressed; its certificate, and another one
# of that name, with its key.
MODULES_OF = """set -e
mkdir /mnt/work/${TO:-$K} && cd /mnt/work/${TO:-$K}
for f in /lib/modules/$K/updates/dkms/vbalance_*; do
	cp "$f" . && case $f in *.xz) xz -d "${f##*/}" ;; esac
done
"""
EXPORT = MODULES_OF + """cd ..
openssl x509 -inform DER -in /var/lib/dkms/mok.pub -out mok.pem
openssl req -new -x509 -nodes -subj "/CN=DKMS module signing key" \
	-newkey rsa:2048 -keyout other.key -out other.pem 2>/dev/null
"""
# Begin and end of a step in the output of all.
MARK = "@step"


class Step:
    def __init__(self, status: int, output: str) -> None:
        self.status = status
        self.output = output

def releases(package_root: root.PackageRoot) -> tuple[str, str]:
    """Of the cloud kernel, and of the other one that the root has headers of."""
    # The links are for those inside: some end nowhere from here.
    found = [p.name for p in (package_root.path / "usr/lib/modules").iterdir()
             if (p / "build").is_symlink()]
    (cloud,) = [name for name in found if "-cloud-" in name]
    (other,) = [name for name in found if "-cloud-" not in name]
    return cloud, other


def script(steps: dict[str, str]) -> str:
    """For a shell; names and commands."""
    return "".join(f"echo {MARK} {name}\nbegan=$(date +%s)\n"
                   f"(\n{command}\n)\n"
                   f'printf "\\n{MARK} {name} %s %s s\\n" $? '
                   "$(($(date +%s) - began))\n"
                   for name, command in steps.items())


def results(steps: dict[str, str], text: str) -> dict[str, Step]:
    """Of a shell that has run them all; @text: what it printed."""
    found = {name: Step(int(status), output) for name, output, status
             in re.findall(rf"^{MARK} (\S+)\n(.*?)\n{MARK} \1 (\d+) \d+ s$",
                           text, re.M | re.S)}
    if set(found) != set(steps):
        raise util.LabError(f"not all steps were run:\n{text[-2000:]}")
    return found


class Story:
    """Steps in one chroot, of which nothing stays but what is put into @work.

    A step that fails does not end it: tests look at each."""

    def __init__(self, package_root: root.PackageRoot, work: Path) -> None:
        self._root, self._work = package_root, work
        self._steps: dict[str, str] = {}

    def step(self, name: str, command: str, **values: str) -> None:
        """@values: environment of the command."""
        before = "".join(f"export {key}={shlex.quote(value)}\n"
                         for key, value in values.items())
        self._steps[name] = before + command

    def files(self, name: str) -> None:
        """A list of all files, without those that LEFT stands for."""
        self.step(name, "find / -xdev -path /proc -prune -o -print")

    def run(self) -> dict[str, Step]:
        path = self._work / "story.sh"
        path.write_text("exec 2>&1\n" + script(self._steps))
        log = self._work / "story.log"
        log.unlink(missing_ok=True)
        self._root.chroot(["bash", "/mnt/work/story.sh"], log,
                          work=self._work, scratch=True)
        text = log.read_text(errors="replace")
        # For who looks why something failed.
        print("".join(f"# {line}\n" for line in text.splitlines()
                      if not line.startswith("/")))
        return results(self._steps, text)


class StoryTest:
    """One story for all tests of a class: its class has tell(story)."""

    ROOT: str

    @classmethod
    def setUpClass(cls):
        cls.root = root.ensure(cls.ROOT)
        cls.kernel, cls.other = releases(cls.root)
        context = util.temp_dir(paths.tmp(), "packages-")
        cls.work = context.__enter__()
        cls.addClassCleanup(context.__exit__, None, None, None)
        story = Story(cls.root, cls.work)
        cls.tell(story)
        cls.steps = story.run()

    def need_in_lab(self, kernel, release):
        """Skip the test if the lab boots another release as @kernel."""
        found = kernels.get(kernel).release
        if found != release:
            self.skipTest(f"the lab has {found}, the headers here are "
                          f"{release}'s: lab/lab doctor --update")

    def output(self, name):
        """Of a step that must have gone well."""
        step = self.steps[name]
        self.assertEqual(step.status, 0, f"{name}:\n{step.output}")
        return step.output

    def assert_same_files(self, before, after):
        old, new = (set(self.output(name).splitlines())
                    for name in (before, after))
        self.assertGreater(len(old), 1000)
        self.assertEqual({p for p in new - old if not LEFT.match(p)}, set())
        self.assertEqual({p for p in old - new if not LEFT.match(p)}, set())

    def assert_installed(self, listing, modules):
        """@listing: a step with the files below updates/ of a kernel."""
        names = {re.sub(r"\.ko(\.\w+)?$", "", path.split("/")[-1])
                 for path in self.output(listing).split()}
        self.assertEqual(names, set(modules))
