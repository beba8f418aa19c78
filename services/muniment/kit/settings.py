"""The host's settings: what services read when they start, and where each value came from.

Sources, strongest first: the environment (`MUNIMENT_LOG_LEVEL`), `muniment.toml` in the home
(`log_level = "debug"`), the default. What a caller may choose travels with the call instead.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from muniment.kit.errors import PreconditionError
from muniment.kit.paths import Home

__all__ = [
    "DEFAULT_TENANT",
    "ENVIRONMENT_PREFIX",
    "PREDECESSOR_VARIABLES",
    "ServerSettings",
    "SettingOrigin",
    "Settings",
    "explain",
    "load_settings",
]

ENVIRONMENT_PREFIX = "MUNIMENT_"

DEFAULT_ORIGIN = "default"
ENVIRONMENT_ORIGIN = "environment"

_KEY_FOLDER = "key_folder"

PREDECESSOR_VARIABLES = {
    "SAKUR4_BACKEND": "backend",
    "SAKUR4_LLAMA_URL": "llama_url",
    "SAKUR4_SNAPSHOT_DIR": "snapshot_folder",
}
"""Variables of an earlier program that set what ours set."""

DEFAULT_TENANT = "00000000-0000-0000-0000-000000000001"


class ServerSettings(BaseModel):
    """An inference server beside the usual one: `[servers.NAME]` in the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str = Field(min_length=1, description="Where it listens.")
    key_file: str = Field(default="", description="File with its API key.")
    save_folder: str = Field(default="", description="Its --slot-save-path, as seen from here.")


class Settings(BaseSettings):
    """The host's settings. Frozen; a service that should see a new value is restarted."""

    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX, env_ignore_empty=True, extra="forbid", frozen=True
    )

    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severity that the services log."
    )
    drain_seconds: float = Field(
        default=10.0, ge=0, le=14, description="How long a stopping service lets calls finish."
    )
    call_deadline_seconds: float = Field(
        default=20.0,
        ge=1,
        le=600,
        description="How long a tool call waits for a service, restarts of it included.",
    )
    key_store: Literal["file", "keyring"] = Field(
        default="file", description="Where the home's key is kept: a file, or the OS keyring."
    )
    key_folder: str = Field(
        default="",
        description="Folder of the key file, in place of the user's own. Not read from the file.",
    )
    feed_retention_changes: int = Field(
        default=1_000_000, ge=1000, description="How many changes a store's feed keeps."
    )
    reply_life_seconds: float = Field(
        default=24 * 3600.0,
        ge=600,
        # Beyond some centuries a clock's nanoseconds cannot be counted back so far.
        le=366 * 24 * 3600,
        description="How long a call's outcome is kept for those who send the call again.",
    )
    memory_map_bytes: int = Field(
        default=64 * 1024**3,
        ge=16 * 1024**2,
        # What an address space of 47 bits has room for, and for a copy beside it.
        le=64 * 1024**4,
        description="Size limit of the memory service's store. Disk is used as it fills.",
    )
    tenant: str = Field(
        default=DEFAULT_TENANT,
        min_length=1,
        max_length=200,
        description="Whose records a caller reads and writes that names no tenant.",
    )
    dense: Literal["on", "off"] = Field(
        default="on", description="Whether records are found by meaning, too."
    )
    records_cap_bytes: int = Field(
        default=0,
        ge=0,
        le=64 * 1024**4,
        description="Most that the records of a tenant may come to; 0 for no cap.",
    )
    backend: str = Field(
        default="auto",
        min_length=1,
        max_length=500,
        description="The usual inference server: auto, none, its URL, or a name of `servers`.",
    )
    llama_url: str = Field(
        default="",
        max_length=500,
        description="Where llama-server listens: http://HOST:PORT, or unix:/PATH.sock.",
    )
    llama_key_file: str = Field(default="", description="File with llama-server's API key.")
    llama_save_folder: str = Field(
        default="", description="llama-server's --slot-save-path, as seen from this machine."
    )
    servers: dict[str, ServerSettings] = Field(
        default_factory=dict, description="More inference servers, by name."
    )
    slots_probe: Literal["on", "off"] = Field(
        default="on", description="Whether a spare slot is used to learn what a server can do."
    )
    snapshot_folder: str = Field(
        default="", description="Folder of slot snapshots, in place of the home's own."
    )
    snapshots_keep: int = Field(
        default=4, ge=1, le=1000, description="Most snapshots of a session's slot that are kept."
    )
    snapshots_days: float = Field(
        default=30.0, gt=0, le=36500, description="How long a snapshot is kept."
    )
    snapshots_bytes: int = Field(
        default=64 * 1024**3,
        ge=0,
        le=1024**5,
        description="Most bytes that all snapshots together may have; 0 for no cap.",
    )
    snapshots_spare_bytes: int = Field(
        default=1024**3,
        ge=0,
        le=1024**5,
        description="Disk space that a snapshot leaves free.",
    )
    code_workers: int = Field(
        default=0,
        ge=0,
        le=256,
        description="Most processes that parse files; 0 for one less than there are cores.",
    )
    code_watch: Literal["on", "off"] = Field(
        default="on", description="Whether working trees that were asked for are watched."
    )
    code_file_bytes: int = Field(
        default=4 * 1024**2,
        ge=1024,
        le=64 * 1024**2,
        description="Largest file that is parsed.",
    )


@dataclass(frozen=True)
class SettingOrigin:
    """One setting as this process sees it."""

    name: str
    value: str
    origin: str
    """`default`, `environment`, or the path of the file that set it."""
    description: str


def load_settings(home: Home) -> Settings:
    """The settings of the home.

    Raises:
        PreconditionError: The file cannot be read, or a value or name in it is wrong.
    """
    return _load(home)[0]


def explain(home: Home) -> list[SettingOrigin]:
    """Every setting with its value and origin, by name.

    Raises:
        PreconditionError: As `load_settings`.
    """
    settings, origins = _load(home)
    return [
        SettingOrigin(
            name=name,
            value=str(getattr(settings, name)),
            origin=origins.get(name, DEFAULT_ORIGIN),
            description=field.description or "",
        )
        for name, field in sorted(Settings.model_fields.items())
    ]


def _load(home: Home) -> tuple[Settings, dict[str, str]]:
    origins: dict[str, str] = {}

    def recording(origin: str, source: PydanticBaseSettingsSource) -> Mapping[str, Any]:
        values = source()
        for name in values:
            origins.setdefault(name, origin)
        return values

    try:
        environment = recording(ENVIRONMENT_ORIGIN, EnvSettingsSource(Settings))
        environment = {**_from_predecessors(origins), **environment}
        file = recording(
            str(home.settings_file), TomlConfigSettingsSource(Settings, home.settings_file)
        )
    except (OSError, ValueError) as error:
        raise PreconditionError(
            f"{home.settings_file} cannot be read: {error}",
            reason="SETTINGS_UNREADABLE",
            fix="mend the file, then run `muniment config show --origin`",
        ) from error
    if _KEY_FOLDER in file:
        raise PreconditionError(
            "is not taken from a file of the home: who can write there could bring a key of theirs",
            reason="SETTING_NOT_IN_FILE",
            field=_KEY_FOLDER,
            fix=f"set {ENVIRONMENT_PREFIX}{_KEY_FOLDER.upper()} where you run `muniment up`",
        )
    try:
        return Settings.model_validate({**file, **environment}), origins
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        origin = origins.get(str(first["loc"][0]), DEFAULT_ORIGIN)
        where = (
            f"{ENVIRONMENT_PREFIX}{first['loc'][0]}".upper()
            if origin == ENVIRONMENT_ORIGIN
            else origin
        )
        what = "no such setting" if first["type"] == "extra_forbidden" else first["msg"]
        raise PreconditionError(
            f"{what} (from {where})",
            reason="SETTING_INVALID",
            field=name,
            fix=f"the settings are {', '.join(sorted(Settings.model_fields))}"
            if first["type"] == "extra_forbidden"
            else "correct it, or take it out",
        ) from error


def _from_predecessors(origins: dict[str, str]) -> dict[str, str]:
    """What their variables set, where ours do not."""
    values = {}
    for variable, name in PREDECESSOR_VARIABLES.items():
        if os.environ.get(variable) and name not in origins:
            values[name] = os.environ[variable]
            origins[name] = variable
    return values


def unknown_variables() -> list[str]:
    """Variables of the environment that look like ours and are not known, by name."""
    known = {ENVIRONMENT_PREFIX + name.upper() for name in Settings.model_fields}
    return sorted(
        name
        for name in os.environ
        if name.startswith(ENVIRONMENT_PREFIX) and name not in known | _OTHER_VARIABLES
    )


_OTHER_VARIABLES = frozenset(
    ENVIRONMENT_PREFIX + name
    for name in ("HOME", "FAULTS", "PROJECT_ROOT", "SESSION", "PROFILE", "NAMES")
)
