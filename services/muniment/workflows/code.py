"""The code index: bringing it up to date, and what is asked of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from muniment.kit.channels import MAINTENANCE_SECONDS, READ_SECONDS
from muniment.kit.context import CallContext
from muniment.kit.progress import Report
from muniment.v1 import code_pb2
from muniment.workflows.clients import Clients
from muniment.workflows.long_calls import reporting

__all__ = [
    "describe_index",
    "export_index",
    "forget_index",
    "get_impact",
    "get_repo_map",
    "index_project",
    "query_symbol",
]


async def index_project(
    clients: Clients, context: CallContext, report: Report, *, anew: bool = False
) -> code_pb2.IndexResult:
    """Bring the index of the context's tree up to the disk; with `anew` parse every file again."""
    result = code_pb2.IndexResult()
    parts = clients.to_code.server_stream(
        clients.code.IndexProject,
        code_pb2.IndexProjectRequest(anew=anew),
        context,
        MAINTENANCE_SECONDS,
    )
    async for part in reporting(parts, report):
        result = part.result
    return result


async def describe_index(
    clients: Clients, context: CallContext, *, deadline_seconds: float = READ_SECONDS
) -> code_pb2.DescribeIndexResponse:
    """How far the index of the tree is, and what it holds. It is not begun by that."""
    request = code_pb2.DescribeIndexRequest()
    return await clients.to_code.unary(
        clients.code.DescribeIndex, request, context, deadline_seconds
    )


async def get_repo_map(
    clients: Clients,
    context: CallContext,
    *,
    token_budget: int,
    focus_paths: Sequence[str] = (),
    names_only: bool = False,
    deadline_seconds: float = READ_SECONDS,
) -> code_pb2.GetRepoMapResponse:
    """An outline of the tree within the budget, the most depended-on symbols first."""
    request = code_pb2.GetRepoMapRequest(
        token_budget=token_budget, focus_paths=focus_paths, names_only=names_only
    )
    return await clients.to_code.unary(clients.code.GetRepoMap, request, context, deadline_seconds)


async def query_symbol(
    clients: Clients,
    context: CallContext,
    qualified_name: str,
    *,
    deadline_seconds: float = READ_SECONDS,
) -> code_pb2.QuerySymbolResponse:
    """Every definition of that name."""
    request = code_pb2.QuerySymbolRequest(qualified_name=qualified_name)
    return await clients.to_code.unary(clients.code.QuerySymbol, request, context, deadline_seconds)


async def get_impact(
    clients: Clients,
    context: CallContext,
    qualified_name: str,
    *,
    depth: int,
    deadline_seconds: float = READ_SECONDS,
) -> code_pb2.GetImpactResponse:
    """What depends on the symbol, over that many steps.

    Raises:
        NotFoundError: The tree has no such symbol.
    """
    request = code_pb2.GetImpactRequest(qualified_name=qualified_name, depth=depth)
    return await clients.to_code.unary(clients.code.GetImpact, request, context, deadline_seconds)


async def export_index(
    clients: Clients, context: CallContext, write: Callable[[bytes], object]
) -> None:
    """Hand the index to `write` as lines of JSON, in pieces of whole lines."""
    parts = clients.to_code.server_stream(
        clients.code.ExportIndex, code_pb2.ExportIndexRequest(), context, MAINTENANCE_SECONDS
    )
    async for part in parts:
        write(part.lines)


async def forget_index(clients: Clients, context: CallContext) -> int:
    """Forget what is indexed of the project's trees; returns how many files that was."""
    response = await clients.to_code.unary(
        clients.code.ForgetProject, code_pb2.ForgetProjectRequest(), context, MAINTENANCE_SECONDS
    )
    return response.removed_files
