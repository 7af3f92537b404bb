# SPDX-License-Identifier: GPL-2.0
"""Measurements of vBalance in the nested lab: planning, parsing, statistics, reports."""
