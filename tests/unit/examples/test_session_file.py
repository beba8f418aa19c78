"""The first session's script: well-formed, true to its repository, and no question a give-away."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from examples.first_session.script import (
    Commit,
    Impact,
    Kill,
    Narrate,
    NewSession,
    Pin,
    Recall,
    ScriptError,
    Step,
    parse,
    read,
)

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "first_session"
REPOSITORY = FOLDER / "repository"

STEPS = read(FOLDER / "session.jsonl")
COMMITS = [step for step in STEPS if isinstance(step, Commit)]
RECALLS = [step for step in STEPS if isinstance(step, Recall)]
DIFFS = [step for step in COMMITS if step.tool_name == "git_diff"]

# Paths as tool output shows them; what does not start in one of these folders is not the
# repository's.
SHOWN_PATH = re.compile(r"(?<![\w/.~])(?:[ab]/)?((?:chandler|config|web)/[\w./-]*\w\.\w+)")
CJK = re.compile(r"[\u4e00-\u9fff]")

COMMIT = {"step": 1, "do": "commit", "role": "user", "content": "Hello"}


def lines_of(*entries: dict[str, object]) -> list[str]:
    return [json.dumps(entry) for entry in entries]


def words(text: str) -> set[str]:
    """Words as a reader splits them, identifiers taken apart; CJK in pairs."""
    spread = re.sub(r"([a-z])([A-Z])", r"\1 \2", text).replace("_", " ").lower()
    pairs = (a + b for a, b in pairwise(text) if CJK.match(a) and CJK.match(b))
    return {*re.findall(r"[a-z0-9]{3,}", spread), *pairs}


def planted(question: Recall) -> list[str]:
    """What was said or pinned before the question, and holds its answer."""
    return [
        step.content
        for step in STEPS[: question.step]
        if isinstance(step, Commit | Pin) and question.expect in step.content
    ]


def name_of(step: Step) -> str:
    return f"step {step.step}"


def test_it_is_a_session_of_about_forty_turns() -> None:
    assert 38 <= len(COMMITS) <= 46
    assert {step.role for step in COMMITS} == {"user", "assistant", "tool", "system"}
    assert {"git_diff", "pytest", "grep", "read_file", "http_get", "bash"} <= {
        step.tool_name for step in COMMITS
    }
    assert any(CJK.search(step.content) for step in COMMITS)
    assert any(isinstance(step, Pin) and step.kind == "safety_constraint" for step in STEPS)
    assert any(isinstance(step, Narrate) for step in STEPS)


def test_memory_is_killed_in_the_middle_and_the_next_step_is_a_call() -> None:
    [kill] = [step for step in STEPS if isinstance(step, Kill)]
    before = sum(step.step < kill.step for step in COMMITS)
    assert 18 <= before <= 26
    assert isinstance(STEPS[kill.step], Commit)


def test_a_second_session_asks_for_what_the_first_one_knew() -> None:
    [new] = [step for step in STEPS if isinstance(step, NewSession)]
    asked = [step for step in RECALLS if step.step > new.step]
    assert len(asked) >= 5
    said_before = [step.content for step in COMMITS if step.step < new.step]
    assert all(any(step.expect in content for content in said_before) for step in asked)


def test_the_corrected_value_is_asked_for_on_both_sides_of_the_new_session() -> None:
    [correction] = [step for step in COMMITS if step.corrects is not None]
    [new] = [step for step in STEPS if isinstance(step, NewSession)]
    corrected = next(step for step in COMMITS if step.step == correction.corrects)
    asked = [
        step
        for step in RECALLS
        if step.step > correction.step
        and step.expect in correction.content
        and step.expect not in corrected.content
    ]
    assert {step.step > new.step for step in asked} == {True, False}


@pytest.mark.parametrize("question", RECALLS, ids=name_of)
def test_a_question_has_an_answer_and_does_not_quote_it(question: Recall) -> None:
    answers = planted(question)
    assert answers
    assert question.expect not in question.query
    assert all(question.query not in answer and answer not in question.query for answer in answers)
    assert not any(" ".join(run) in answer for run in runs_of_six(question) for answer in answers)


@pytest.mark.parametrize("question", RECALLS, ids=name_of)
def test_a_question_shares_words_with_its_answer(question: Recall) -> None:
    asked = words(question.query)
    assert max(len(asked & words(answer)) for answer in planted(question)) >= 2


@pytest.mark.parametrize("question", RECALLS, ids=name_of)
def test_no_earlier_turn_is_the_question(question: Recall) -> None:
    said = [step.content for step in COMMITS if step.step < question.step]
    assert not any(question.query in content for content in said)


def runs_of_six(question: Recall) -> list[list[str]]:
    asked = question.query.split()
    return [asked[start : start + 6] for start in range(len(asked) - 5)]


def test_every_path_that_a_tool_shows_exists() -> None:
    shown = {
        path for step in COMMITS if step.role == "tool" for path in SHOWN_PATH.findall(step.content)
    }
    assert len(shown) >= 8
    assert [path for path in sorted(shown) if not (REPOSITORY / path).is_file()] == []


def test_every_file_that_is_read_is_shown_as_it_is() -> None:
    reads = [step for step in COMMITS if step.tool_name == "read_file"]
    assert reads
    for step in reads:
        path, _, numbered = step.content.partition("\n")
        text = "\n".join(line[5:] for line in numbered.split("\n"))
        assert text + "\n" == (REPOSITORY / path).read_text(), step.step


def test_what_a_change_has_to_reach_names_the_symbol() -> None:
    [asked] = [step for step in STEPS if isinstance(step, Impact)]
    assert len(asked.expect) >= 3
    for path in asked.expect:
        assert asked.symbol in (REPOSITORY / path).read_text()


@pytest.mark.skipif(shutil.which("git") is None, reason="git applies the diffs")
def test_the_diffs_apply_to_the_repository_one_after_the_other(tmp_path: Path) -> None:
    work = tmp_path / "chandler"
    shutil.copytree(REPOSITORY, work, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(["git", "init", "--quiet"], cwd=work, check=True)
    for step in DIFFS:
        applied = subprocess.run(
            ["git", "apply", "-"],
            cwd=work,
            input=step.content + "\n",
            text=True,
            capture_output=True,
            check=False,
        )
        assert applied.returncode == 0, f"step {step.step}: {applied.stderr}"
    assert "unitPriceCents" in (work / "web" / "src" / "stockClient.ts").read_text()


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (["{"], "line 1: not JSON"),
        (["[]"], "line 1: not an object"),
        (lines_of({**COMMIT, "step": 2}), "line 1: step"),
        (lines_of({"step": 1, "do": "dance"}), "line 1: do"),
        (lines_of({"step": 1, "do": ["commit"]}), "line 1: do"),
        (lines_of({"step": 1, "do": "narrate"}), "line 1: narrate: lacks text"),
        (lines_of({**COMMIT, "slot": 1}), "line 1: commit: does not take slot"),
        (lines_of({**COMMIT, "content": " "}), "line 1: content"),
        (lines_of({**COMMIT, "role": "robot"}), "line 1: role"),
        (lines_of({**COMMIT, "role": "tool"}), "line 1: tool_name"),
        (lines_of({**COMMIT, "tool_name": "grep"}), "line 1: tool_name"),
        (lines_of({**COMMIT, "corrects": "1"}), "line 1: corrects"),
        (lines_of({**COMMIT, "corrects": 1}), "line 1: corrects: 1 is no earlier turn"),
        (
            lines_of(
                COMMIT, {"step": 2, "do": "new_session"}, {**COMMIT, "step": 3, "corrects": 1}
            ),
            "line 3: corrects: 1 is no earlier turn of this session",
        ),
        (lines_of({"step": 1, "do": "pin", "content": "x", "kind": "wish"}), "line 1: kind"),
        (
            lines_of({"step": 1, "do": "impact", "symbol": "f", "expect": "a.py", "why": "w"}),
            "line 1: expect",
        ),
    ],
)
def test_a_malformed_line_is_named(lines: list[str], complaint: str) -> None:
    with pytest.raises(ScriptError, match=re.escape(complaint)):
        parse(lines)


def test_a_missing_file_is_a_script_error(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match="cannot read the session file"):
        read(tmp_path / "session.jsonl")
