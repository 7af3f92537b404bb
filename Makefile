# SPDX-License-Identifier: GPL-2.0
# vBalance for KVM. `make help` lists the targets.

KDIR ?= /lib/modules/$(shell uname -r)/build
DESTDIR ?=
PREFIX ?= /usr/local

all: modules

help:
	@echo "make [KDIR=DIR]     build both modules for a kernel (default: the running one)"
	@echo "make install        install both modules for that kernel (as root)"
	@echo "make uninstall      remove them again"
	@echo "make demo           stock, irqbalance and what vBalance can do side by side, in an emulated host"
	@echo "make bench          latency, request/response, bulk and block I/O of every mode (over an hour)"
	@echo "make hookcost       what the hooks on KVM cost, in an emulated host"
	@echo "make test           unit tests, then the lab tests"
	@echo "make test-long      more of them, and the soak for ten minutes instead of one"
	@echo "make test-debug     all of them on kernels that watch memory, locks and data races"
	@echo "make coverage       which lines of the modules they run"
	@echo "make unit           unit tests only (no root, no lab)"
	@echo "make model          only the model of the redirection protocol"
	@echo "make clean          remove what was built here"

modules:
	@test -e $(KDIR)/Makefile || { \
		echo "No kernel headers in $(KDIR)." >&2; \
		echo "Install them (Debian: apt install linux-headers-$$(uname -r)) or give KDIR=DIR." >&2; \
		exit 1; }
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules

install: modules
	$(MAKE) -C $(KDIR) M=$(CURDIR) INSTALL_MOD_DIR=updates modules_install

# modules_install names the folder after the kernel that KDIR belongs to.
uninstall:
	release=$$($(MAKE) -s -C $(KDIR) kernelrelease) && \
	rm -f $(INSTALL_MOD_PATH)/lib/modules/$$release/updates/host-mod/vbalance_host.ko* \
	      $(INSTALL_MOD_PATH)/lib/modules/$$release/updates/guest-mod/vbalance_guest.ko* && \
	depmod $(if $(INSTALL_MOD_PATH),-b $(INSTALL_MOD_PATH)) $$release

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

# In the package root, which has spin.
model: python
	lab/lab test --filter '^model$$'

unit:
	$(MAKE) -C selftests/unit check

test: python
	lab/lab test

test-long: python
	lab/lab test --long --env SOAK_SECONDS=600 --env LONG=1

# On kernels of the lab's own (lab/debug); hours.
test-debug: python
	status=0; for kernel in debug debug-kcsan; do \
		lab/lab test --long --host-kernel $$kernel --guest-kernel $$kernel \
			--env LONG=1 --env BOOSTS=10000 || status=1; \
	done; exit $$status

coverage: python
	lab/lab test --long --coverage --host-kernel debug --guest-kernel debug \
		--env LONG=1

clean:
	rm -rf selftests/unit/build selftests/model/build bench/out
	find . -name '*.o' -o -name '*.ko' -o -name '*.mod' -o -name '*.mod.c' \
		-o -name '.*.cmd' -o -name modules.order \
		-o -name Module.symvers | xargs rm -f

.PHONY: all help modules install uninstall python demo bench hookcost unit \
	model test test-long test-debug coverage clean
