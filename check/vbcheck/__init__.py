# SPDX-License-Identifier: GPL-2.0
"""What `make check` is made of."""
