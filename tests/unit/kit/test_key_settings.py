"""Where the key is may not be said by who can write to the home."""

from __future__ import annotations

from pathlib import Path

import pytest

from muniment.kit.errors import PreconditionError
from muniment.kit.paths import Home
from muniment.kit.settings import load_settings


def test_the_home_does_not_name_the_folder_of_its_key(tmp_path: Path) -> None:
    (tmp_path / "muniment.toml").write_text('key_folder = "/tmp/keys"\n')
    with pytest.raises(PreconditionError) as refused:
        load_settings(Home(tmp_path))
    assert refused.value.reason == "SETTING_NOT_IN_FILE"
    assert refused.value.field == "key_folder"


def test_the_environment_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUNIMENT_KEY_FOLDER", "/tmp/keys")
    assert load_settings(Home(tmp_path)).key_folder == "/tmp/keys"
