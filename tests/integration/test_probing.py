"""A probe takes no slot that anybody may use, leaves no file, and is not repeated in vain."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from muniment.kit.errors import PreconditionError
from muniment.v1 import slots_pb2
from tests.support.homes import a_folder
from tests.support.llama.gateway import Gateway
from tests.support.llama.models import TINY
from tests.support.llama.process import LlamaServer, StartLlama
from tests.support.llama.turns import Conversation
from tests.support.probing import Probing, a_prober
from tests.support.refusals import refused
from tests.support.slots_process import SlotsHome
from tests.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

COMPLETION = "POST /completion"


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with Gateway() as gateway:
        yield gateway


@pytest.fixture
def server(start_llama: StartLlama, gateway: Gateway) -> LlamaServer:
    """A server with one slot, behind the gateway."""
    gateway.server = start_llama(slots=1)
    return gateway.server


@pytest_asyncio.fixture(loop_scope="module")
async def probing(gateway: Gateway, server: LlamaServer) -> AsyncIterator[Probing]:
    with a_folder() as folder:
        async with a_prober(gateway.url, folder, server.save_folder) as probing:
            yield probing


def asked(gateway: Gateway, what: str) -> int:
    return sum(what in one for one in gateway.asked)


def used_by_somebody(server: LlamaServer) -> Callable[[], object]:
    return lambda: server.complete("what somebody else says " * 20)


async def test_a_restored_slot_is_not_probed(
    start_llama: StartLlama, slots_home: SlotsHome
) -> None:
    server = start_llama(slots=1)
    talk = Conversation(server)
    cold = talk.send()
    async with slots_home.serving(server) as caller:
        saved = (await caller.save()).snapshot
        server.restart()
        await caller.restore(saved.snapshot_id)
        await refused(caller.probe(), "SLOT_NONE_SPARE")
    # This one does not know of the restore, and the server's list of slots does not tell.
    async with slots_home.serving(server) as caller:
        await refused(caller.probe(), "SLOT_NONE_SPARE")
    assert talk.go_on().reused_tokens >= cold.prompt_tokens
    assert not any(server.save_folder.iterdir())


async def test_a_slot_that_a_call_named_is_not_probed(
    server: LlamaServer, probing: Probing
) -> None:
    await probing.backend.ready()
    probing.backend.book.claim(0, "")
    await refused(probing.probe(), "SLOT_NONE_SPARE")
    server.restart()
    await probing.probe()


async def test_who_has_his_turn_first_has_the_slot(probing: Probing, gateway: Gateway) -> None:
    async def looked() -> bool:
        return gateway.was_asked("GET /slots")

    await probing.backend.ready()
    async with probing.backend.turn(0):
        waiting = asyncio.create_task(probing.probe())
        await eventually(looked, "the probe has looked for a slot")
        probing.backend.book.claim(0, "s-1")
    await refused(waiting, "SLOT_NONE_SPARE")
    assert not gateway.was_asked("action=save")


async def test_a_slot_whose_use_is_not_told_is_not_probed(
    server: LlamaServer, gateway: Gateway, probing: Probing
) -> None:
    def without_figures(body: bytes) -> bytes:
        kept = ("id", "n_ctx", "is_processing")
        return json.dumps([{name: one[name] for name in kept} for one in json.loads(body)]).encode()

    gateway.instead["/slots"] = without_figures
    await refused(probing.probe(), "SLOT_NONE_SPARE")
    server.restart()
    await probing.idle()
    assert not gateway.was_asked(COMPLETION)


async def test_an_older_build_tells_in_figures_that_a_slot_is_unused(
    gateway: Gateway, probing: Probing
) -> None:
    def as_older_builds(body: bytes) -> bytes:
        return json.dumps(
            [{"id_task": -1, "n_prompt_tokens": 0, **one} for one in json.loads(body)]
        ).encode()

    gateway.instead["/slots"] = as_older_builds
    await probing.probe()
    assert await probing.is_probed()


async def test_one_that_does_not_count_its_tokens_is_left_alone(
    gateway: Gateway, probing: Probing
) -> None:
    def as_oldest_builds(body: bytes) -> bytes:
        told = [{"id_task": -1, **one} for one in json.loads(body)]
        for one in told:
            one.pop("n_prompt_tokens", None)
        return json.dumps(told).encode()

    gateway.instead["/slots"] = as_oldest_builds
    await refused(probing.probe(), "SLOT_NONE_SPARE")
    assert not gateway.was_asked(COMPLETION)


async def test_a_slot_that_is_used_keeps_the_others_from_being_probed(
    start_llama: StartLlama, gateway: Gateway
) -> None:
    server = gateway.server = start_llama(slots=2)
    server.complete("what somebody says", slot=0)
    with a_folder() as folder:
        async with a_prober(gateway.url, folder, server.save_folder) as probing:
            await refused(probing.probe(), "SLOT_NONE_SPARE")
    assert not gateway.was_asked(COMPLETION)


async def test_only_a_run_that_was_seen_to_begin_is_probed_unasked(
    server: LlamaServer, gateway: Gateway, probing: Probing
) -> None:
    await probing.idle()
    assert not gateway.was_asked(COMPLETION)
    server.restart()
    await probing.idle()
    assert await probing.is_probed()
    gateway.asked.clear()
    await probing.idle()
    assert not gateway.was_asked(COMPLETION)


async def test_a_server_that_was_not_there_yet_is_probed_unasked(server: LlamaServer) -> None:
    server.kill()
    with a_folder() as folder:
        async with a_prober(server.url, folder, server.save_folder) as probing:
            await probing.idle()
            server.restart()
            await probing.idle()
            assert await probing.is_probed()


async def test_a_refused_probe_waits_for_another_run(
    server: LlamaServer, gateway: Gateway, probing: Probing
) -> None:
    await probing.idle()
    server.restart()
    server.complete("a prompt")
    await probing.idle()
    assert gateway.was_asked("GET /slots")
    gateway.asked.clear()
    await probing.idle()
    assert not gateway.was_asked("GET /slots")
    server.restart()
    await probing.idle()
    assert await probing.is_probed()


@pytest.mark.parametrize("saves", [True, False])
@pytest.mark.parametrize("step", ["first", "second"])
async def test_who_uses_the_slot_meanwhile_ends_the_probe(
    server: LlamaServer, gateway: Gateway, probing: Probing, saves: bool, step: str
) -> None:
    server.restart(saves=saves)

    def meanwhile() -> None:
        if step == "second" and asked(gateway, COMPLETION) == 1:
            gateway.before["/completion"] = meanwhile
        else:
            # Before the slot is looked at after that completion.
            gateway.before["/slots"] = used_by_somebody(server)

    gateway.before["/completion"] = meanwhile
    await refused(probing.probe(), "SLOT_NONE_SPARE")
    assert asked(gateway, COMPLETION) == (1 if step == "first" else 2)
    assert not await probing.is_probed()
    assert not gateway.was_asked("action=erase")


async def test_a_use_at_the_end_of_a_probe_is_seen(
    server: LlamaServer, gateway: Gateway, probing: Probing
) -> None:
    server.restart(saves=False)

    def second() -> None:
        gateway.before["/tokenize"] = used_by_somebody(server)

    def first() -> None:
        gateway.before["/completion"] = second

    gateway.before["/completion"] = first
    await refused(probing.probe(), "SLOT_NONE_SPARE")
    assert not await probing.is_probed()


async def test_probes_take_turns(start_llama: StartLlama, gateway: Gateway) -> None:
    server = gateway.server = start_llama(slots=2)
    with a_folder() as folder:
        async with a_prober(gateway.url, folder, server.save_folder) as probing:
            await probing.idle()
            server.restart()
            await asyncio.gather(probing.probe(), probing.idle())
            assert asked(gateway, COMPLETION) == 3
            server.restart()
            gateway.asked.clear()
            await asyncio.gather(probing.probe(), probing.probe())
    acts = [re.match(r"POST /slots/(\d)\?action=(save|erase) ", one) for one in gateway.asked]
    # All slots are saved to see that they are empty, and the last is probed.
    assert [one[1] for one in acts if one] == ["0", "1", "1", "1", "1"] * 2


def names_asked(gateway: Gateway) -> list[str]:
    """Of files that were to be saved."""
    told = [one for one in gateway.asked if "action=save" in one]
    return [re.findall(r'"filename": "([^"]*)"', one)[0] for one in told]


async def test_files_of_probes_are_the_homes_own_and_go(
    server: LlamaServer, gateway: Gateway, probing: Probing
) -> None:
    foreign = server.save_folder / "muniment-probe-0123abcd-00.slot"
    foreign.write_text("another home's")
    await probing.probe()
    server.restart()
    await probing.probe()
    first, second, third, fourth = names_asked(gateway)
    assert first == third
    assert second != fourth
    stem = first.removesuffix(".slot")
    assert re.fullmatch(r"muniment-probe-[0-9a-f]{8}", stem)
    assert re.fullmatch(stem + r"-[0-9a-f]{16}\.slot", second)
    assert list(server.save_folder.iterdir()) == [foreign]
    left = server.save_folder / second
    left.write_text("left by a crash")
    await probing.prober.sweep(probing.backend)
    assert not left.exists()
    left.write_text("left by a crash")
    server.restart()
    await probing.probe()
    assert list(server.save_folder.iterdir()) == [foreign]


async def test_files_out_of_reach_are_written_over(
    server: LlamaServer, gateway: Gateway, tmp_path: Path
) -> None:
    with a_folder() as folder:
        async with a_prober(gateway.url, folder, tmp_path / "elsewhere") as probing:
            await probing.probe()
    assert len(set(names_asked(gateway))) == 1
    assert len(list(server.save_folder.iterdir())) == 1


async def test_a_probe_that_fails_leaves_no_file(
    server: LlamaServer, gateway: Gateway, probing: Probing
) -> None:
    await probing.backend.ready()
    gateway.before["action=restore"] = server.kill
    with pytest.raises(PreconditionError) as failed:
        await probing.probe()
    assert failed.value.reason == "LLAMA_DROPPED"
    assert len(names_asked(gateway)) == 2
    assert not any(server.save_folder.iterdir())


async def test_what_a_server_cannot_do_is_said_plainly(
    start_llama: StartLlama, slots_home: SlotsHome
) -> None:
    server = start_llama(TINY, "--no-slots", saves=False)
    async with slots_home.serving(llama_url=server.url) as caller:
        told = {one.kind: one.detail for one in (await caller.server()).capabilities}
    assert told[slots_pb2.CAPABILITY_KIND_SLOTS] == "does not list its slots"
    assert told[slots_pb2.CAPABILITY_KIND_SAVE] == "does not save slots"
    assert told[slots_pb2.CAPABILITY_KIND_RESTORE] == "does not restore slots"
    assert told[slots_pb2.CAPABILITY_KIND_METRICS] == "does not tell its metrics"
    assert told[slots_pb2.CAPABILITY_KIND_TOKENIZE] == "counts tokens"


async def test_a_sealed_home_has_nothing_written_that_it_cannot_reach(
    start_llama: StartLlama, slots_home: SlotsHome
) -> None:
    slots_home.seal()
    server = start_llama(slots=1)
    Conversation(server).send()
    before = list(server.save_folder.iterdir())
    async with slots_home.serving(server, llama_save_folder="") as caller:
        error = await refused(caller.probe(), "SNAPSHOT_CANNOT_BE_SEALED", fix="llama_save_folder")
        assert "llama_save_folder" in error.message
    assert list(server.save_folder.iterdir()) == before
