"""Starts the HTTP server: `muniment-mcp --http HOST:PORT`."""

from __future__ import annotations

import asyncio
import os
import resource
import sys

from muniment.bridge.framing import complain
from muniment.bridge.http.access import Door, open_door
from muniment.bridge.options import UsageError, read_options
from muniment.kit.errors import MunimentError


def main() -> None:
    """Serve until told to stop; exit with 2 where the arguments cannot be followed."""
    os.umask(0o077)
    # A core file would have what was said.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        options = read_options(sys.argv[1:], os.environ)
        if options.http is None:
            raise UsageError("--http HOST:PORT is missing")
        with open_door(options.http) as door:
            _serve(door)
    except (UsageError, MunimentError) as error:
        complain(str(error))
        sys.exit(2)
    except KeyboardInterrupt:
        return


def _serve(door: Door) -> None:
    # Seconds of imports, after everything that may be refused before.
    from muniment.bridge.http.server import serve_http
    from muniment.bridge.worker import CATALOGUE
    from muniment.kit.logging import configure_logging
    from muniment.kit.paths import Home
    from muniment.kit.server import pseudonym_of
    from muniment.kit.settings import load_settings

    home = Home.locate()
    settings = load_settings(home)
    configure_logging("http", settings.log_level, pseudonym=pseudonym_of(home, settings))
    asyncio.run(serve_http(home, settings, door, CATALOGUE))


if __name__ == "__main__":
    main()
