# SPDX-License-Identifier: GPL-2.0
# vBalance for KVM. `make help` lists the targets.

KDIR ?= /lib/modules/$(shell uname -r)/build
MODULES ?= host guest

all: modules

modules:
	@test -e $(KDIR)/Makefile || { \
		echo "No kernel headers in $(KDIR)." >&2; \
		echo "Install them (Debian: apt install linux-headers-$$(uname -r)) or give KDIR=DIR." >&2; \
		exit 1; }
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules

.PHONY: all modules
