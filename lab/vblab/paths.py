# SPDX-License-Identifier: GPL-2.0
"""Where things are: the checkout and the cache folder."""

from __future__ import annotations

import os
from pathlib import Path

LAB = Path(__file__).resolve().parent.parent
REPO = LAB.parent


def cache() -> Path:
    explicit = os.environ.get("VBALANCE_CACHE")
    if explicit:
        return Path(explicit).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base).absolute() / "vbalance"


def tmp() -> Path:
    return cache() / "tmp"


def images() -> Path:
    return cache() / "images"


def builds() -> Path:
    return cache() / "build"


def runs() -> Path:
    return cache() / "runs"


def lock(name: str) -> Path:
    return cache() / "lock" / f"{name}.lock"
