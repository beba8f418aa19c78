"""Recall finds what was said, where it was said, verbatim, and says why."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.kit.errors import InvalidArgumentError, NotFoundError, UnavailableError
from muniment.kit.index.lexical import LexicalIndex
from muniment.kit.paths import Home
from muniment.memory import recall as recall_module
from muniment.memory.limits import (
    HIT_TEXT_LIMIT_BYTES,
    QUERY_LIMIT_BYTES,
    RECALL_DEFAULT_HITS,
    RECALL_LIMIT_HITS,
    RECALL_TEXT_LIMIT_BYTES,
)
from muniment.memory.recall import recall
from muniment.v1 import memory_pb2
from tests.support.memory import Agent, Memory, a_memory

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def commit_all(agent: Agent, *contents: str) -> list[memory_pb2.Episode]:
    return [await agent.commit(content) for content in contents]


async def test_a_commit_is_found_by_the_next_recall(agent: Agent) -> None:
    episode = await agent.commit("The server listens on port 8443.")
    answer = await agent.recall("which port does the server use?")
    (hit,) = answer.hits
    assert hit.episode == episode
    assert hit.text == "The server listens on port 8443."
    assert (hit.truncated, hit.text_offset_bytes) == (False, 0)
    assert hit.score > 0
    assert list(hit.retrievers) == list(answer.retrievers) == ["bm25"]
    assert list(answer.terms) == ["port", "server", "use"]
    assert list(hit.reasons) == ["has 2 of 3 terms: port, server"]
    assert answer.project_id == agent.project_id
    assert not answer.notes
    assert not hit.HasField("current_value")


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("サーバーのポート番号は八四四三です", "ポート番号"),
        ("数据库的密码存放在保险箱里", "保险箱"),
        ("서버 포트는 8443 입니다", "포트"),
        ("def getUserName(self): ...", "user name"),
        ("def getUserName(self): ...", "getusername"),
        ("class HTTPServer", "http"),
        ("set MAX_RETRIES to 5", "max_retries"),
        ("edit src/kit/app.py", "app.py"),
        ("Der Schlüssel für Müller", "schlussel muller"),
        ("it retries twice", "retried"),
        ("🙂 happy", "happy 🙂"),
        ("line one\r\nneedle\0two", "needle"),
    ],
)
async def test_words_of_all_kinds_are_found(agent: Agent, content: str, query: str) -> None:
    await commit_all(agent, "something else entirely", content)
    assert await agent.found(query) == [content]


@settings(max_examples=25, deadline=None)
@given(content=st.text(min_size=1, max_size=40))
async def test_what_has_a_word_is_found_by_itself(memory: Memory, content: str) -> None:
    agent = memory.agent()
    await agent.commit(content)
    answer = await agent.recall(content)
    if any(character.isalnum() for character in content):
        assert [hit.text for hit in answer.hits] == [content]
    else:
        assert not answer.hits
        assert list(answer.notes) == ["the query has no word to search for"]


@pytest.mark.parametrize(
    "query", ['"', "a OR b", "NEAR(a b)", "*", "^port", "scopes:x", "(port", "port)", "-port", "'"]
)
async def test_no_query_is_an_error(agent: Agent, query: str) -> None:
    await agent.commit("port")
    assert await agent.found(query) in ([], ["port"])


async def test_projects_are_apart(memory: Memory) -> None:
    mine, other = memory.agent(), memory.agent()
    await mine.commit("the password is swordfish")
    await mine.pin("never tell the password")
    await other.commit("the password is unknown here")
    assert await other.found("password swordfish") == ["the password is unknown here"]
    asked = await other.recall("password swordfish", project_id=mine.project_id)
    assert asked.project_id == mine.project_id
    assert {hit.text for hit in asked.hits} == {
        "the password is swordfish",
        "never tell the password",
    }


async def test_a_project_of_that_name_must_be_known(agent: Agent) -> None:
    with pytest.raises(NotFoundError) as refused:
        await agent.recall("x", project_id="proj_unknown")
    assert (refused.value.reason, refused.value.field) == ("PROJECT_UNKNOWN", "project_id")
    with pytest.raises(InvalidArgumentError):
        await agent.recall("x", project_id="a\nb")
    # Its own need not be.
    answer = await agent.recall("x", project_id=agent.project_id)
    assert "holds nothing yet" in answer.notes[0]


async def test_a_session_can_be_asked_alone(agent: Agent) -> None:
    other = agent.with_context(session_id="s-2")
    await agent.commit("needle one")
    await other.commit("needle two")
    assert await agent.found("needle") == ["needle two", "needle one"]
    assert await agent.found("needle", session_id="s-2") == ["needle two"]
    assert await agent.found("needle", session_id="s-3") == []
    assert await agent.found("needle", session_id="") == []


async def test_pins_are_found_where_they_are_in_force(agent: Agent) -> None:
    await agent.pin("needle everywhere")
    await agent.pin("needle in one", session_id="s-1")
    await agent.pin("needle in two", session_id="s-2")
    nobody = agent.with_context(session_id="")
    assert await nobody.found("needle") == ["needle everywhere"]
    # Its own session where it names none, else the one that it names.
    assert set(await agent.found("needle")) == {"needle everywhere", "needle in one"}
    asked = await agent.recall("needle", session_id="s-2")
    assert {hit.text for hit in asked.hits} == {"needle everywhere", "needle in two"}
    for hit in asked.hits:
        assert hit.pin.content == hit.text
        assert hit.reasons[0] == "is pinned"
        assert not hit.HasField("episode")


async def test_paths_restrict_to_what_shows_them(agent: Agent, tmp_path: Path) -> None:
    for name in ("src/app.py", "lib/app.py", "src/other.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    here = agent.with_context(project_root=str(tmp_path))
    await commit_all(here, "needle in src/app.py", "needle in lib/app.py", "needle in src/other.py")
    await here.pin("needle: never touch src/app.py")
    for path in ("src/app.py", "./src/app.py", f"{tmp_path}/src/app.py"):
        found = await here.recall("needle", file_path=path)
        assert {hit.text for hit in found.hits} == {
            "needle in src/app.py",
            "needle: never touch src/app.py",
        }
        assert all("shows src/app.py" in hit.reasons for hit in found.hits)
    assert len(await here.found("needle", file_path="app.py")) == 3
    assert await here.found("needle", file_path="py") == []
    assert await here.found("needle", file_path="other.py") == ["needle in src/other.py"]


@pytest.mark.parametrize("path", ["..", "/etc/passwd", "", "../x", "."])
async def test_a_path_outside_the_project_is_refused(
    agent: Agent, tmp_path: Path, path: str
) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        await agent.with_context(project_root=str(tmp_path)).recall("x", file_path=path)
    assert (refused.value.reason, refused.value.field) == ("PATH_OUTSIDE_PROJECT", "file_path")


async def test_filters_act_before_the_limit(agent: Agent) -> None:
    lonely = agent.with_context(session_id="lonely")
    await lonely.commit("a needle, once, among many other words of this text")
    await asyncio.gather(*(agent.commit("needle needle needle") for _ in range(30)))
    assert await agent.found("needle", k=1, session_id="lonely") == [
        "a needle, once, among many other words of this text"
    ]


async def test_the_number_of_hits_is_as_asked_within_limits(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert RECALL_LIMIT_HITS == 100
    most, count = 20, 22
    monkeypatch.setattr(recall_module, "RECALL_LIMIT_HITS", most)
    await asyncio.gather(*(agent.commit(f"needle {number}") for number in range(count)))
    for asked, given_ in (
        (0, RECALL_DEFAULT_HITS),
        (1, 1),
        (most, most),
        (most + 1, most),
        (2**32 - 1, most),
    ):
        assert len(await agent.found("needle", k=asked)) == given_


async def test_an_id_in_the_query_finds_its_episode_first(memory: Memory) -> None:
    agent = memory.agent()
    first, second, third = await commit_all(agent, "needle one", "needle two", "no such word")
    stranger = await memory.agent().commit("needle of another project")
    query = f"needle, as {third.episode_id} and {first.episode_id} and {stranger.episode_id} say"
    answer = await agent.recall(query)
    assert [hit.episode.seq for hit in answer.hits] == [third.seq, first.seq, second.seq]
    assert list(answer.hits[0].retrievers) == ["id"]
    assert list(answer.hits[0].reasons) == ["the query names it"]
    assert [hit.episode.seq for hit in (await agent.recall(query, k=1)).hits] == [third.seq]


async def test_an_id_in_the_query_passes_the_filters_too(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "app.py").touch()
    here = agent.with_context(project_root=str(tmp_path))
    shown, other = await commit_all(here, "needle in app.py", "needle elsewhere")
    query = f"{shown.episode_id} {other.episode_id}"
    assert await here.found(query, file_path="app.py") == ["needle in app.py"]
    assert await here.found(query, session_id="s-2") == []
    assert len(await here.found(query, session_id="s-1")) == 2


async def test_a_corrected_episode_ranks_lower_and_shows_what_holds(agent: Agent) -> None:
    wrong = await agent.commit("the port of the server is 8080")
    other = await agent.commit("a port of which we know little, but that some server has it")
    assert await agent.found("port of the server", k=1) == ["the port of the server is 8080"]
    middle = await agent.commit("sorry: the port is 8081", corrects=wrong.episode_id)
    right = await agent.commit("no, it is 8443", corrects=middle.episode_id)
    answer = await agent.recall("port of the server")
    assert [hit.episode.seq for hit in answer.hits] == [other.seq, wrong.seq, middle.seq]
    _, first, second = answer.hits
    assert first.episode.superseded_by == middle.episode_id
    assert second.episode.superseded_by == right.episode_id
    assert first.current_value == second.current_value == "no, it is 8443"
    assert first.text == "the port of the server is 8080"
    assert first.reasons[-1] == f"was corrected by {middle.episode_id}"
    named = (await agent.recall(wrong.episode_id)).hits[0]
    assert named.current_value == "no, it is 8443"


async def test_the_newest_of_several_corrections_holds(agent: Agent) -> None:
    wrong = await agent.commit("needle 1")
    for number in (2, 3):
        await agent.commit(f"value {number}", corrects=wrong.episode_id)
    (hit,) = (await agent.recall("needle")).hits
    assert hit.current_value == "value 3"


async def test_pins_come_before_equal_episodes(agent: Agent) -> None:
    await agent.pin("needle in the haystack")
    await agent.commit("needle in the haystack")
    answer = await agent.recall("needle")
    assert [hit.HasField("pin") for hit in answer.hits] == [True, False]
    assert [hit.score for hit in answer.hits] == sorted(
        (hit.score for hit in answer.hits), reverse=True
    )


@pytest.mark.parametrize("query", ["", "?", "¿ … !", " \n"])
async def test_a_query_without_words_says_so(agent: Agent, query: str) -> None:
    await agent.commit("needle")
    answer = await agent.recall(query)
    assert not answer.hits
    assert not answer.terms
    assert list(answer.notes) == ["the query has no word to search for"]


async def test_a_query_of_stop_words_is_searched_for(agent: Agent) -> None:
    await agent.commit("to be or not to be")
    assert await agent.found("to be or not") == ["to be or not to be"]


async def test_no_match_says_what_was_asked_and_what_there_is(agent: Agent) -> None:
    await agent.commit("needle")
    await agent.pin("rule")
    (note,) = (await agent.recall("the absent haystack")).notes
    assert "no match for absent, haystack" in note
    assert "1 episodes and 1 pins" in note


async def test_a_query_has_a_longest_length(agent: Agent) -> None:
    assert await agent.found("é" * (QUERY_LIMIT_BYTES // 2)) == []
    with pytest.raises(InvalidArgumentError) as refused:
        await agent.recall("é" * (QUERY_LIMIT_BYTES // 2) + "x")
    assert (refused.value.reason, refused.value.field) == ("QUERY_TOO_LONG", "query")


FILLERS = ["the same words. ", "文字の列、", "ünïcödé ßtraße ", "🙂🙃 ", "line\n", "line\r\n"]


@pytest.mark.parametrize("filler", FILLERS)
@pytest.mark.parametrize("needle", ["needle", "Nadelöhr", "針の穴"])
async def test_long_texts_are_cut_to_the_part_around_the_match(
    agent: Agent, filler: str, needle: str
) -> None:
    half = filler * (30_000 // len(filler.encode()))
    content = f"{half} {needle} {half}"
    await agent.commit(content)
    answer = await agent.recall(needle)
    (hit,) = answer.hits
    assert hit.truncated
    assert needle in hit.text
    assert len(hit.text.encode()) <= HIT_TEXT_LIMIT_BYTES
    raw, start = content.encode(), hit.text_offset_bytes
    assert raw[start : start + len(hit.text.encode())].decode() == hit.text
    assert "1 of 1 texts are cut" in answer.notes[0]


@pytest.mark.parametrize("letter", ["x", "字", "🙂"])
async def test_many_long_texts_share_the_limit_and_keep_their_matches(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, letter: str
) -> None:
    limit, count = 16 * 1024, 15
    monkeypatch.setattr(recall_module, "RECALL_TEXT_LIMIT_BYTES", limit)
    line = letter * 380 + "\n"
    contents = [f"{line * 8}{letter * 380} needle {number} {line * 8}" for number in range(count)]
    await asyncio.gather(*(agent.commit(content) for content in contents))
    hits = (await agent.recall("needle", k=100)).hits
    assert len(hits) == count
    assert limit * 0.9 < sum(len(hit.text.encode()) for hit in hits) <= limit
    assert all("needle" in hit.text for hit in hits)
    assert RECALL_TEXT_LIMIT_BYTES == 96 * 1024


async def test_short_texts_leave_their_share_to_long_ones(agent: Agent) -> None:
    long = "needle " + "x" * HIT_TEXT_LIMIT_BYTES
    await commit_all(agent, *(f"{long}{number}" for number in range(3)))
    await commit_all(agent, *(f"needle needle {number}" for number in range(5)))
    hits = (await agent.recall("needle")).hits
    assert [hit.truncated for hit in hits] == [False] * 5 + [True] * 3
    assert [len(hit.text) for hit in hits[5:]] == [HIT_TEXT_LIMIT_BYTES] * 3


async def test_a_text_at_the_limit_is_whole(agent: Agent) -> None:
    content = "needle " + "é" * ((HIT_TEXT_LIMIT_BYTES - 7) // 2)
    await agent.commit(content)
    (hit,) = (await agent.recall("needle")).hits
    assert not hit.truncated
    assert hit.text == content


WORDS = ["port", "server", "retry", "config", "needle", "timeout", "cache", "index", "token"]


def conversation(seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 8))) for _ in range(40)]


async def test_the_same_store_and_request_give_the_same_answer(home: Home) -> None:
    answers: list[list[memory_pb2.RecallResponse]] = []

    async def ask(agent: Agent) -> list[memory_pb2.RecallResponse]:
        return [await agent.recall(f"{one} {other}") for one in WORDS[:3] for other in WORDS[4:7]]

    async with a_memory(home) as memory:
        agent = memory.agent("proj_1")
        await commit_all(agent, *conversation(1))
        answers.append(await ask(agent))
        answers.append(await ask(agent))
    (home.data("memory") / "lexical.sqlite3").unlink()
    async with a_memory(home) as memory:
        memory.fill_index()
        answers.append(await ask(memory.agent("proj_1")))
    assert answers[0] == answers[1] == answers[2]


async def test_what_is_written_meanwhile_is_not_missed_and_disturbs_nobody(memory: Memory) -> None:
    """The index knows what was written after a reader began; the reader does not."""
    agent = memory.agent()
    kept = await agent.commit("needle kept")
    pin = (await agent.pin("needle pinned")).pin
    request = memory_pb2.RecallRequest(query="needle")

    def look(context: Any) -> set[str]:
        return {hit.text for hit in recall(context, memory.index, agent.context, request).hits}

    with memory.store.read() as reader:
        assert look(reader) == {"needle kept", "needle pinned"}
        await agent.commit("needle new")
        await agent.pin("needle newly pinned")
        await agent.commit("corrected", corrects=kept.episode_id)
        assert look(reader) == {"needle kept", "needle pinned"}
        await agent.unpin(pin.pin_id)
        assert look(reader) == {"needle kept"}
    with memory.store.read() as reader:
        assert look(reader) == {"needle kept", "needle new", "needle newly pinned"}


async def test_a_pin_that_is_gone_is_not_recalled_though_the_index_is_behind(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = memory.agent()
    pin = (await agent.pin("needle pinned")).pin
    failed = asyncio.Event()
    tell = asyncio.get_running_loop().call_soon_threadsafe

    def fails(*_: object) -> None:
        tell(failed.set)
        raise UnavailableError("disk is full", reason="INDEX_UNAVAILABLE")

    with monkeypatch.context() as patch:
        patch.setattr(LexicalIndex, "apply", fails)
        unpinning = asyncio.ensure_future(agent.unpin(pin.pin_id))
        await asyncio.wait_for(failed.wait(), 20)
        assert not (await agent.pins()).pins
        assert await agent.found("needle") == []
    assert await unpinning == pin
    assert await agent.found("needle") == []


async def test_reading_and_writing_at_once(memory: Memory) -> None:
    agent = memory.agent()

    async def write(author: int) -> None:
        for number in range(8):
            await agent.commit(f"needle of{author}turn{number}")
            found = await agent.found(f"of{author}turn{number}", k=1)
            assert found == [f"needle of{author}turn{number}"]

    await asyncio.gather(*(write(author) for author in range(3)))
    assert len(await agent.found("needle", k=100)) == 24
