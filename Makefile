# SPDX-License-Identifier: GPL-2.0
# vBalance for KVM. `make help` lists the targets.

KDIR ?= /lib/modules/$(shell uname -r)/build
DESTDIR ?=
VERSION := $(shell cat VERSION)

# Everything that the target `modules` reads; the lab takes the list from here.
MODULE_SOURCES := Makefile Kbuild VERSION include core common compat host-mod guest-mod

DKMS_TREE := /usr/src/vbalance-$(VERSION)
# Packages have other places for these.
UNIT_DIR ?= /etc/systemd/system
UDEV_DIR ?= /etc/udev/rules.d
UNITS := vbalance-host.service vbalance-guest.service
UDEV_RULES := 70-vbalance.rules
RELOAD := test ! -d /run/systemd/system || systemctl daemon-reload

all: modules

help:
	@echo "make [KDIR=DIR]     build both modules for a kernel (default: the running one)"
	@echo "make install        install both modules for that kernel (as root)"
	@echo "make uninstall      remove them again; KDIR=/lib/modules/RELEASE/build: those of another kernel, also if its headers have gone"
	@echo "make dkms-install   the same by DKMS, which builds them again for every new kernel; and the systemd units (KERNEL=RELEASE: for one kernel)"
	@echo "make dkms-uninstall remove all of that"
	@echo "make deb [OUT=DIR]  the Debian package vbalance-dkms, into DIR (default: out; needs root)"
	@echo "make demo           stock, irqbalance and what vBalance can do side by side, in an emulated host (this and what follows: root)"
	@echo "make bench          every scenario: latency, rates, neighbours, overhead (two hours; bench/bench --scenarios)"
	@echo "make hookcost       what the hooks on KVM cost, in an emulated host"
	@echo "make overhead       what the modules cost a guest's own work, in the same"
	@echo "make test           unit tests, then the lab tests (root; QUICK=1: as CI, without what takes long; RECORD=FILE: in pieces)"
	@echo "make test-long      more of each test, and the soak for ten minutes instead of one (RECORD=FILE as well)"
	@echo "make test-matrix    the lab tests on pairs of kernels (some six hours; RECORD=FILE as well)"
	@echo "make check          style, compiler and sparse warnings, rules, spelling, the ABI (root)"
	@echo "make test-debug     all of the lab tests on kernels that watch memory, locks and data races (hours; RECORD=FILE as well)"
	@echo "make coverage       which lines of the modules the lab tests run"
	@echo "make unit           unit tests only (no root, no lab)"
	@echo "make model          only the model of the redirection protocol"
	@echo "make clean          remove what was built here"

# Where the kernel was built by clang its modules have to be.
KERNEL_HAS = $(shell grep -s '^CONFIG_$(1)=y' $(KDIR)/include/config/auto.conf)
CLANG = $(if $(LLVM)$(filter-out default,$(origin CC)),,$(if \
	$(call KERNEL_HAS,CC_IS_CLANG),$(if $(call KERNEL_HAS,LD_IS_LLD),LLVM=1,CC=clang)))

modules:
	@test -e $(KDIR)/Makefile || { \
		echo "No kernel headers in $(KDIR)." >&2; \
		echo "Install them (Debian: apt install linux-headers-$$(uname -r)) or give KDIR=DIR." >&2; \
		exit 1; }
	$(MAKE) -C $(KDIR) M=$(CURDIR) $(CLANG) modules
	@! test -e compat/.found || cat compat/.found

# Where modules_install puts them. Not what `make kernelrelease` says: with
# Debian 12's headers that is another name.
# Also of a kernel whose headers have gone, by the name of KDIR.
FIND_UPDATES = \
	release=$$(sed -n 's/^\#define UTS_RELEASE "\(.*\)"/\1/p' \
		$(KDIR)/include/generated/utsrelease.h 2>/dev/null); \
	release=$${release:-$(patsubst /lib/modules/%/build,%,$(filter /lib/modules/%/build,$(KDIR)))}; \
	test -n "$$release" || { \
		echo "Of which kernel? No headers in $(KDIR): KDIR=/lib/modules/RELEASE/build" >&2; \
		exit 1; }; \
	updates=$(INSTALL_MOD_PATH)/lib/modules/$$release/updates
# modules_install leaves it out where the headers have no System.map.
DEPMOD = depmod $(if $(INSTALL_MOD_PATH),-b $(INSTALL_MOD_PATH)) $$release

NEEDS_ROOT = @test -n "$(INSTALL_MOD_PATH)" || test "$$(id -u)" = 0 || { \
	echo "make $@ needs root." >&2; exit 1; }

install:
	$(NEEDS_ROOT)
	@$(FIND_UPDATES) && for f in $$updates/dkms/vbalance_*; do \
		! test -e $$f || { \
			echo "$$f is there already: make dkms-uninstall," >&2; \
			echo "or remove the package vbalance-dkms, first." >&2; \
			exit 1; }; done
	$(MAKE) modules
	$(MAKE) -C $(KDIR) M=$(CURDIR) INSTALL_MOD_DIR=updates modules_install
	@$(FIND_UPDATES) && $(DEPMOD)

uninstall:
	$(NEEDS_ROOT)
	@$(FIND_UPDATES) && \
	rm -f $$updates/host-mod/vbalance_host.ko* \
	      $$updates/guest-mod/vbalance_guest.ko* && \
	for d in $$updates/host-mod $$updates/guest-mod $$updates; do \
		! test -d $$d || rmdir --ignore-fail-on-non-empty $$d; \
	done && $(DEPMOD)

dkms-source:
	@set -e; for f in $$(find $(MODULE_SOURCES) dkms.conf LICENSE -type f \
			\( -name '*.[ch]' ! -name '*.mod.c' -o -name '[KLMV]*' -o -name '*.sh' \
			-o -name dkms.conf \)); do \
		install -D -m 644 "$$f" "$(DESTDIR)$(DKMS_TREE)/$$f"; \
	done

units:
	install -d $(DESTDIR)$(UNIT_DIR) $(DESTDIR)$(UDEV_DIR)
	install -m 644 $(UNITS:%=contrib/systemd/%) $(DESTDIR)$(UNIT_DIR)
	install -m 644 $(UDEV_RULES:%=contrib/udev/%) $(DESTDIR)$(UDEV_DIR)

# For the running kernel and all others whose headers are there, or for
# KERNEL=RELEASE. What the units name as documentation is in the package only.
dkms-install:
	contrib/dkms.sh install $(VERSION) $(KERNEL)
	$(MAKE) units
	sed -i '/^Documentation=/d' $(UNITS:%=$(UNIT_DIR)/%)
	$(RELOAD)

dkms-uninstall:
	@contrib/dkms.sh mayremove
	! command -v systemctl >/dev/null || ! test -e $(UNIT_DIR)/$(word 1,$(UNITS)) || \
		systemctl disable $$(test ! -d /run/systemd/system || echo --now) $(UNITS)
	contrib/dkms.sh remove
	! test -d /run/systemd/system || for module in vbalance_guest vbalance_host; do \
		! test -d /sys/module/$$module || rmmod $$module || true; done
	rm -f $(UNITS:%=$(UNIT_DIR)/%) $(UDEV_RULES:%=$(UDEV_DIR)/%)
	$(RELOAD)

OUT ?= out
deb: python
	lab/lab deb $(OUT)

# What a minimal Debian lacks; everything else is set up by lab/lab itself.
python:
	@python3 -c 'import argparse, json, lzma' 2>/dev/null || { \
		echo "installing python3"; \
		apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
			--no-install-recommends python3 >/dev/null; }

demo: python
	bench/demo

bench: python
	bench/bench

hookcost: python
	bench/hookcost

overhead: python
	bench/overhead

check: python
	check/check

# In the package root, which has spin.
model: python
	lab/lab test --filter '^model$$'

unit:
	$(MAKE) -C selftests/unit check

# QUICK=1: without what is marked long. BEGIN_WITHIN=MINUTES: boots,
# and the tests in them, that have not begun by then are skipped. RECORD=FILE,
# here and in the next three: to go on where a run was ended.
test: python
	lab/lab test $(if $(filter 1,$(QUICK)),,--long) $(BEGIN_WITHIN:%=--begin-within %) \
		$(RECORD:%=--record %)

test-long: python
	lab/lab test --long --env SOAK_SECONDS=600 --env LONG=1 $(RECORD:%=--record %)

test-matrix: python
	lab/lab matrix --env LONG=1 $(RECORD:%=--record %)

# On kernels of the lab's own (lab/debug).
test-debug: python
	lab/lab debug --jobs 1 --env LONG=1 --env BOOSTS=10000 $(RECORD:%=--record %)

# One table at the end: each run adds to what is in that file.
COVERAGE := $(OUT)/coverage.json
coverage: python
	rm -f $(COVERAGE)
	lab/lab test --long --coverage --coverage-total $(COVERAGE) \
		--coverage-known lab/untested.json \
		--host-kernel coverage --guest-kernel coverage --env LONG=1

clean:
	rm -rf selftests/build selftests/unit/build selftests/model/build
	rm -rf bench/out out
	rm -f compat/.found
	find . -name '*.o' -o -name '*.ko' -o -name '*.mod' -o -name '*.mod.c' \
		-o -name '.*.cmd' -o -name modules.order \
		-o -name Module.symvers | xargs rm -f

.PHONY: all help modules install uninstall dkms-source units dkms-install \
	dkms-uninstall deb python demo bench hookcost overhead check unit \
	model test test-long test-matrix test-debug coverage clean
