"""Asking the memory, as the bridge and the command line do it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muniment.kit.context import CallContext
from muniment.kit.errors import NotFoundError
from muniment.v1 import memory_pb2
from muniment.workflows.clients import Clients
from muniment.workflows.episodes import commit_episode
from muniment.workflows.recall import recall

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_what_was_committed_is_recalled(clients: Clients, context: CallContext) -> None:
    request = memory_pb2.CommitEpisodeRequest(role=memory_pb2.ROLE_USER, content="port 8443")
    episode = await commit_episode(clients, replace(context, idempotency_key="1"), request)
    (hit,) = (await recall(clients, context, memory_pb2.RecallRequest(query="port"))).hits
    assert (hit.episode, hit.text) == (episode, "port 8443")


async def test_errors_arrive_as_they_were_raised(clients: Clients, context: CallContext) -> None:
    with pytest.raises(NotFoundError) as refused:
        await recall(clients, context, memory_pb2.RecallRequest(query="x", project_id="proj_no"))
    assert refused.value.field == "project_id"
