"""Errors of the mesh core.

Lives here: one root, and one class per failure that callers treat differently.
Does not live here: ordinary refusals (an unexpected datagram): those are values, counted where they happen.
"""

from __future__ import annotations


class MeshError(Exception):
    """Root of all mesh errors: a stable code for programs, a sentence for people."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


class WireError(MeshError):
    """Malformed bytes from the network. The only error of `*_untrusted` functions."""

    def __init__(self, code: str, message: str = "") -> None:
        super().__init__(code, message or code.replace("_", " "))


class CryptoError(MeshError):
    """A key is malformed or an authenticator does not match."""

    def __init__(self, code: str, message: str = "") -> None:
        super().__init__(code, message or code.replace("_", " "))
