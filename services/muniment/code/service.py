"""The code contract over gRPC: translation, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import grpc

from muniment.code.answers import find_impact, find_symbols
from muniment.code.counting import ESTIMATING, TokenCounter
from muniment.code.describing import describe
from muniment.code.export import export_lines
from muniment.code.freshness import Made, answer
from muniment.code.indexing import RunResult
from muniment.code.mapping import MapOrder, make_map
from muniment.code.trees import LiveTree, Trees
from muniment.kit.errors import InvalidArgumentError, MunimentError, NotFoundError
from muniment.kit.interceptors import call_context
from muniment.kit.limits import CHUNK_BYTES
from muniment.kit.printable import printable
from muniment.v1 import code_pb2, code_pb2_grpc, maintenance_pb2

__all__ = ["CodeServicer", "Counted"]

_TICK_SECONDS = 0.2

_Call = grpc.aio.ServicerContext[Any, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Counted:
    """What the serving model's own tokenizer counts, in the order of the texts."""

    counts: Sequence[int]
    tokenizer: str


@dataclass(frozen=True)
class CodeServicer(code_pb2_grpc.CodeServiceServicer):
    """Serves the contract for the trees of one home."""

    trees: Trees
    threads: Executor
    """What works and waits runs there."""
    count: Callable[[Sequence[str]], Awaitable[Counted]]
    """Counts exactly, or raises a MunimentError. Without texts it tells which tokenizer serves."""

    async def IndexProject(
        self, request: code_pb2.IndexProjectRequest, context: _Call
    ) -> AsyncIterator[code_pb2.IndexProjectResponse]:
        live = await self._tree()
        # It goes on when the caller goes away, who finds it further when asking again.
        running = asyncio.wrap_future(live.tree.run(anew=request.anew))
        while not (await asyncio.wait({running}, timeout=_TICK_SECONDS))[0]:
            done, total = live.tree.progress
            progress = maintenance_pb2.Progress(step="reading files", done=done, total=total)
            yield code_pb2.IndexProjectResponse(progress=progress)
        result = await running
        told = await self._in_thread(lambda: self._index_result(live, result))
        yield code_pb2.IndexProjectResponse(result=told)

    async def DescribeIndex(
        self, request: code_pb2.DescribeIndexRequest, context: _Call
    ) -> code_pb2.DescribeIndexResponse:
        live = await self._tree()
        return await self._in_thread(lambda: describe(live))

    async def GetRepoMap(
        self, request: code_pb2.GetRepoMapRequest, context: _Call
    ) -> code_pb2.GetRepoMapResponse:
        live, counter = await self._tree(), await self._counter()
        order = MapOrder(request.token_budget, tuple(request.focus_paths), request.names_only)
        made = await self._in_thread(lambda: make_map(live, order, counter))
        return code_pb2.GetRepoMapResponse(
            map=made.value.outline.map,
            tokens_used=made.value.outline.tokens_used,
            tokenizer=made.value.counter.tokenizer,
            exact=made.value.counter.exact,
            state=made.state,
            shown_symbols=made.value.outline.shown,
            symbols=made.state.symbols,
            notes=made.value.notes,
        )

    async def QuerySymbol(
        self, request: code_pb2.QuerySymbolRequest, context: _Call
    ) -> code_pb2.QuerySymbolResponse:
        live, name = await self._tree(), request.qualified_name
        found = await self._in_thread(lambda: answer(live, partial(find_symbols, name=name)))
        return code_pb2.QuerySymbolResponse(
            definitions=found.value.definitions,
            is_exact=found.value.is_exact,
            near_names=found.value.near_names,
            state=found.state,
        )

    async def GetImpact(
        self, request: code_pb2.GetImpactRequest, context: _Call
    ) -> code_pb2.GetImpactResponse:
        live, name = await self._tree(), request.qualified_name
        make = partial(find_impact, name=name, depth=request.depth)
        found = await self._in_thread(lambda: answer(live, make))
        if not found.value.targets:
            near = ", ".join(map(printable, found.value.near_names))
            raise NotFoundError(
                f"no symbol is called so ({found.state.note})",
                reason="SYMBOL_UNKNOWN",
                field="qualified_name",
                fix=f"near are {near}" if near else "code.get_repo_map shows names with names_only",
            )
        return code_pb2.GetImpactResponse(
            targets=found.value.targets,
            dependents=found.value.dependents,
            left_out=found.value.left_out,
            state=found.state,
        )

    async def ExportIndex(
        self, request: code_pb2.ExportIndexRequest, context: _Call
    ) -> AsyncIterator[code_pb2.ExportIndexResponse]:
        live = await self._tree()
        await asyncio.wrap_future(live.tree.look())
        portions = export_lines(live.tree)
        while (lines := await self._in_thread(lambda: next(portions, None))) is not None:
            for start in range(0, len(lines), CHUNK_BYTES):
                yield code_pb2.ExportIndexResponse(lines=lines[start : start + CHUNK_BYTES])

    async def ForgetProject(
        self, request: code_pb2.ForgetProjectRequest, context: _Call
    ) -> code_pb2.ForgetProjectResponse:
        project_id = call_context().project_id
        if not project_id:
            raise InvalidArgumentError(
                "is missing",
                reason="PROJECT_MISSING",
                field="project_id",
                fix="say which project is to be forgotten",
            )
        removed = await self._in_thread(lambda: self.trees.forget_project(project_id))
        return code_pb2.ForgetProjectResponse(removed_files=removed)

    async def _tree(self) -> LiveTree:
        call = call_context()
        return await self._in_thread(lambda: self.trees.find(call.project_id, call.project_root))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.threads, work)

    async def _counter(self) -> TokenCounter:
        """Who counts for a map: the model that serves, where one does."""
        try:
            tokenizer = (await self.count(())).tokenizer
        except MunimentError:
            return ESTIMATING
        loop = asyncio.get_running_loop()

        def count(texts: Sequence[str]) -> Sequence[int]:
            counting: Future[Counted] = asyncio.run_coroutine_threadsafe(self._count(texts), loop)
            return counting.result().counts

        return TokenCounter(tokenizer, exact=True, count=count)

    async def _count(self, texts: Sequence[str]) -> Counted:
        return await self.count(texts)

    def _index_result(self, live: LiveTree, result: RunResult) -> code_pb2.IndexResult:
        answered = answer(live, lambda graph: Made(graph.counts(), ()))
        return code_pb2.IndexResult(
            state=answered.state,
            parsed_files=result.parsed,
            unchanged_files=result.unchanged,
            removed_files=result.removed,
            edges=answered.value.resolved + answered.value.candidates,
        )
