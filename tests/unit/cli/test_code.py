"""What the commands on code refuse before they ask anybody."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.conftest import Runner


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["index", "--anew", "--status"], "--anew: give one of --anew, --status and --export"),
        (["index", "--status", "--export", "-"], "--anew: give one of"),
        (["map", "--budget", "0"], "--budget: must be at least 1"),
        (["map", "--budget", "many"], "--budget: must be a whole number"),
        (["symbol"], "Missing argument 'NAME'"),
        (["impact", "f", "--depth", "17"], "--depth: must be at most 16"),
        (["impact", "f", "--depth", "0"], "--depth: must be at least 1"),
        (["impact", "f", "g"], "too many arguments: g"),
        (["map", "--fokus", "src"], "No such option: --fokus"),
    ],
)
def test_wrong_usage_is_one_line(muniment: Runner, words: list[str], told: str) -> None:
    ran = muniment(*words)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["symbol", "f\udcff"], "name"),
        (["impact", "\udcff"], "name"),
        (["map", "--focus", "src", "--focus", "b\udcff"], "--focus"),
    ],
)
def test_what_is_not_utf8_is_refused(muniment: Runner, words: list[str], field: str) -> None:
    ran = muniment(*words, "--json")
    assert (ran.code, ran.error["reason"]) == (1, "CONTENT_NOT_UTF8")
    assert ran.error["field"] == field


def test_a_file_that_cannot_be_written_is_told_before_anything_is_asked(
    muniment: Runner, tmp_path: Path
) -> None:
    ran = muniment("index", "--export", str(tmp_path), "--json")
    assert (ran.code, ran.error["reason"]) == (1, "FILE_UNUSABLE")
