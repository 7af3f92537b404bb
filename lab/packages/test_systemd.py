# SPDX-License-Identifier: GPL-2.0
"""The package in a Debian that really boots: units, modules-load.d, what
`make dkms-uninstall` stops and unloads, and irqbalance with our policy script in
the sandbox of its own unit.

What a chroot installs becomes the initramfs of a guest of the lab, and of a host
in the place of the lab's own. There systemd is process 1. The host has KVM, but
no VM; the guest has kvm.ko, as vbalance_host needs it, but not KVM (nested):
lab/README.md, "Faults of the emulator".
"""

import re
import shutil
import subprocess
import unittest
from pathlib import Path
from types import SimpleNamespace

from chroots import MODULES, WHOLE, StoryTest, results, script
import booting      # chroots says where it is
from vblab import deb, logs, machine, root, util

UNITS = "vbalance-guest.service vbalance-host.service"
POLICY = "/usr/share/doc/vbalance-dkms/examples/irqbalance-policy.sh"
PRERM = "/var/lib/dpkg/info/vbalance-dkms.prerm"
LOAD = "/usr/share/doc/vbalance-dkms/examples/modules-load.d/vbalance.conf"
SETTINGS = "/usr/share/doc/vbalance-dkms/examples/modprobe.d/vbalance.conf"
LISTED = "/var/lib/dpkg/info/vbalance-dkms.list"
# What a checkout installs and removes, but for the source of the modules.
CHECKOUT = "Makefile VERSION dkms.conf contrib"

SETUP = f"""set -e
mv "/lib/modules/$OTHER/build" /tmp
dpkg --path-include='/usr/share/doc/vbalance-dkms/*' -i \\
	/mnt/work/vbalance-dkms_*.deb
cp -a /mnt/work/irqbalance/. /
mkdir /vbalance
(cd /mnt/repo && cp -a --parents {CHECKOUT} /vbalance)
systemctl enable {UNITS} irqbalance.service
cp /mnt/work/steps.sh /
cat > /etc/default/irqbalance <<-END
	IRQBALANCE_ARGS="--debug -t 1 --policyscript={POLICY}"
END
cat > /etc/systemd/system/steps.service <<-END
	[Unit]
	After=multi-user.target
	[Service]
	ExecStart=/bin/bash /steps.sh
	TimeoutStopSec=5
END
mkdir -p /etc/systemd/system/multi-user.target.wants
ln -s ../steps.service /etc/systemd/system/multi-user.target.wants
install -D -m 755 /mnt/work/at-shutdown \\
	/usr/lib/systemd/system-shutdown/at-shutdown
mkdir -p /dev && rm -rf /dev/*
mknod -m 600 /dev/console c 5 1
mknod -m 666 /dev/null c 1 3
echo vbalance > /etc/hostname
"""
# Without what only builds packages and modules.
IMAGE = r"""set -e
cp "/boot/vmlinuz-$K" /mnt/work/vmlinuz
cd / && find . -xdev \( -path './proc/*' -o -path './mnt/*' -o -path './tmp/*' \
	-o -path './boot/*' -o -path './usr/src/*' -o -path './usr/include' \
	-o -path './usr/libexec/*' -o -path './usr/lib/gcc' \
	-o -path './usr/share/perl*' -o -path './usr/lib/*/perl' \
	-o -path './usr/lib/*/perl5' \
	-o -path './var/cache/*' -o -path './var/lib/apt/*' \
	-o -path './var/lib/dkms/*' -o -path "./usr/lib/modules/$OTHER" \
	-o -path './usr/lib/file' -o -path './usr/share/mime' \
	-o -path './usr/share/lintian' -o -path './usr/bin/x86_64-linux-gnu-*' \
	-o -name '*.hwdb' -o -name hwdb.bin -o -name '*.a' \
	-o -name 'lib*san.so*' \) -prune \
	-o -print | cpio -o -H newc > /mnt/work/image
"""
APPEND = "loglevel=5 rdinit=/usr/lib/systemd/systemd " \
    "systemd.unit=multi-user.target systemd.show_status=no " \
    "systemd.log_level=warning systemd.mask=getty.target"
# In L1: a boot, whose steps write to its disk what they say. The console is
# quiet: each character of it costs this guest a fraction of a millisecond. How
# the guest ended is said, as a triple fault leaves no message: reason 6 is
# QEMU's SHUTDOWN_CAUSE_GUEST_SHUTDOWN.
BOOTS = f""". /lab/lib.sh
boot() {{	# NAME WORD
	name=$1
	progress "boot $name"
	guest_start 0 -trace qemu_system_shutdown_request \\
		-initrd /lab/image -kernel /lab/vmlinuz \\
		-append "console=ttyS0 $KERNEL_ARGS $APPEND_L2 {APPEND} lab.boot=$1 $2"
	# As guest_wait does, which asks an agent that is not here.
	while [ "$(vcpu_tids 0 | wc -l)" -lt "$VCPUS" ] && guest_running 0; do
		usleep 100000
	done
	guest_pin 0
	while guest_running 0; do sleep 1; done
	wait "$(guest_pid 0)"
	echo "$name: QEMU exited with $?," \\
		"$(grep -c reason=6 $LAB_RUN/qemu-l2-0.log) guests shut down so far"
	tr -d '\\0' < $LAB_RUN/blk-0-0.img > "$LAB_OUT/$name"
	rm $LAB_RUN/blk-0-0.img
	guest_stop 0
}}
"""
ACTIVE = f"systemctl is-active {UNITS}"
LOADED = "sed -n 's/^\\(vbalance_[a-z]*\\) .*/\\1/p' /proc/modules | sort"
AWAIT = "timeout 300 sh -c 'until {}; do sleep 1; done'"
# Lines of debugfs like "27 virtio0-input.0 ...", and what irqbalance says.
IRQS = "/sys/kernel/debug/vbalance/guest/irqs"
ON = {
    "running": "systemctl is-system-running --wait",
    # Without KVM nothing has started it.
    "host": "systemctl is-active vbalance-host; "
            "systemctl start vbalance-host",
    "active": ACTIVE,
    "modules": LOADED,
    "features": "cat /sys/kernel/debug/vbalance/*/features",
    "irqs": f"cat {IRQS}",
    "irqbalance": AWAIT.format("journalctl -u irqbalance | grep -q -e ---")
                  + " && systemctl is-active irqbalance",
    "order": "systemctl show -P After irqbalance",
    "irqbalance-said": "journalctl -o cat -u irqbalance",
    "restart": f"systemctl restart {UNITS} && {ACTIVE}",
    "restarted": LOADED,
    "loads": "dmesg | grep -c 'vbalance_[a-z]*: version'",
    "stop": f"systemctl stop {UNITS}; {LOADED}; {ACTIVE}",
    # Of modules that are not there any more.
    "gone": f"systemctl start {UNITS} && rmmod vbalance_guest vbalance_host && "
            f"systemctl stop {UNITS} && ! systemctl --failed | grep vbalance",
    "start": f"systemctl start {UNITS} && {ACTIVE}",
    # A newer package replaces the files, not the modules that are loaded.
    "upgrade": f"sh {PRERM} upgrade 99 > /dev/null 2>&1; {LOADED}; {ACTIVE}",
    # What purging the package begins with. DKMS's own files are not here.
    "purge": f"sh {PRERM} remove > /dev/null 2>&1; {LOADED}",
    # Loaded by others than the units.
    "purge-others": f"modprobe -a vbalance_guest vbalance_host && "
                    f"sh {PRERM} remove > /dev/null 2>&1; {LOADED}",
    "not-there": "mv /lib/modules/$(uname -r)/updates / && depmod && "
                 f"systemctl start {UNITS}; {ACTIVE}; "
                 "journalctl --sync; "
                 "journalctl -o cat | grep 'is not there for kernel' | "
                 'grep -cF "$(uname -r), see dkms status"',
    # From a checkout: one unit is active, and the other module is loaded by
    # somebody. There are no files of the package's that could forbid it.
    "checkout": f"mv /updates /lib/modules/$(uname -r)/ && depmod && "
                f"rm {LISTED} && rm /usr/lib/systemd/system/vbalance-* && "
                "make -s -C /vbalance units && systemctl daemon-reload && "
                "systemctl enable vbalance-host.service > /dev/null 2>&1 && "
                "systemctl enable --now vbalance-guest.service "
                "> /dev/null 2>&1 && "
                f"modprobe vbalance_host && {LOADED}",
    "dkms-uninstall": "make -s -C /vbalance dkms-uninstall",
    "unloaded": LOADED,
    "uninstalled": "systemctl list-unit-files --no-legend 'vbalance*'; "
                   "find /etc/systemd/system /etc/udev/rules.d -name '*vbalance*'",
    "failed": "systemctl --failed --plain --no-legend",
}
OFF = {
    "running": "systemctl is-system-running --wait",
    "active": ACTIVE,
    "start": f"systemctl start {UNITS}; {ACTIVE}",
    "why": "systemctl show -p ConditionResult " + UNITS,
    "modules": LOADED,
    "load": f"cp {LOAD} /etc/modules-load.d/ && "
            "systemctl restart systemd-modules-load && " + LOADED,
    "settings": "rmmod vbalance_guest && "
                f"sed 's/^#options/options/' {SETTINGS} "
                "> /etc/modprobe.d/vbalance.conf && modprobe vbalance_guest && "
                "cat /sys/module/vbalance_guest/parameters/observe && "
                "rmmod vbalance_guest",
    "never": f"sed 's/^#install/install/' {SETTINGS} "
             "> /etc/modprobe.d/vbalance.conf; "
             "modprobe vbalance_guest 2> /dev/null; echo $?; " + LOADED,
    "failed": "systemctl --failed --plain --no-legend",
}
BLACKLISTED = {
    "running": "systemctl is-system-running --wait",
    "start": f"systemctl start {UNITS}; {ACTIVE}",
    "modules": LOADED,
    "by-hand": "modprobe vbalance_guest && " + LOADED,
    "stop": f"systemctl stop {UNITS}; {LOADED}",
    # Active, and its module is there: what a shutdown begins with.
    "start-again": f"systemctl start {UNITS} && modprobe -a {' '.join(MODULES)}"
                   f" && {ACTIVE}",
    "failed": "systemctl --failed --plain --no-legend",
}
# What systemd-shutdown runs at the very end: no unit is left then.
AT_SHUTDOWN = {"at-shutdown": LOADED}
HOST = {
    "running": "systemctl is-system-running --wait",
    # It comes with /dev/kvm, which comes when udev finds the CPU's features.
    "await": AWAIT.format("systemctl is-active -q vbalance-host"),
    # That of the guest is for guests of KVM.
    "active": ACTIVE,
    "modules": LOADED,
    "features": "cat /sys/kernel/debug/vbalance/host/features",
    "restart": f"systemctl restart {UNITS} && {ACTIVE}",
    "loads": "dmesg | grep -c 'vbalance_host: version'",
    "stop": f"systemctl stop {UNITS}; {LOADED}; {ACTIVE}",
    "failed": "systemctl --failed --plain --no-legend",
}
# udev asks for the host's unit here, and must not get the module.
HOST_KEPT_OFF = {
    "running": "systemctl is-system-running --wait",
    "kvm": AWAIT.format("systemctl is-active -q dev-kvm.device"),
    "why": AWAIT.format("systemctl show -P ConditionTimestampMonotonic "
                        "vbalance-host | grep -qv ^0")
           + " && systemctl show -p ConditionResult vbalance-host",
    # Joins a start that is under way.
    "modules": "systemctl start vbalance-host; " + LOADED,
    "failed": "systemctl --failed --plain --no-legend",
}
# What is added to the kernel's command line, and what is done there.
GUESTS = {
    "on": ("", ON),
    "off": ("vbalance=off", OFF),
    "blacklisted": ("modprobe.blacklist=" + ",".join(MODULES), BLACKLISTED),
}
HOSTS = {
    "host": ("", HOST),
    "host-off": ("vbalance=off", HOST_KEPT_OFF),
    "host-blacklisted": (GUESTS["blacklisted"][0], HOST_KEPT_OFF),
}
BOOTED = {name: steps for name, (_, steps) in (GUESTS | HOSTS).items()}
BOOTED["blacklisted"] = BLACKLISTED | AT_SHUTDOWN
PORT = "steps"
PORT_FILE = f"/dev/virtio-ports/{PORT}"
STEPS = """exec > /run/steps.out 2>&1
case " $(cat /proc/cmdline) " in
""" + "".join(f"""*" lab.boot={name} "*)
{script({s: c for s, c in steps.items() if s not in AT_SHUTDOWN})} ;;
""" for name, steps in BOOTED.items()) + f"""esac
{AWAIT.format(f"[ -b /dev/vda -o -c {PORT_FILE} ]")}
if [ -b /dev/vda ]
then dd if=/run/steps.out of=/dev/vda bs=64k conv=fsync
else cat /run/steps.out > {PORT_FILE}
fi
case $(cat /proc/cmdline) in
*lab.boot=blacklisted*) systemctl poweroff ;;
*) systemctl poweroff --force --force ;;
esac
"""
# Behind what the steps have said.
SHUTDOWN = f"""#!/bin/bash
{{
{script(AT_SHUTDOWN)}
}} 2>&1 | dd of=/dev/vda bs=64k seek=8 conv=fsync
"""


def put_irqbalance(target: Path) -> None:
    """Debian's, of the root that the lab's machines are made of."""
    tools = root.ensure("trixie")
    listed = (tools.path / "var/lib/dpkg/info/irqbalance.list").read_text()
    files = [p.lstrip("/") for p in listed.split()]
    for rel in files + tools.libraries("usr/sbin/irqbalance"):
        # The loader's folder is a link in every Debian.
        if (tools.path / rel).is_file() and not rel.startswith("lib64/"):
            copy = target / rel
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(tools.path / rel, copy)


@unittest.skipUnless(WHOLE, "takes a boot: make test")
class Systemd(StoryTest, unittest.TestCase):
    ROOT = "packaging"

    @classmethod
    def tell(cls, story):
        deb.build(cls.work)
        put_irqbalance(cls.work / "irqbalance")
        (cls.work / "steps.sh").write_text(STEPS)
        (cls.work / "at-shutdown").write_text(SHUTDOWN)
        story.step("setup", SETUP, OTHER=cls.other)
        story.step("image", IMAGE, K=cls.kernel, OTHER=cls.other)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name in ("setup", "image"):
            if cls.steps[name].status:
                raise util.LabError(f"{name}:\n{cls.steps[name].output}")
        cls.boot_guests()
        cls.hosts = {name: cls.boot_host(name, word)
                     for name, (word, _) in HOSTS.items()}

    @classmethod
    def boot_guests(cls):
        run = booting.Run("--guests", "1", "--no-start-guests", "--host-mod",
                          "--vcpus", "2", "--guest-mem", "1536",
                          "--blk", "1", "--blk-size", "1",
                          "--add-l1", f"{cls.work}/image",
                          "--add-l1", f"{cls.work}/vmlinuz",
                          "--timeout", "2700", l1=BOOTS + "".join(
                              f"boot {name} {word}\n"
                              for name, (word, _) in GUESTS.items()))
        cls.addClassCleanup(run.remove)
        cls.status = run.wait()
        cls.said = run.stderr
        for name in GUESTS:
            # Not there if the lab ended before that guest did.
            said = run.out / name
            cls.take(name, said.read_text() if said.exists() else "",
                     sorted(run.out.glob("*.log")))

    @classmethod
    def boot_host(cls, name, word):
        """How QEMU ended (None: not within its time), bad lines of the log."""
        console, said, qemu = (cls.work / f"{name}.{what}" for what in
                               ("log", "said", "qemu"))
        said.touch()
        l1 = machine.Machine(
            root.ensure("trixie"), SimpleNamespace(image=cls.work / "vmlinuz"),
            cls.work / "image", console, 2, 1536,
            f"{APPEND} lab.boot={name} {word}", {PORT: said})
        process = l1.start(qemu)
        status = None
        try:
            status = process.wait(timeout=600)
        except subprocess.TimeoutExpired:
            pass
        finally:
            machine.stop(process)
        cls.take(name, said.read_text(), [console, qemu])
        return status, logs.judge(name, console.read_text(errors="replace"))

    @classmethod
    def take(cls, name, text, ends):
        """What the steps of the boot @name said; if nothing, why."""
        if not text:
            tails = "".join(f"--- {log.name}\n{util.tail(log, 20)}\n"
                            for log in ends)
            raise util.LabError(f"{name} wrote nothing:\n{cls.said}{tails}")
        print("".join(f"# {line}\n" for line in text.splitlines()))
        cls.steps |= {f"{name} {step}": result for step, result
                      in results(BOOTED[name], text).items()}

    def test_boot_and_kernel_logs(self):
        self.assertEqual(self.status, 0, self.said)
        self.assertEqual(self.hosts, {name: (0, []) for name in HOSTS})
        for name in BOOTED:
            self.assertEqual(self.steps[f"{name} running"].output.split(),
                             ["running"], self.steps[f"{name} failed"].output)

    def test_units(self):
        self.assertEqual(self.output("on host").split(), ["inactive"])
        self.assertEqual(self.output("on active").split(), ["active"] * 2)
        self.assertEqual(self.output("on modules").split(), list(MODULES))
        features = self.output("on features")
        # The host below has the module as well: the guest registers there.
        self.assertIn("page on", features)
        self.assertIn("run_state on", features)

    def test_units_of_a_host(self):
        self.output("host await")
        there = ["inactive", "active"]
        self.assertEqual(self.output("host active").split(), there)
        self.assertEqual(self.output("host modules").split(),
                         ["vbalance_host"])
        self.assertIn("run_state on", self.output("host features"))
        self.assertEqual(self.output("host restart").split(), there)
        self.assertEqual(self.output("host loads").split(), ["2"])
        self.assertEqual(self.steps["host stop"].output.split(),
                         ["inactive"] * 2)

    def test_a_host_where_they_are_kept_off(self):
        for name, met in {"host-off": "no", "host-blacklisted": "yes"}.items():
            self.output(f"{name} kvm")
            self.assertEqual(self.output(f"{name} why").split(),
                             [f"ConditionResult={met}"])
            self.assertEqual(self.output(f"{name} modules").split(), [])

    def test_restart_and_stop(self):
        self.assertEqual(self.output("on restart").split(), ["active"] * 2)
        self.assertEqual(self.output("on restarted").split(), list(MODULES))
        self.assertEqual(self.output("on loads").split(), ["4"])
        # No module, no active unit.
        self.assertEqual(self.steps["on stop"].output.split(),
                         ["inactive"] * 2)
        self.output("on gone")
        self.assertEqual(self.output("on start").split(), ["active"] * 2)

    def test_an_upgrade_leaves_what_is_loaded(self):
        self.assertEqual(self.output("on upgrade").split(),
                         list(MODULES) + ["active"] * 2)

    def test_make_dkms_uninstall_unloads(self):
        self.assertEqual(self.output("on checkout").split(), list(MODULES))
        self.output("on dkms-uninstall")
        self.assertEqual(self.output("on unloaded").split(), [])
        self.assertEqual(self.output("on uninstalled").split(), [])

    def test_removing_the_package_unloads(self):
        self.assertEqual(self.output("on purge").split(), [])
        self.assertEqual(self.output("on purge-others").split(), [])

    def test_modules_that_are_not_there(self):
        # No failure, but the log says why.
        self.assertEqual(self.output("on not-there").split(),
                         ["inactive"] * 2 + ["2"])

    def test_command_line_keeps_them_off(self):
        for step in ("active", "start"):
            self.assertEqual(self.steps[f"off {step}"].output.split(),
                             ["inactive"] * 2)
        self.assertEqual(self.output("off why").split(),
                         ["ConditionResult=no"] * 2)
        self.assertEqual(self.output("off modules").split(), [])

    def test_blacklist_keeps_them_off(self):
        # modprobe does nothing, and that is no failure.
        self.assertEqual(self.output("blacklisted start").split(),
                         ["active"] * 2)
        self.assertEqual(self.output("blacklisted modules").split(), [])
        self.assertEqual(self.output("blacklisted by-hand").split(),
                         ["vbalance_guest"])
        self.assertEqual(self.output("blacklisted stop").split(), [])

    def test_shutdown_does_not_unload(self):
        self.assertEqual(self.output("blacklisted start-again").split(),
                         ["active"] * 2)
        self.assertEqual(self.output("blacklisted at-shutdown").split(),
                         list(MODULES))

    def test_modules_load(self):
        self.assertEqual(self.output("off load").split(), ["vbalance_guest"])

    def test_settings_of_modprobe(self):
        self.assertEqual(self.output("off settings").split(), ["1"])
        self.assertEqual(self.output("off never").split(), ["1"])

    def test_irqbalance_leaves_ours_alone(self):
        self.assertEqual(self.output("on irqbalance").split(), ["active"])
        # It asks once: what it does not know by then it balances.
        self.assertIn("vbalance-guest.service", self.output("on order"))
        free = re.findall(r"^(\d+) \S+ \S+ \S+ (?:free|restricted)\b",
                          self.output("on irqs"), re.M)
        self.assertTrue(free)
        said = self.output("on irqbalance-said")
        for irq in free:
            self.assertRegex(said, rf"(?m)^IRQ {irq} was BANNED")


if __name__ == "__main__":
    unittest.main()
