"""Token counts are those of the serving model's own tokenizer, text by text."""

from __future__ import annotations

import pytest

from tests.support.llama.models import FOREIGN, SLIDING, TINY, ModelPlan
from tests.support.llama.texts import many_texts
from tests.support.refusals import refused
from tests.support.slots_desk import Desk

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXTS = 1000


@pytest.mark.parametrize("plan", [TINY, FOREIGN], ids=lambda plan: plan.name)
async def test_counts_are_those_of_tokenize(desk: Desk, plan: ModelPlan) -> None:
    server = desk.serve(plan)
    texts = many_texts(TEXTS)
    expected = [len(server.tokens(text)) for text in texts]
    first = await desk.caller.count(texts)
    again = await desk.caller.count(texts[::-1])
    assert first.exact
    assert list(first.counts) == expected
    assert list(again.counts) == expected[::-1]
    assert first.tokenizer == again.tokenizer != ""


async def test_counts_of_no_texts_and_of_twins(desk: Desk) -> None:
    server = desk.serve()
    assert not (await desk.caller.count([])).counts
    counted = await desk.caller.count(["", "a b", "", "a b"])
    assert list(counted.counts) == [0, len(server.tokens("a b"))] * 2


async def test_too_many_texts_are_refused(desk: Desk) -> None:
    desk.serve()
    assert len((await desk.caller.count(["a"] * 4096)).counts) == 4096
    await refused(desk.caller.count(["a"] * 4097), "TEXTS_TOO_MANY")
    await refused(desk.caller.count(["a" * (3 * 1024 * 1024 + 1)]), "TEXTS_TOO_MANY")


async def test_models_that_share_a_tokenizer_share_its_name(desk: Desk) -> None:
    names = []
    server = desk.serve(TINY)
    for plan in (TINY, SLIDING, FOREIGN):
        server.restart(model=desk.start.file_of(plan))
        names.append((await desk.caller.count(["a"])).tokenizer)
    tiny, sliding, foreign = names
    assert tiny == sliding != foreign
