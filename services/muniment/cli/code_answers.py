"""What the code service answers to the commands on code, as plain values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muniment.cli.answers import project_of, service_clients
from muniment.kit.context import CallContext
from muniment.kit.errors import NotFoundError
from muniment.kit.paths import Home
from muniment.kit.printable import printable
from muniment.kit.progress import Report
from muniment.v1 import code_pb2
from muniment.workflows import code
from muniment.workflows.clients import CODE, Clients
from muniment.workflows.code_values import (
    told_definition,
    told_dependent,
    told_index,
    told_map,
)
from muniment.workflows.server_words import word_of

__all__ = ["CodeAsker"]

Told = dict[str, Any]


@dataclass(frozen=True)
class CodeAsker:
    """Asks the code service of a home about the tree that a folder is in."""

    home: Home
    context: CallContext

    @classmethod
    def of(cls, home: Home, folder: Path) -> CodeAsker:
        """About the tree that the folder is in.

        Raises:
            PreconditionError: The folder is gone, or the project's file cannot be read.
        """
        project = project_of(folder)
        context = CallContext(
            project_id=project.project_id, project_root=project.root, caller="cli"
        )
        return cls(home, context)

    async def index(self, report: Report, *, anew: bool) -> Told:
        """Bring the index up to the disk, and say what that took."""
        async with self._clients() as clients:
            result = await code.index_project(clients, self.context, report, anew=anew)
        return {
            "index": told_index(result.state),
            "parsed_files": result.parsed_files,
            "unchanged_files": result.unchanged_files,
            "removed_files": result.removed_files,
            "edges": result.edges,
        }

    async def describe(self) -> Told:
        """How far the index is, and what it holds."""
        async with self._clients() as clients:
            response = await code.describe_index(clients, self.context)
        return {
            "root": self.context.project_root,
            "index": told_index(response.state),
            "languages": [
                {"language": one.language, "files": one.files, "symbols": one.symbols}
                for one in response.languages
            ],
            "conditions": [
                {
                    "condition": word_of(code_pb2.FileCondition, one.condition),
                    "files": one.files,
                    "examples": [printable(path) for path in one.examples],
                }
                for one in response.conditions
            ],
            "resolved_edges": response.resolved_edges,
            "candidate_edges": response.candidate_edges,
            "unresolved_references": response.unresolved_references,
        }

    async def export(self, write: Callable[[bytes], object], report: Report) -> None:
        """Bring the index up to the disk, then hand its lines to `write`."""
        async with self._clients() as clients:
            await code.index_project(clients, self.context, report)
            await code.export_index(clients, self.context, write)

    async def map(self, token_budget: int, focus: Sequence[str], *, names_only: bool) -> Told:
        """An outline within the budget."""
        async with self._clients() as clients:
            response = await code.get_repo_map(
                clients,
                self.context,
                token_budget=token_budget,
                focus_paths=focus,
                names_only=names_only,
            )
        return told_map(response) | {
            "token_budget": token_budget,
            "index": told_index(response.state),
        }

    async def symbol(self, name: str) -> Told:
        """Every definition of that name.

        Raises:
            NotFoundError: There is none; the error has names that are near.
        """
        async with self._clients() as clients:
            response = await code.query_symbol(clients, self.context, name)
        if not response.definitions:
            near = ", ".join(map(printable, response.near_names))
            list_names = "`muniment map --names` lists names in use"
            raise NotFoundError(
                f"no symbol is called so ({printable(response.state.note)})",
                reason="SYMBOL_UNKNOWN",
                field="name",
                fix=f"near are {near}; {list_names}" if near else list_names,
            )
        return {
            "is_exact": response.is_exact,
            "definitions": [told_definition(one) for one in response.definitions],
            "index": told_index(response.state),
        }

    async def impact(self, name: str, depth: int) -> Told:
        """What depends on the symbol.

        Raises:
            NotFoundError: There is no such symbol.
        """
        async with self._clients() as clients:
            response = await code.get_impact(clients, self.context, name, depth=depth)
        return {
            "definitions": [told_definition(one) for one in response.targets],
            "depth": depth,
            "dependents": [told_dependent(one) for one in response.dependents],
            "left_out": response.left_out,
            "index": told_index(response.state),
        }

    def _clients(self) -> AbstractAsyncContextManager[Clients]:
        return service_clients(self.home, CODE)
