"""Somebody at the place of the slots service who counts by a plain rule."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc

from muniment.kit.clock import SystemClock
from muniment.kit.interceptors import interceptors
from muniment.kit.metrics import Metrics
from muniment.kit.paths import Home
from muniment.v1 import slots_pb2

__all__ = ["RuleSlots", "counted", "rule_slots"]


def counted(text: str) -> int:
    """How many tokens the text has by that rule: far more than an estimate would say."""
    return 1000 + len(text)


@dataclass
class RuleSlots:
    """Counts, and nothing else."""

    tokenizer: str = "rule:1"
    texts: int = 0
    """How many it has counted."""

    async def count_tokens(
        self,
        request: slots_pb2.CountTokensRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> slots_pb2.CountTokensResponse:
        """Count by the rule."""
        assert request.exact
        self.texts += len(request.texts)
        return slots_pb2.CountTokensResponse(
            counts=map(counted, request.texts), tokenizer=self.tokenizer, exact=True
        )


@asynccontextmanager
async def rule_slots(home: Home) -> AsyncIterator[RuleSlots]:
    """Serve in the home's slots service's place until the block ends."""
    slots = RuleSlots()
    server = grpc.aio.server(interceptors=interceptors(Metrics("slots"), SystemClock()))
    count = grpc.unary_unary_rpc_method_handler(
        slots.count_tokens,
        request_deserializer=slots_pb2.CountTokensRequest.FromString,
        response_serializer=slots_pb2.CountTokensResponse.SerializeToString,
    )
    contract = slots_pb2.DESCRIPTOR.services_by_name["SlotsService"].full_name
    handler = grpc.method_handlers_generic_handler(contract, {"CountTokens": count})
    server.add_generic_rpc_handlers((handler,))
    server.add_secure_port(
        f"unix:{home.socket('slots')}",
        grpc.local_server_credentials(grpc.LocalConnectionType.UDS),
    )
    await server.start()
    try:
        yield slots
    finally:
        await server.stop(None)
        home.socket("slots").unlink(missing_ok=True)
