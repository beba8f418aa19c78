"""Recall: from a question to the episodes and pins that answer it, with reasons.

Candidates come from the lexical index, filtered inside the query, and are ranked by how telling
the words are that they share with the question. A superseded episode ranks lower and shows what
corrects it. The order is a function of the store and the request alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from muniment.kit.context import CallContext
from muniment.kit.errors import InvalidArgumentError
from muniment.kit.index.analysis import query_terms, stem, without_marks
from muniment.kit.index.lexical import LexicalIndex, Match, all_of, any_of
from muniment.kit.names import check_name
from muniment.kit.store import Reader
from muniment.memory.episodes import (
    episode_at,
    find_episode,
    newest_correction,
    read_content,
)
from muniment.memory.indexing import (
    EPISODE_SCOPE,
    PIN_SCOPE,
    WHOLE_PROJECT_SCOPE,
    episode_key,
    path_scope,
    project_scope,
    session_scope,
)
from muniment.memory.limits import (
    HIT_TEXT_LIMIT_BYTES,
    QUERY_LIMIT_BYTES,
    RECALL_DEFAULT_HITS,
    RECALL_LIMIT_HITS,
    RECALL_TEXT_LIMIT_BYTES,
)
from muniment.memory.projects import find_project, known_project, required_project
from muniment.memory.schema import EPISODES, PINS
from muniment.memory.shown_paths import path_suffixes, relative_path
from muniment.v1 import memory_pb2

__all__ = ["recall"]

_CANDIDATES_PER_HIT = 3
_LEAST_CANDIDATES = 24

_SUPERSEDED_FACTOR = 0.35
_PIN_FACTOR = 1.2

_EPISODE_ID = re.compile(r"\bep_[0-9a-f]{32}\b")


@dataclass(frozen=True)
class _Search:
    """A checked request."""

    project_id: str
    session_id: str | None
    own_session_id: str
    path: str | None
    hits: int
    terms: list[str]
    named_ids: list[str]


def recall(
    reader: Reader, index: LexicalIndex, context: CallContext, request: memory_pb2.RecallRequest
) -> memory_pb2.RecallResponse:
    """Find what answers the request.

    Raises:
        InvalidArgumentError: A field is too long or a path leads out of the project.
        NotFoundError: The project that the request names is unknown.
        UnavailableError: The index cannot be read.
    """
    search = _checked(reader, context, request)
    response = memory_pb2.RecallResponse(
        project_id=search.project_id, terms=search.terms, retrievers=["bm25"]
    )
    named = [_named_hit(reader, search, one) for one in search.named_ids]
    hits = [hit for hit in named if hit is not None]
    found_keys = {episode_key(hit.episode.seq) for hit in hits}
    wanted = max(search.hits * _CANDIDATES_PER_HIT, _LEAST_CANDIDATES)
    matches = index.search(search.terms, _filter(search), wanted)
    found = [_hit(reader, search, one) for one in matches if one.key not in found_keys]
    # Of equals the newest first, as the index has them: the sort is stable.
    ranked = sorted((hit for hit in found if hit is not None), key=lambda hit: -hit.score)
    hits = (hits + ranked)[: search.hits]
    _fill_texts(reader, search, hits)
    response.hits.extend(hits)
    response.notes.extend(_notes(reader, search, hits))
    return response


def _checked(reader: Reader, context: CallContext, request: memory_pb2.RecallRequest) -> _Search:
    if request.HasField("project_id") and request.project_id != context.project_id:
        project_id = known_project(reader, check_name("project_id", request.project_id)).project_id
    else:
        project_id = required_project(context)
    if len(request.query.encode()) > QUERY_LIMIT_BYTES:
        raise InvalidArgumentError(
            f"is longer than {QUERY_LIMIT_BYTES} bytes",
            reason="QUERY_TOO_LONG",
            field="query",
            fix="ask with the words that matter",
        )
    path = None
    if request.HasField("file_path"):
        path = relative_path(request.file_path, context.project_root)
        if path is None:
            raise InvalidArgumentError(
                "leads out of the project",
                reason="PATH_OUTSIDE_PROJECT",
                field="file_path",
                fix="give it relative to the project's root",
            )
    return _Search(
        project_id=project_id,
        session_id=(
            check_name("session_id", request.session_id) if request.HasField("session_id") else None
        ),
        own_session_id=context.session_id,
        path=path,
        hits=min(request.k or RECALL_DEFAULT_HITS, RECALL_LIMIT_HITS),
        terms=query_terms(request.query),
        named_ids=list(dict.fromkeys(_EPISODE_ID.findall(request.query)))[:RECALL_LIMIT_HITS],
    )


def _filter(search: _Search) -> str:
    """Episodes of the project (session, path), and pins in force where the question is asked."""
    episodes = [EPISODE_SCOPE]
    if search.session_id is not None:
        episodes.append(session_scope(search.session_id))
    asked = search.own_session_id if search.session_id is None else search.session_id
    pins = [PIN_SCOPE, any_of(WHOLE_PROJECT_SCOPE, session_scope(asked))]
    within = [project_scope(search.project_id), any_of(all_of(*episodes), all_of(*pins))]
    if search.path is not None:
        within.append(path_scope(search.path))
    return all_of(*within)


def _named_hit(reader: Reader, search: _Search, episode_id: str) -> memory_pb2.RecallHit | None:
    episode = find_episode(reader, search.project_id, episode_id)
    if episode is None or search.session_id not in (None, episode.session_id):
        return None
    shown = {end for path in episode.paths for end in path_suffixes(path)}
    if search.path is not None and search.path not in shown:
        return None
    hit = memory_pb2.RecallHit(episode=episode, score=1000.0, retrievers=["id"])
    hit.reasons.append("the query names it")
    _mark_superseded(reader, hit)
    return hit


def _hit(reader: Reader, search: _Search, match: Match) -> memory_pb2.RecallHit | None:
    """The hit; None for what the reader's moment does not have.

    The index is asked after the reader began, so it may know what was written in between.
    """
    kind, _, name = match.key.partition(":")
    hit = memory_pb2.RecallHit(score=match.score, retrievers=["bm25"])
    if kind == "pin":
        stored = reader.get(PINS, name)
        if stored is None or stored.HasField("removed_at"):
            return None
        hit.pin.CopyFrom(stored.pin)
        hit.score *= _PIN_FACTOR
        hit.reasons.append("is pinned")
    elif int(name) > reader.last_number(EPISODES):
        return None
    else:
        hit.episode.CopyFrom(episode_at(reader, int(name)))
    having = ", ".join(match.terms)
    hit.reasons.append(f"has {len(match.terms)} of {len(search.terms)} terms: {having}")
    if search.path is not None:
        hit.reasons.append(f"shows {search.path}")
    _mark_superseded(reader, hit)
    return hit


def _mark_superseded(reader: Reader, hit: memory_pb2.RecallHit) -> None:
    if not hit.episode.HasField("superseded_by"):
        return
    hit.score *= _SUPERSEDED_FACTOR
    newest = newest_correction(reader, hit.episode.seq)
    if newest is not None:
        text, _ = _window(read_content(reader, newest), [], HIT_TEXT_LIMIT_BYTES // 4)
        hit.current_value = text
    hit.reasons.append(f"was corrected by {hit.episode.superseded_by}")


def _fill_texts(reader: Reader, search: _Search, hits: list[memory_pb2.RecallHit]) -> None:
    left = RECALL_TEXT_LIMIT_BYTES
    for place, hit in enumerate(hits):
        # What is left is shared by those that still wait for their text.
        share = min(HIT_TEXT_LIMIT_BYTES, left // (len(hits) - place))
        pinned = hit.HasField("pin")
        whole = hit.pin.content if pinned else read_content(reader, hit.episode.seq)
        hit.text, start = _window(whole, search.terms, share)
        hit.truncated = len(hit.text) < len(whole)
        hit.text_offset_bytes = len(whole[:start].encode()) if hit.truncated else 0
        left -= len(hit.text.encode())


def _window(text: str, terms: list[str], limit_bytes: int) -> tuple[str, int]:
    """The text, or the lines around its first telling match; and where they start (characters)."""
    # No character takes more than four bytes, so most texts need no encoding to be known short.
    if len(text) * 4 <= limit_bytes or len(text.encode()) <= limit_bytes:
        return text, 0
    middle = _first_match(text, terms)
    start = max(0, middle - limit_bytes // 8)
    # Not so far back that the match is left out where characters take four bytes.
    line = text.rfind("\n", 0, start) + 1
    start = line if start - line < min(400, limit_bytes // 16) else start
    cut = text[start : start + limit_bytes].encode()[:limit_bytes].decode(errors="ignore")
    return cut, start


def _first_match(text: str, terms: list[str]) -> int:
    """Where the text first shows the longest term that can be found in it, in characters."""
    for fold in (str.lower, _without_marks):
        folded = fold(text)
        if len(folded) != len(text):
            continue
        for term in sorted(terms, key=len, reverse=True):
            place = max(folded.find(term), folded.find(stem(term)))
            if place >= 0:
                return place
    return 0


def _without_marks(text: str) -> str:
    """The text as terms are written, with every character in its place."""
    folds = {character: without_marks(character).casefold() for character in set(text)}
    return text.translate({ord(one): fold for one, fold in folds.items() if len(fold) == 1})


def _notes(reader: Reader, search: _Search, hits: list[memory_pb2.RecallHit]) -> list[str]:
    notes = []
    if not search.terms and not hits:
        notes.append("the query has no word to search for")
    elif not hits:
        notes.append(_nothing_found(reader, search))
    cut = sum(hit.truncated for hit in hits)
    if cut:
        notes.append(
            f"{cut} of {len(hits)} texts are cut to the part around the match;"
            " `muniment show EPISODE_ID` prints one whole"
        )
    return notes


def _nothing_found(reader: Reader, search: _Search) -> str:
    what = f"no match for {', '.join(search.terms)}"
    filters = [
        *([f"session {search.session_id}"] if search.session_id is not None else []),
        *([f"what shows {search.path}"] if search.path is not None else []),
    ]
    if filters:
        return f"{what} in {' and '.join(filters)}; ask without the filter to search the project"
    project = find_project(reader, search.project_id)
    held = f"{project.episodes} episodes and {project.pins} pins" if project else "nothing yet"
    return f"{what} in this project, which holds {held}; the same words will not help again"
