"""Who calls: the project and session of a request, and the key under which it writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from muniment.bridge.calls import Call, Greeting
from muniment.bridge.subscriptions import Subscriptions
from muniment.kit.errors import InvalidArgumentError, PreconditionError
from muniment.kit.identity import resolve_project
from muniment.kit.settings import Settings
from muniment.workflows.clients import Clients

CODEX = "x-codex-turn-metadata"
TOOL_USE = "toolu_01A09q90qw90lq917835lq9"

CODEX_FORMS = pytest.mark.parametrize(
    "form", [lambda value: value, json.dumps], ids=["object", "text"]
)


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    """Folders that are projects of their own."""
    made = {name: tmp_path / name for name in ("cwd", "ours", "theirs", "codex", "claude")}
    for folder in made.values():
        folder.mkdir()
    return made


def call(
    cwd: Path | str = "/",
    meta: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    connection: str = "c" * 32,
    arrival: int = 1,
    client: str = "agent",
) -> Call:
    """A call that reaches for no service."""
    return Call(
        greeting=Greeting(connection, "context", "reference", str(cwd), environment or {}),
        arrival=arrival,
        client_name=client,
        meta=meta or {},
        clients=cast(Clients, None),
        settings=Settings(),
        subscriptions=cast(Subscriptions, None),
    )


def project_of(one: Call) -> str:
    return one.context()[0].project_root


def session_of(one: Call, argument: str | None = None) -> tuple[str, str]:
    context, source = one.context(argument)
    return context.session_id, source


def key_of(one: Call, tool: str = "tool", session: str | None = None, **arguments: Any) -> str:
    context, _ = one.context(session)
    return one.writing(context, tool, arguments).idempotency_key


# --- The project


def test_the_project_is_that_of_the_front_s_folder(folders: dict[str, Path]) -> None:
    context, _ = call(folders["cwd"]).context()
    known = resolve_project(folders["cwd"])
    assert (context.project_id, context.project_root) == (known.project_id, str(folders["cwd"]))


@CODEX_FORMS
def test_what_names_a_project_in_order_of_strength(folders: dict[str, Path], form: Any) -> None:
    environment = {
        "MUNIMENT_PROJECT_ROOT": str(folders["ours"]),
        "SAKUR4_PROJECT_ROOT": str(folders["theirs"]),
        "CLAUDE_PROJECT_DIR": str(folders["claude"]),
    }
    meta = {CODEX: form({"workspaces": {str(folders["codex"]): {"branch": "main"}}})}
    found = []
    for name in (*list(environment)[:2], CODEX, "CLAUDE_PROJECT_DIR", None):
        found.append(Path(project_of(call(folders["cwd"], meta, environment=environment))).name)
        environment.pop(name or "", None)
        meta.pop(name or "", None)
    assert found == ["ours", "theirs", "codex", "claude", "cwd"]


@pytest.mark.parametrize("value", ["", None])
def test_an_empty_variable_names_no_project(folders: dict[str, Path], value: str | None) -> None:
    names = ("MUNIMENT_PROJECT_ROOT", "SAKUR4_PROJECT_ROOT", "CLAUDE_PROJECT_DIR")
    environment = {} if value is None else dict.fromkeys(names, value)
    assert project_of(call(folders["cwd"], environment=environment)) == str(folders["cwd"])


@pytest.mark.parametrize(
    "name", ["MUNIMENT_PROJECT_ROOT", "SAKUR4_PROJECT_ROOT", "CLAUDE_PROJECT_DIR"]
)
def test_a_relative_root_starts_at_the_front_s_folder(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir("/")
    one = call(folders["cwd"], environment={name: "../ours"})
    assert project_of(one) == str(folders["ours"])


def test_a_folder_whose_name_no_folder_can_have(folders: dict[str, Path]) -> None:
    for cwd, environment in (
        (folders["cwd"] / ("x" * 300), {}),
        (folders["cwd"], {"CLAUDE_PROJECT_DIR": "/" + "x/" * 3000}),
    ):
        with pytest.raises(PreconditionError, match="is no folder") as raised:
            call(cwd, environment=environment).context()
        assert len(str(raised.value)) < 500


@pytest.mark.parametrize(
    "workspaces",
    [["/somewhere/else", "/nowhere"], {"/somewhere/else": {}}, ["relative", 7, "/somewhere/else"]],
)
def test_codex_names_its_first_absolute_workspace(workspaces: Any) -> None:
    assert project_of(call("/", {CODEX: {"workspaces": workspaces}})) == "/somewhere/else"


@pytest.mark.parametrize(
    "told", ["", "{", "[]", "null", 7, None, [], {"workspaces": 7}, {"workspaces": ["relative"]}]
)
def test_codex_metadata_that_says_nothing(folders: dict[str, Path], told: Any) -> None:
    one = call(folders["cwd"], {CODEX: told})
    assert project_of(one) == str(folders["cwd"])
    assert session_of(one)[1] == "derived"


def test_a_project_file_that_cannot_be_read_says_what_to_do(folders: dict[str, Path]) -> None:
    (folders["cwd"] / ".muniment.toml").write_text("project = ")
    with pytest.raises(PreconditionError, match="mend it"):
        call(folders["cwd"]).context()


# --- The session


@CODEX_FORMS
def test_what_names_a_session_in_order_of_strength(form: Any) -> None:
    environment = {
        "MUNIMENT_SESSION": "ours",
        "SAKUR4_SESSION": "theirs",
        "CLAUDE_CODE_SESSION_ID": "claude",
    }
    meta = {"sessionId": "meta", CODEX: form({"session_id": "codex"}), "threadId": "thread"}
    assert session_of(call(meta=meta, environment=environment), "named") == ("named", "argument")
    found = []
    for name in ("MUNIMENT_SESSION", "SAKUR4_SESSION", *meta, "CLAUDE_CODE_SESSION_ID"):
        found.append(session_of(call(meta=meta, environment=environment)))
        environment.pop(name, None)
        meta.pop(name, None)
    assert found == [
        ("ours", "environment"),
        ("theirs", "environment"),
        ("meta", "harness"),
        ("codex", "harness"),
        ("thread", "harness"),
        ("claude", "harness"),
    ]
    assert session_of(call())[1] == "derived"


@pytest.mark.parametrize("value", ["", 7, None, [], {}])
def test_metadata_that_is_no_name_is_no_session(value: Any) -> None:
    meta = {"sessionId": value, "threadId": value, CODEX: {"session_id": value}}
    assert session_of(call(meta=meta), "") == session_of(call())


def test_a_derived_session_is_of_project_client_and_connection(folders: dict[str, Path]) -> None:
    sessions = {
        session_of(one)[0]
        for one in (
            call(folders["cwd"]),
            call(folders["ours"]),
            call(folders["cwd"], client="other"),
            call(folders["cwd"], connection="d" * 32),
        )
    }
    assert len(sessions) == 4
    assert all(name.startswith("ses_") for name in sessions)
    later = call(folders["cwd"], {"progressToken": 1}, arrival=99)
    assert session_of(later)[0] in sessions


@pytest.mark.parametrize("name", ["x" * 201, "two\nlines", "\u2028"])
def test_a_session_that_cannot_be_kept_is_refused(name: str) -> None:
    for one, argument in ((call(), name), (call(meta={"sessionId": name}), None)):
        with pytest.raises(InvalidArgumentError) as raised:
            one.context(argument)
        assert raised.value.field == "session_id"
        assert name not in str(raised.value)


@pytest.mark.parametrize("slot_id", [2**32, 10**400])
def test_a_slot_that_no_server_has_is_refused(slot_id: int) -> None:
    assert call().context(slot_id=2**32 - 1)[0].slot_id == 2**32 - 1
    with pytest.raises(InvalidArgumentError, match="slot_id: must be at most 4294967295"):
        call().context(slot_id=slot_id)


def test_the_rest_of_the_context() -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    context, _ = call(meta={"traceparent": trace}).context(slot_id=3)
    assert (context.slot_id, context.caller, context.traceparent) == (3, "bridge", trace)
    assert context.idempotency_key == ""


# --- The key


def test_a_request_that_is_sent_again_has_its_key() -> None:
    assert key_of(call(arrival=7), content="x") == key_of(call(arrival=7), content="x")
    assert key_of(call(arrival=7), a=1, b=2) == key_of(call(arrival=7), b=2, a=1)


def test_requests_that_differ_have_different_keys() -> None:
    keys = [
        key_of(call(arrival=7), content="x"),
        key_of(call(arrival=8), content="x"),
        key_of(call(arrival=7, connection="d" * 32), session="s", content="x"),
        key_of(call(arrival=7), session="s", content="x"),
        key_of(call(arrival=7), "other", content="x"),
        key_of(call(arrival=7), content="y"),
    ]
    assert len(set(keys)) == len(keys)
    assert all(len(key) == 48 for key in keys)


@pytest.mark.parametrize("name", ["claudecode/toolUseId", "callId"])
def test_the_harness_s_own_call_id_outlives_its_connection(name: str) -> None:
    """A harness that repeats a call over a new bridge gets the first outcome."""
    first = call(meta={name: TOOL_USE}, arrival=1, environment={"MUNIMENT_SESSION": "s"})
    again = call(
        meta={name: TOOL_USE}, arrival=5, connection="d" * 32, environment={"MUNIMENT_SESSION": "s"}
    )
    assert key_of(first, content="x") == key_of(again, content="x")
    assert key_of(first, content="x") != key_of(again, content="y")
    assert key_of(first, "tool", content="x") != key_of(again, "other", content="x")


@pytest.mark.parametrize(
    "call_id", ["0", "call_17", "x" * 15, 1234567890123456789, None, ["x" * 20]]
)
def test_an_id_that_is_not_one_of_a_kind_is_no_key(call_id: Any) -> None:
    """Local models number their calls from 0 in every session."""
    keys = {key_of(call(meta={"callId": call_id}, arrival=arrival)) for arrival in (1, 2)}
    assert len(keys) == 2
    assert key_of(call(meta={"callId": call_id})) == key_of(call())
