"""Where a home keeps its things: the one place that knows folder and socket names.

Standard library only, since the bridge's front imports it.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["HOME_VARIABLE", "SOCKET_PATH_LIMIT_BYTES", "Home", "user_path"]

HOME_VARIABLE = "MUNIMENT_HOME"

# sun_path holds 104 bytes on macOS and 108 on Linux, the closing zero included.
SOCKET_PATH_LIMIT_BYTES = 100

_LONGEST_SOCKET_NAME = "/supervisor-xxxxxxxx.sock"


def user_path(named: str) -> Path:
    """The path with `~` expanded; as it is where there is no such user, and so not absolute."""
    return Path(os.path.expanduser(named))  # noqa: PTH111  (Path's own fails there)


@dataclass(frozen=True)
class Home:
    """One data home. Everything of one home is apart from every other."""

    path: Path
    """Absolute, symlinks resolved."""

    @classmethod
    def locate(cls, explicit: str | None = None) -> Home:
        """The home named explicitly, else by MUNIMENT_HOME, else the platform's data folder."""
        named = explicit or os.environ.get(HOME_VARIABLE)
        if named:
            return cls(Path(named).expanduser().resolve())
        return cls.default()

    @classmethod
    def default(cls) -> Home:
        """The home in the platform's data folder, whatever MUNIMENT_HOME says."""
        import platformdirs  # Costs the front 10 ms, so only where it is needed.

        return cls(Path(platformdirs.user_data_path("muniment", appauthor=False)).resolve())

    @property
    def runtime(self) -> Path:
        """Folder of sockets and the supervisor's files.

        A function of the home and the user alone: a harness that strips the environment must
        find the same sockets as a terminal. Under the home where socket paths stay short enough.
        """
        beside = self.path / "run"
        if len(os.fsencode(beside)) + len(_LONGEST_SOCKET_NAME) < SOCKET_PATH_LIMIT_BYTES:
            return beside
        digest = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]
        return Path("/tmp") / f"muniment-{os.getuid()}" / digest

    @property
    def logs(self) -> Path:
        """Folder of the services' log files."""
        return self.path / "logs"

    @property
    def settings_file(self) -> Path:
        """The host's settings, which need not exist."""
        return self.path / "muniment.toml"

    def data(self, service: str) -> Path:
        """The folder that this service alone owns."""
        return self.path / service

    def socket(self, service: str) -> Path:
        """The unix socket that this service listens on."""
        return self.runtime / f"{service}.sock"

    def why(self, service: str) -> Path:
        """Where a service that cannot start leaves the reason, as a line of text."""
        return self.runtime / f"{service}.why"
