# SPDX-License-Identifier: GPL-2.0
"""Lets the tests import the checks' parts, wherever they are started from."""

import sys
from pathlib import Path

_CHECK = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(_CHECK), str(_CHECK.parent / "lab")]
