"""`muniment records`: what a tenant's agents keep by name, and what happened."""

from __future__ import annotations

from collections.abc import Callable

from muniment.cli import (
    records_documents,
    records_entities,
    records_history,
    records_search,
    records_transfer,
)
from muniment.cli.groups import command_group

__all__ = ["app"]

app = command_group("What agents keep by name: entities, states, references, and the journal.")


_COMMANDS: dict[str, Callable[..., None]] = {
    "remember": records_entities.remember,
    "recall": records_entities.recall,
    "search": records_search.search,
    "list": records_entities.list_,
    "forget": records_entities.forget,
    "archive": records_entities.archive,
    "restore": records_entities.restore,
    "purge": records_entities.purge,
    "state": records_documents.state,
    "set-state": records_documents.set_state,
    "states": records_documents.states,
    "delete-state": records_documents.delete_state,
    "reference": records_documents.reference,
    "put-reference": records_documents.put_reference,
    "references": records_documents.references,
    "delete-reference": records_documents.delete_reference,
    "event": records_history.event,
    "journal": records_history.journal,
    "changes": records_history.changes,
    "as-of": records_history.as_of,
    "stats": records_search.stats,
    "tenants": records_search.tenants,
    "export": records_transfer.export,
    "import": records_transfer.import_,
    "import-from": records_transfer.import_from,
}

for name, command in _COMMANDS.items():
    app.command(name)(command)
