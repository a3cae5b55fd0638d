"""The cipher for whole batches, if this installation has it.

Lives here: the choice between `_batch_cipher.c`, which seals and opens a batch in one call outside of the interpreter's
lock, and the loops in Python (tunnel/keypairs.py), which call `cryptography` for every packet. The bytes are the
same.
Does not live here: the use of either (tunnel/keypairs.py).
Obeys: RFC 8439; docs/decisions/batch-cipher.md.
"""

from __future__ import annotations

# The interpreter's own libcrypto comes with it, for the compiled module to find in the process.
import hashlib  # noqa: F401
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coder.mesh.core.crypto._batch_cipher import BatchCipher

BATCH_CIPHER: type[BatchCipher] | None = None
"""The class, or None: not compiled (a wheel, a checkout), or no libcrypto with all of its functions."""
LIBRARY = "cryptography, packet by packet"
"""What encrypts packets, for a person who reads a diagnosis."""

try:
    from coder.mesh.core.crypto import _batch_cipher
except ImportError:
    pass
else:
    BATCH_CIPHER = _batch_cipher.BatchCipher
    LIBRARY = f"{_batch_cipher.LIBRARY}, in batches"
