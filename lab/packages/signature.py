# SPDX-License-Identifier: GPL-2.0
"""The signature at the end of a kernel module.

Behind the module: a PKCS#7 message, 12 bytes that end with its length (struct
module_signature, kernel/module_signature.c), and a marker.
"""

MARKER = b"~Module signature appended~\n"


def split_module(data: bytes) -> tuple[bytes, bytes]:
    """What was signed, and the message."""
    if not data.endswith(MARKER):
        raise ValueError("no signature")
    length = int.from_bytes(data[-len(MARKER) - 4:-len(MARKER)], "big")
    end = len(data) - len(MARKER) - 12
    return data[:end - length], data[end - length:end]
