"""The slots service with a real llama-server: snapshots bring a conversation back."""

from __future__ import annotations

from pathlib import Path

import pytest

from muniment.v1 import slots_pb2
from tests.support.llama.models import SLIDING, TINY
from tests.support.llama.process import StartLlama
from tests.support.llama.turns import Conversation, lines
from tests.support.slots_desk import Desk
from tests.support.slots_process import SlotsHome, file_of
from tests.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

# A line more, what was generated after the last one, and the token that is always evaluated.
TAIL_TOKENS = 40


def standings(server: slots_pb2.Server) -> dict[str, str]:
    return {
        slots_pb2.CapabilityKind.Name(one.kind).removeprefix("CAPABILITY_KIND_"): (
            slots_pb2.Standing.Name(one.standing).removeprefix("STANDING_")
        )
        for one in server.capabilities
    }


async def test_a_turn_is_warm_after_the_server_was_killed(desk: Desk) -> None:
    server = desk.serve()
    talk = Conversation(server)
    cold, warm = talk.send(), talk.go_on()
    saved = (await desk.caller.save()).snapshot
    server.restart()
    restored = await desk.caller.restore(saved.file_path)
    after = talk.go_on()
    assert cold.reused_tokens == 0
    assert warm.evaluated_tokens <= TAIL_TOKENS
    assert saved.tokens >= warm.prompt_tokens
    assert restored.restored_tokens == saved.tokens
    assert after.reused_tokens >= cold.prompt_tokens > 10 * TAIL_TOKENS
    assert after.evaluated_tokens <= TAIL_TOKENS


async def test_without_a_restore_the_same_turn_is_cold(desk: Desk) -> None:
    server = desk.serve()
    talk = Conversation(server)
    talk.send()
    server.restart()
    assert talk.go_on().reused_tokens == 0


async def test_a_sealed_home_keeps_snapshots_sealed_and_restores_them(
    start_llama: StartLlama, slots_home: SlotsHome
) -> None:
    slots_home.seal()
    server = start_llama()
    talk = Conversation(server)
    async with slots_home.serving(server) as caller:
        cold = talk.send()
        saved = (await caller.save()).snapshot
        ids = b"".join(one.to_bytes(4, "little") for one in server.tokens(lines(3, 4))[2:40])
        kept = file_of(saved).read_bytes()
        assert saved.is_sealed
        assert ids not in kept
        assert not any(server.save_folder.iterdir())
        server.restart()
        await caller.restore(saved.file_path)
        assert talk.go_on().reused_tokens >= cold.prompt_tokens
        assert not any(server.save_folder.iterdir())


async def test_slots_tell_what_they_hold(desk: Desk) -> None:
    server = desk.serve()
    talk = Conversation(server)
    before = await desk.caller.slots()
    talk.send()
    used = await desk.caller.slots()
    saved = (await desk.caller.save()).snapshot
    held = await desk.caller.slots()
    server.restart()
    restarted = await desk.caller.slots()
    await desk.caller.restore(saved.file_path)
    restored = await desk.caller.slots()
    basis = [states[0].content.basis for states in (before, used, held, restarted, restored)]
    assert basis == [
        slots_pb2.CONTENT_BASIS_NOT_KNOWN,
        slots_pb2.CONTENT_BASIS_NOT_KNOWN,
        slots_pb2.CONTENT_BASIS_CONFIRMED,
        slots_pb2.CONTENT_BASIS_NOT_KNOWN,
        slots_pb2.CONTENT_BASIS_PREDICTED,
    ]
    assert not before[0].HasField("prompt_tokens")
    assert [one.context_tokens for one in before] == [2048, 2048]
    assert held[0].content.snapshot_id == restored[0].content.snapshot_id == saved.snapshot_id
    assert held[0].content.chain_head == saved.chain_head
    own = desk.caller.context.session_id
    assert [one.session_id == own for one in held] == [True, False]


async def test_what_the_server_can_do_is_seen(desk: Desk) -> None:
    desk.serve(TINY, "--metrics", "--cache-ram", "0")
    found = standings(await desk.caller.probe())
    assert found == dict.fromkeys(
        (
            "SLOTS",
            "TOKENIZE",
            "TEMPLATE",
            "METRICS",
            "SAVE",
            "RESTORE",
            "PREFIX_REUSE",
            "RESTORE_REUSE",
        ),
        "YES",
    )


async def test_a_sliding_window_with_checkpoints_brings_nearly_everything(desk: Desk) -> None:
    server = desk.serve(SLIDING, "--cache-ram", "0")
    talk = Conversation(server)
    probed = await desk.caller.probe()
    assert standings(probed)["RESTORE_REUSE"] == "YES"
    talk.send()
    saved = (await desk.caller.save()).snapshot
    server.restart()
    await desk.caller.restore(saved.file_path)
    after = talk.go_on()
    assert after.reused_tokens > after.evaluated_tokens
    worth = probed.restore_worth[-1]
    assert worth.source == slots_pb2.WORTH_SOURCE_PROBE
    assert 0 < worth.reused_tokens < worth.prompt_tokens


async def test_a_sliding_window_without_checkpoints_brings_nothing(
    desk: Desk,
) -> None:
    server = desk.serve(SLIDING, "--ctx-checkpoints", "0", "--cache-ram", "0")
    talk = Conversation(server)
    probed = await desk.caller.probe()
    assert standings(probed)["RESTORE_REUSE"] == "NO"
    reuse = [
        one for one in probed.capabilities if one.kind == slots_pb2.CAPABILITY_KIND_RESTORE_REUSE
    ]
    assert "--ctx-checkpoints" in reuse[0].fix
    assert probed.restore_worth[-1].reused_tokens == 0
    talk.send()
    answer = await desk.caller.save()
    assert any("evaluated again" in note for note in answer.notes)
    server.restart()
    restored = await desk.caller.restore(answer.snapshot.file_path)
    # It was started anew since, and may have been given other flags.
    assert any("before that 0 of" in note for note in restored.notes)
    assert talk.go_on().reused_tokens == 0


async def worth_of(desk: Desk) -> slots_pb2.RestoreWorth:
    """What the one restore of the session's one snapshot turned out to be worth."""

    async def told() -> list[slots_pb2.RestoreWorth]:
        (snapshot,) = await desk.caller.snapshots()
        return list(snapshot.restore_worth)

    (worth,) = await eventually(told, "the restore's worth is known")
    return worth


async def test_what_a_restore_was_worth_is_seen_at_the_next_request(desk: Desk) -> None:
    server = desk.serve(slot_tokens=4096)
    talk = Conversation(server, first_lines=120)
    talk.send()
    saved = (await desk.caller.save()).snapshot
    server.restart()
    await desk.caller.restore(saved.file_path)
    turn = talk.go_on()
    worth = await worth_of(desk)
    assert worth.source == slots_pb2.WORTH_SOURCE_NEXT_REQUEST
    assert worth.restored_tokens == saved.tokens
    assert (worth.prompt_tokens, worth.reused_tokens) == (turn.prompt_tokens, turn.reused_tokens)


async def test_worth_of_a_restore_before_a_prompt_of_many_batches(desk: Desk) -> None:
    server = desk.serve(slot_tokens=8192)
    talk = Conversation(server)
    talk.send()
    saved = (await desk.caller.save()).snapshot
    server.restart()
    await desk.caller.restore(saved.file_path)
    talk.prompt += lines(60, 260)
    turn = talk.send()
    worth = await worth_of(desk)
    assert (worth.prompt_tokens, worth.reused_tokens) == (turn.prompt_tokens, turn.reused_tokens)


async def test_a_server_on_a_socket_with_a_key(
    start_llama: StartLlama, slots_home: SlotsHome, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    key.write_text("hush\n")
    server = start_llama(TINY, "--api-key-file", str(key), over_socket=True)
    async with slots_home.serving(server, llama_key_file=str(key)) as caller:
        found = await caller.server()
        assert found.condition == slots_pb2.SERVER_CONDITION_READY, found
        assert found.url == server.url
        assert (await caller.count(["one two three"])).exact
