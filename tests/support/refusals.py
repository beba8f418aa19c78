"""What a call is refused with."""

from __future__ import annotations

from collections.abc import Awaitable

import pytest

from muniment.kit.errors import MunimentError

__all__ = ["refused"]


async def refused(call: Awaitable[object], reason: str, *, fix: str = "") -> MunimentError:
    """The error of a call that has to be refused for that reason, and with that in the fix."""
    with pytest.raises(MunimentError) as caught:
        await call
    error = caught.value
    assert error.reason == reason, str(error)
    assert error.fix
    assert fix in error.fix
    return error
