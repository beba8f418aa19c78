"""Episodes are kept to the byte, in order, once, and corrected without being changed."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.kit.counting import TOKENIZER, estimate_tokens
from muniment.kit.errors import InvalidArgumentError, MunimentError, NotFoundError
from muniment.kit.limits import CHUNK_BYTES
from muniment.memory import service
from muniment.memory.limits import EPISODE_LIMIT_BYTES, LIST_PAGE_EPISODES, PATHS_LIMIT
from muniment.v1 import memory_pb2
from tests.support.memory import Agent, Memory

pytestmark = pytest.mark.asyncio(loop_scope="session")

awkward = st.sampled_from(
    ["\0", "\r", "\r\n", "\n", "\ufeff", "e\u0301", "é", "🙂", "👨\u200d👩", "\u202e", "a"]
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(
    content=st.lists(awkward, min_size=1, max_size=8).map("".join)
    | st.text(min_size=1, max_size=80)
)
async def test_content_is_kept_to_the_byte(memory: Memory, content: str) -> None:
    agent = memory.agent()
    committed = await agent.commit(content)
    raw = content.encode()
    assert committed.content_bytes == len(raw)
    assert committed.content_sha256 == hashlib.sha256(raw).digest()
    assert await agent.read(committed.episode_id) == (committed, raw)


async def test_an_episode_says_all_of_itself(agent: Agent) -> None:
    agent = agent.with_context(session_id="s-9", slot_id=3)
    content = "the tests pass"
    episode = await agent.commit(content, role=memory_pb2.ROLE_TOOL, tool_name="shell ünïcode")
    assert episode.episode_id.startswith("ep_")
    assert episode.project_id == agent.project_id
    assert (episode.session_id, episode.slot_id) == ("s-9", 3)
    assert (episode.role, episode.tool_name) == (memory_pb2.ROLE_TOOL, "shell ünïcode")
    assert episode.tokens.count_tokens == estimate_tokens(content)
    assert (episode.tokens.tokenizer, episode.tokens.exact) == (TOKENIZER, False)
    assert episode.created_at.ToNanoseconds() > 1_750_000_000_000_000_000
    assert not episode.HasField("corrects")
    assert not episode.HasField("superseded_by")


async def test_absent_is_not_empty(agent: Agent) -> None:
    assert not (await agent.commit("x")).HasField("tool_name")
    assert (await agent.commit("x", tool_name="")).HasField("tool_name")


@pytest.mark.parametrize("role", [one for one in memory_pb2.Role.values() if one])
async def test_every_role_is_taken(agent: Agent, role: memory_pb2.Role.ValueType) -> None:
    assert (await agent.commit("x", role=role)).role == role


async def refusal(agent: Agent, content: str, **fields: object) -> MunimentError:
    """The error of a commit, after which nothing more is recorded."""
    before = await agent.episodes()
    with pytest.raises((InvalidArgumentError, NotFoundError)) as refused:
        await agent.commit(content, **fields)  # type: ignore[arg-type]
    assert await agent.episodes() == before
    return refused.value


@pytest.mark.parametrize("role", [memory_pb2.ROLE_UNSPECIFIED, 77])
async def test_other_roles_are_refused(agent: Agent, role: memory_pb2.Role.ValueType) -> None:
    refused = await refusal(agent, "x", role=role)
    assert (refused.reason, refused.field) == ("ROLE_UNKNOWN", "role")


async def test_nothing_is_no_content(agent: Agent) -> None:
    refused = await refusal(agent, "")
    assert (refused.reason, refused.field) == ("CONTENT_EMPTY", "content")


@pytest.mark.parametrize("tool_name", ["x" * 201, "a\nb"])
async def test_a_tool_name_that_could_not_be_shown_is_refused(agent: Agent, tool_name: str) -> None:
    assert (await refusal(agent, "x", tool_name=tool_name)).field == "tool_name"


async def test_a_call_that_names_no_project_is_refused(agent: Agent) -> None:
    nowhere = agent.with_context(project_id="")
    for call in (
        nowhere.commit("x"),
        nowhere.read("ep"),
        nowhere.episodes(),
        nowhere.pin("x"),
        nowhere.unpin("x"),
        nowhere.pins(),
        nowhere.recall("x"),
        nowhere.stats(),
    ):
        with pytest.raises(InvalidArgumentError) as refused:
            await call
        assert (refused.value.reason, refused.value.field) == ("PROJECT_MISSING", "project_id")


@pytest.mark.parametrize("letter", ["x", "é", "中", "🙂"])
async def test_one_message_holds_a_mebibyte_to_the_byte(agent: Agent, letter: str) -> None:
    size = len(letter.encode())
    content = letter * (CHUNK_BYTES // size) + "x" * (CHUNK_BYTES % size)
    episode = await agent.commit(content)
    assert episode.content_bytes == CHUNK_BYTES
    assert (await agent.read(episode.episode_id))[1] == content.encode()
    refused = await refusal(agent, content + "x")
    assert (refused.reason, refused.field) == ("CONTENT_TOO_LONG", "content")
    assert "CommitLargeEpisode" in str(refused)


async def test_chunks_may_end_inside_a_character(agent: Agent) -> None:
    raw = "aé中🙂\0\r\n".encode()
    episode = await agent.commit_large(bytes([byte]) for byte in raw)
    assert (await agent.read(episode.episode_id))[1] == raw


async def test_the_longest_episode_is_kept_and_found(agent: Agent) -> None:
    end = b"\nthe needle stands at the very end"
    raw = b"\n" * (EPISODE_LIMIT_BYTES - len(end)) + end
    chunks = [raw[at : at + CHUNK_BYTES] for at in range(0, len(raw), CHUNK_BYTES)]
    episode = await agent.commit_large(chunks, role=memory_pb2.ROLE_TOOL, tool_name="log")
    assert episode.content_bytes == EPISODE_LIMIT_BYTES
    read, content = await agent.read(episode.episode_id)
    assert read == episode
    assert content == raw
    (hit,) = (await agent.recall("needle")).hits
    assert hit.truncated
    assert hit.text.encode().endswith(end)


async def test_a_longer_one_is_refused(agent: Agent) -> None:
    chunk = b"x" * CHUNK_BYTES
    with pytest.raises(InvalidArgumentError) as refused:
        await agent.commit_large([chunk] * (EPISODE_LIMIT_BYTES // CHUNK_BYTES) + [b"x"])
    assert (refused.value.reason, refused.value.field) == ("CONTENT_TOO_LONG", "content")
    assert str(EPISODE_LIMIT_BYTES) in refused.value.message
    assert await agent.episodes() == []


@pytest.mark.parametrize(
    ("chunks", "byte"),
    [
        ([b"ab\xff"], 2),
        (["é".encode()[:1]], 0),
        ([b"a", "🙂".encode()[:3]], 1),
        ([b"\xed\xa0\x80"], 0),
        ([b"\xc0\x80"], 0),
    ],
)
async def test_bytes_that_are_no_text_are_refused(
    agent: Agent, chunks: list[bytes], byte: int
) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        await agent.commit_large(chunks)
    assert (refused.value.reason, refused.value.field) == ("CONTENT_NOT_UTF8", "content")
    assert f"byte {byte}" in refused.value.message
    assert await agent.episodes() == []


async def test_a_stream_without_a_header_or_content_is_refused(agent: Agent) -> None:
    with pytest.raises(InvalidArgumentError, match="is empty"):
        await agent.commit_large([])
    with pytest.raises(InvalidArgumentError) as refused:
        await agent.commit_large([b"x"], role=memory_pb2.ROLE_UNSPECIFIED)
    assert refused.value.reason == "ROLE_UNKNOWN"


async def test_places_have_no_gaps_whoever_commits(memory: Memory) -> None:
    first = await memory.agent().commit("first")
    agents = [memory.agent() for _ in range(3)]
    with pytest.raises(NotFoundError):
        await agents[0].commit("never", corrects="ep_unknown")
    committed = await asyncio.gather(
        *(agent.commit(f"turn {number}") for number in range(5) for agent in agents)
    )
    seqs = sorted(episode.seq for episode in committed)
    assert seqs == list(range(first.seq + 1, first.seq + 16))
    by_seq = sorted(committed, key=lambda one: one.seq)
    assert [one.episode_id for one in by_seq] == sorted(one.episode_id for one in committed)


async def test_listings_are_in_order_and_scoped(memory: Memory) -> None:
    agent = memory.agent()
    one, two = agent, agent.with_context(session_id="s-2")
    committed = [await author.commit("x") for author in (one, two, one, two, two)]
    await memory.agent().commit("elsewhere")
    assert await agent.episodes() == committed
    assert await agent.episodes(session_id="s-2") == [committed[1], *committed[3:]]
    assert await agent.episodes(session_id="s-3") == []
    assert await agent.episodes(after_seq=committed[1].seq) == committed[2:]
    assert await agent.episodes(after_seq=committed[1].seq, limit=2) == committed[2:4]
    assert await agent.episodes(session_id="s-2", limit=1) == [committed[1]]
    assert await agent.episodes(session_id="s-2", after_seq=committed[1].seq) == committed[3:]
    assert await agent.episodes(after_seq=2**64 - 1) == []


async def test_a_session_without_a_name_is_one_too(agent: Agent) -> None:
    nameless = agent.with_context(session_id="")
    kept = await nameless.commit("x")
    await agent.commit("y")
    assert await agent.episodes(session_id="") == [kept]


async def test_listings_come_in_pages(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    assert LIST_PAGE_EPISODES == 500
    size, count = 10, 13
    monkeypatch.setattr(service, "LIST_PAGE_EPISODES", size)
    agent = memory.agent()
    committed = await asyncio.gather(*(agent.commit("x") for _ in range(count)))
    ids = [one.episode_id for one in sorted(committed, key=lambda one: one.seq)]
    for session in ({}, {"session_id": "s-1"}):
        pages = await agent.pages(**session)
        assert [len(page) for page in pages] == [size, 3]
        assert [one.episode_id for page in pages for one in page] == ids
    assert [len(page) for page in await agent.pages(limit=count - 1)] == [size, 2]


async def test_an_episode_is_read_in_its_project_only(memory: Memory) -> None:
    agent, stranger = memory.agent(), memory.agent()
    episode = await agent.commit("private")
    assert (await agent.with_context(session_id="t").read(episode.episode_id))[1] == b"private"
    for reader, name in ((stranger, episode.episode_id), (agent, "ep_unknown"), (agent, "")):
        with pytest.raises(NotFoundError) as refused:
            await reader.read(name)
        assert (refused.value.reason, refused.value.field) == ("EPISODE_UNKNOWN", "episode_id")


@pytest.mark.parametrize("name", ["x" * 50_000, "é\n" * 20_000, "\0" * 300])
async def test_names_of_any_length_are_merely_unknown(agent: Agent, name: str) -> None:
    for call in (agent.read(name), agent.commit("x", corrects=name), agent.unpin(name)):
        with pytest.raises(NotFoundError) as refused:
            await call
        assert len(str(refused.value)) < 500


async def test_a_correction_is_a_new_episode(agent: Agent) -> None:
    wrong = await agent.commit("the port is 8080")
    right = await agent.commit("the port is 8443", corrects=wrong.episode_id)
    assert right.corrects == wrong.episode_id
    read, content = await agent.read(wrong.episode_id)
    assert content == b"the port is 8080"
    assert read.superseded_by == right.episode_id
    wrong.superseded_by = right.episode_id
    assert read == wrong
    assert await agent.episodes() == [wrong, right]


async def test_only_an_episode_of_this_session_can_be_corrected(memory: Memory) -> None:
    agent = memory.agent()
    elsewhere = await memory.agent().commit("elsewhere")
    other_session = await agent.with_context(session_id="s-2").commit("other session")
    nameless = await agent.with_context(session_id="").commit("no session")
    for wrong in (elsewhere, other_session, nameless):
        refused = await refusal(agent, "x", corrects=wrong.episode_id)
        assert (refused.reason, refused.field) == ("CORRECTED_EPISODE_UNKNOWN", "corrects")
        assert "nothing was recorded" in refused.message
    for name in ("ep_unknown", "", "pin_1", "1"):
        assert (await refusal(agent, "x", corrects=name)).field == "corrects"
    assert not (await agent.read(nameless.episode_id))[0].HasField("superseded_by")
    # The refused ones have not taken a place.
    assert (await agent.commit("next")).seq == nameless.seq + 1


async def test_the_newest_correction_counts(agent: Agent) -> None:
    first = await agent.commit("the port is 1")
    await agent.commit("the port is 2", corrects=first.episode_id)
    third = await agent.commit("the port is 3", corrects=first.episode_id)
    assert (await agent.read(first.episode_id))[0].superseded_by == third.episode_id


@pytest.mark.parametrize("large", [False, True])
async def test_a_repeated_call_is_recorded_once(agent: Agent, large: bool) -> None:
    async def commit() -> memory_pb2.Episode:
        if large:
            return await agent.commit_large([b"he", b"llo"], key="call 1")
        return await agent.commit("hello", key="call 1")

    first = await commit()
    wrong = await agent.commit("after")
    assert [await commit() for _ in range(2)] == [first, first]
    assert await agent.episodes() == [first, wrong]


async def test_both_ways_of_committing_are_one_request(agent: Agent) -> None:
    first = await agent.commit("hello", key="call 2")
    assert await agent.commit_large([b"hello"], key="call 2") == first


async def test_paths_come_from_what_the_content_shows(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "app.py").write_text("")
    here = agent.with_context(project_root=str(tmp_path))
    text = f"see src/app.py and {tmp_path}/src/app.py, not src/gone.py\n--- a/old/name.c\n"
    assert list((await here.commit(text)).paths) == ["old/name.c", "src/app.py"]
    assert list((await agent.commit(text)).paths) == ["old/name.c"]


async def test_paths_are_limited(agent: Agent) -> None:
    text = "".join(f"--- a/file{number}\n" for number in range(PATHS_LIMIT + 5))
    assert len((await agent.commit(text)).paths) == PATHS_LIMIT
