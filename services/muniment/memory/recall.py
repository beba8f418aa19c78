"""Recall: from a question to the episodes and pins that answer it, with reasons.

Candidates come from the lexical index, filtered inside the query, and are ranked by how telling
the words are that they share with the question. A superseded episode ranks lower and shows what
corrects it. The order is a function of the store and the request alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from muniment.kit.context import CallContext
from muniment.kit.errors import InvalidArgumentError, TamperedError
from muniment.kit.index.analysis import query_terms, stem, without_marks
from muniment.kit.index.lexical import LexicalIndex, Match, Within
from muniment.kit.names import check_name
from muniment.kit.store import Reader
from muniment.memory.episodes import (
    episode_at,
    find_episode,
    newest_correction,
    read_content,
)
from muniment.memory.indexing import (
    episode_key,
    episodes_of,
    path_scope,
    pins_of,
    session_scope,
)
from muniment.memory.limits import (
    HIT_TEXT_LIMIT_BYTES,
    QUERY_LIMIT_BYTES,
    RECALL_DEFAULT_HITS,
    RECALL_LIMIT_HITS,
    RECALL_TEXT_LIMIT_BYTES,
)
from muniment.memory.projects import (
    find_project,
    known_project,
    last_purge,
    purge_that_took,
    purged_through,
    required_project,
)
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
    purged_through: int
    """Episodes up to this place are being purged."""

    @property
    def asking_session_id(self) -> str:
        """The session whose pins hold."""
        return self.own_session_id if self.session_id is None else self.session_id


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
    # Before the search: an index that is filled while it is asked may have answered without.
    below = index.progress.below
    response = memory_pb2.RecallResponse(
        project_id=search.project_id, terms=search.terms, retrievers=["bm25"]
    )
    named = [_named_hit(reader, search, one) for one in search.named_ids]
    hits = [hit for hit in named if hit is not None]
    found_keys = {episode_key(hit.episode.seq) for hit in hits if hit.episode.seq}
    wanted = max(search.hits * _CANDIDATES_PER_HIT, _LEAST_CANDIDATES)
    matches = index.search(search.terms, _within(search), wanted)
    checked = [_checked_hit(reader, search, one) for one in matches if one.key not in found_keys]
    # Of equals the newest first, as the index has them: the sort is stable.
    ranked = sorted((hit for hit in checked if hit is not None), key=lambda hit: -hit.score)
    hits = (hits + ranked)[: search.hits]
    _fill_texts(reader, search, hits)
    response.hits.extend(hits)
    response.notes.extend(_notes(reader, search, hits, below))
    return response


def _checked(reader: Reader, context: CallContext, request: memory_pb2.RecallRequest) -> _Search:
    if request.HasField("project_id") and request.project_id != context.project_id:
        project_id = _other_project(reader, check_name("project_id", request.project_id))
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
        purged_through=purged_through(reader, project_id),
    )


def _other_project(reader: Reader, project_id: str) -> str:
    try:
        return known_project(reader, project_id).project_id
    except TamperedError:
        # What cannot be believed are its counts.
        return project_id


def _within(search: _Search) -> list[Within]:
    """Episodes of the project (session, path), and pins in force where the question is asked."""
    shown = frozenset() if search.path is None else frozenset({path_scope(search.path)})
    asked = search.own_session_id if search.session_id is None else search.session_id
    filters = shown if search.session_id is None else shown | {session_scope(search.session_id)}
    within = [
        Within(episodes_of(search.project_id), filters),
        Within(pins_of(search.project_id, None), shown),
    ]
    if asked:
        within.append(Within(pins_of(search.project_id, asked), shown))
    return within


def _named_hit(reader: Reader, search: _Search, episode_id: str) -> memory_pb2.RecallHit | None:
    hit = memory_pb2.RecallHit(score=1000.0, retrievers=["id"], reasons=["the query names it"])
    try:
        episode = find_episode(reader, search.project_id, episode_id)
        if episode is None or not _shown_in(search, episode):
            return None
        hit.episode.CopyFrom(episode)
        _mark_superseded(reader, hit)
    except TamperedError as error:
        hit.episode.episode_id = episode_id
        _mark_tampered(hit, error)
    return hit


def _checked_hit(reader: Reader, search: _Search, match: Match) -> memory_pb2.RecallHit | None:
    """The hit; without anything of it but its place, where its row cannot be believed."""
    try:
        return _hit(reader, search, match)
    except TamperedError as error:
        hit = memory_pb2.RecallHit(score=match.score, retrievers=["bm25"])
        kind, _, name = match.key.partition(":")
        if kind == "pin":
            hit.pin.pin_id = name
        else:
            hit.episode.seq = int(name)
        _mark_tampered(hit, error)
        return hit


def _hit(reader: Reader, search: _Search, match: Match) -> memory_pb2.RecallHit | None:
    """The hit, or None where what it found does not pass the filters: the index is no authority.

    It is asked after the reader began, so it may know what was written in between.
    """
    kind, _, name = match.key.partition(":")
    hit = memory_pb2.RecallHit(score=match.score, retrievers=["bm25"])
    if kind == "pin":
        stored = reader.get(PINS, name)
        if stored is None or stored.HasField("removed_at") or not _holds(search, stored.pin):
            return None
        hit.pin.CopyFrom(stored.pin)
        hit.score *= _PIN_FACTOR
        hit.reasons.append("is pinned")
    elif not search.purged_through < int(name) <= reader.newest_number(EPISODES):
        return None
    else:
        hit.episode.CopyFrom(episode_at(reader, int(name)))
        if hit.episode.project_id != search.project_id or not _shown_in(search, hit.episode):
            return None
    having = ", ".join(match.terms)
    hit.reasons.append(f"has {len(match.terms)} of {len(search.terms)} terms: {having}")
    if search.path is not None:
        hit.reasons.append(f"shows {search.path}")
    _mark_superseded(reader, hit)
    return hit


def _shown_in(search: _Search, episode: memory_pb2.Episode) -> bool:
    """Whether the episode is of the session and shows the path that are asked for."""
    if search.session_id not in (None, episode.session_id):
        return False
    return search.path is None or any(search.path in path_suffixes(path) for path in episode.paths)


def _holds(search: _Search, pin: memory_pb2.PinnedRule) -> bool:
    """Whether the pin is in force where the question is asked."""
    return pin.project_id == search.project_id and (
        not pin.HasField("session_id") or pin.session_id == search.asking_session_id
    )


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
        try:
            whole = _whole_text(reader, hit)
        except TamperedError as error:
            _mark_tampered(hit, error)
            continue
        hit.text, start = _window(whole, search.terms, share)
        hit.truncated = len(hit.text) < len(whole)
        hit.text_offset_bytes = len(whole[:start].encode()) if hit.truncated else 0
        left -= len(hit.text.encode())


def _whole_text(reader: Reader, hit: memory_pb2.RecallHit) -> str:
    if hit.tampered:
        return ""
    return hit.pin.content if hit.HasField("pin") else read_content(reader, hit.episode.seq)


def _mark_tampered(hit: memory_pb2.RecallHit, error: TamperedError) -> None:
    hit.tampered = True
    hit.ClearField("current_value")
    hit.reasons.append(f"{error.message}: it was changed from outside and is not shown")


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


def _notes(
    reader: Reader, search: _Search, hits: list[memory_pb2.RecallHit], below: int
) -> list[str]:
    notes = []
    if not search.terms and not hits:
        notes.append("the query has no word to search for")
    elif not hits:
        notes.append(_nothing_found(reader, search, is_whole=not below))
    for episode_id in search.named_ids:
        purged = purge_that_took(reader, search.project_id, episode_id)
        if purged and all(hit.episode.episode_id != episode_id for hit in hits):
            notes.append(f"this project has no episode {episode_id:.100}; {purged}")
    if below:
        notes.append(
            f"the index is being made anew; of the oldest {below} episodes none is found yet;"
            " ask again in a moment"
        )
    cut = sum(hit.truncated for hit in hits)
    if cut:
        notes.append(
            f"{cut} of {len(hits)} texts are cut to the part around the match;"
            " `muniment show EPISODE_ID` prints one whole"
        )
    tampered = sum(hit.tampered for hit in hits)
    if tampered:
        notes.append(
            f"{tampered} of {len(hits)} hits were changed from outside and are not shown;"
            " `muniment verify-store` tells more"
        )
    doubts = reader.doubts()
    if doubts:
        notes.append(
            f"something may be missing: {'; '.join(doubts)}; `muniment verify-store` tells more"
        )
    return notes


def _nothing_found(reader: Reader, search: _Search, *, is_whole: bool) -> str:
    what = f"no match for {', '.join(search.terms)}"
    filters = [
        *([f"session {search.session_id}"] if search.session_id is not None else []),
        *([f"what shows {search.path}"] if search.path is not None else []),
    ]
    if filters:
        return f"{what} in {' and '.join(filters)}; ask without the filter to search the project"
    held = _held(reader, search.project_id)
    told = f"{what} in this project, which holds {held}"
    return f"{told}; the same words will not help again" if is_whole else told


def _held(reader: Reader, project_id: str) -> str:
    try:
        project = find_project(reader, project_id)
        purged = last_purge(reader, project_id)
    except TamperedError:
        return "what cannot be counted"
    if project is not None:
        return f"{project.episodes} episodes and {project.pins} pins"
    return f"nothing since it was {purged}" if purged else "nothing yet"
