"""Starts the front with a manifest of the tests, and a supervisor that is the test itself."""

from __future__ import annotations

import os
import socket

from muniment.bridge.front import main
from muniment.kit.paths import Home


def ask_the_test(home: Home, deadline_seconds: float) -> bool:
    """Tell the test that services are wanted; return when it has done with that."""
    path = os.environ.get("TEST_STARTER")
    if path is None:
        raise RuntimeError("this test has no services")
    with socket.socket(socket.AF_UNIX) as starter:
        starter.settimeout(deadline_seconds)
        starter.connect(path)
        starter.sendall(f"{home.path}\n".encode())
        return starter.recv(1) == b"1"


if __name__ == "__main__":
    main(manifest_path=os.environ["TEST_MANIFEST"], ensure_running=ask_the_test)
