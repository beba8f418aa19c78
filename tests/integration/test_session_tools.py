"""A harness saves and restores a slot: through the real front, the services and a llama-server."""

from __future__ import annotations

import pytest

from tests.integration.house import a_house
from tests.support.fronts import BridgeProcess
from tests.support.llama.models import TINY
from tests.support.llama.process import StartLlama
from tests.support.llama.turns import Conversation

pytestmark = pytest.mark.timeout(180)

TAIL_TOKENS = 60


def test_an_agent_saves_its_slot_and_loads_it_after_a_restart(start_llama: StartLlama) -> None:
    server = start_llama(TINY)
    settings = {
        "MUNIMENT_BACKEND": server.url,
        "MUNIMENT_LLAMA_SAVE_FOLDER": str(server.save_folder),
    }
    with a_house(**settings) as house:
        house.must("up")
        with BridgeProcess(house.home, house.project) as bridge:
            refused = bridge.result(bridge.send_call("session.snapshot"))
            assert refused["isError"] is True
            assert "slot 0 of the inference server holds nothing" in refused["content"][0]["text"]
            talk = Conversation(server)
            talk.send()
            saved = bridge.call("session.snapshot", session_id="s", slot_id=0)
            assert saved["size_bytes"] > 0
            server.restart()
            restored = bridge.call("session.restore", path=saved["file_path"], session_id="s")
            assert restored["restored"] is True
            assert restored["tokens"] == saved["tokens"]
            assert talk.go_on().evaluated_tokens <= TAIL_TOKENS
            status = bridge.call("sakur4.status")
            assert status["backend"] == f"main at {server.url}"
            assert status["tokenizer"].startswith("llama:")
            assert "save+restore" in status["capabilities"]
