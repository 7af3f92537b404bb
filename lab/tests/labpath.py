# SPDX-License-Identifier: GPL-2.0
"""Lets the tests import the lab's parts, wherever they are started from."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
