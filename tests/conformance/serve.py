"""Serves the suite's fixtures through the bridge's own HTTP stack.

`python -m tests.conformance.serve --conformance-fixtures --http 127.0.0.1:0`
"""

from __future__ import annotations

import asyncio
import os
import sys

from muniment.bridge.framing import complain
from muniment.bridge.http.access import open_door
from muniment.bridge.http.server import run_servers
from muniment.bridge.options import UsageError, read_options
from muniment.kit.errors import MunimentError
from tests.conformance.fixtures import make_fixtures

SWITCH = "--conformance-fixtures"


def main() -> None:
    """Serve until told to stop; the product has no such switch."""
    arguments = sys.argv[1:]
    try:
        if SWITCH not in arguments:
            raise UsageError(f"{SWITCH} is missing")
        arguments.remove(SWITCH)
        http = read_options(arguments, os.environ).http
        if http is None:
            raise UsageError("--http HOST:PORT is missing")
        servers = {"/mcp": make_fixtures()}
        with open_door(http) as door:
            asyncio.run(run_servers(servers, door, on_session_end=lambda session: None))
    except (UsageError, MunimentError) as error:
        complain(str(error))
        sys.exit(2)


if __name__ == "__main__":
    main()
