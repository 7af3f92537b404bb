# SPDX-License-Identifier: GPL-2.0
"""Parts of lab/lab."""
