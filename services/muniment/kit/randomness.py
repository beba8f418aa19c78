"""Randomness, as something handed in."""

from __future__ import annotations

import secrets
from typing import Protocol

__all__ = ["Randomness", "SystemRandomness"]


class Randomness(Protocol):
    """A source of random bytes that tests can seed."""

    def token(self, size_bytes: int) -> bytes:
        """That many random bytes."""
        ...


class SystemRandomness:
    """The operating system's cryptographic source."""

    def token(self, size_bytes: int) -> bytes:
        """That many random bytes."""
        return secrets.token_bytes(size_bytes)
