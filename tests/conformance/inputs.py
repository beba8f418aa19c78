"""Tools and a prompt that need something of the client first, in the way of the modern era.

The call is answered with what is missing; the client sends it again with the answers, and with
the state that it was given, which `make_fixtures` has sealed.
"""

from __future__ import annotations

from typing import Any

import mcp_types as types

from tests.conformance.samples import form, message, text
from tests.conformance.tools import Context, Fixture, Ran, done

__all__ = ["INPUT_PROMPT", "INPUT_TOOLS", "prompt_with_input"]

INPUT_PROMPT = "test_input_required_result_prompt"

_Params = types.CallToolRequestParams | types.GetPromptRequestParams


def _elicit(question: str, **fields: Any) -> types.ElicitRequest:
    params = types.ElicitRequestFormParams(message=question, requested_schema=form(**fields))
    return types.ElicitRequest(params=params)


def _sample(prompt: str, max_tokens: int) -> types.CreateMessageRequest:
    said = types.SamplingMessage(role="user", content=text(prompt))
    params = types.CreateMessageRequestParams(messages=[said], max_tokens=max_tokens)
    return types.CreateMessageRequest(params=params)


_NAME = _elicit("What is your name?", name={"type": "string"})
_CONFIRM = _elicit("Please confirm", ok={"type": "boolean"})
_CONTEXT = _elicit("What context should the prompt use?", context={"type": "string"})
_STEPS = (
    ("step1", _elicit("Step 1: What is your name?", name={"type": "string"})),
    ("step2", _elicit("Step 2: What is your favorite color?", color={"type": "string"})),
)


def _needs(
    state: str | None = None, /, **requests: types.InputRequest
) -> types.InputRequiredResult:
    return types.InputRequiredResult(input_requests=requests or None, request_state=state)


def _filled(params: _Params, key: str) -> dict[str, Any] | None:
    """What the form of that key was filled in with."""
    answer = (params.input_responses or {}).get(key)
    return answer.content or {} if isinstance(answer, types.ElicitResult) else None


async def _elicitation(ctx: Context, params: types.CallToolRequestParams) -> Ran:
    filled = _filled(params, "user_name")
    if filled is None:
        return _needs(user_name=_NAME)
    return done(text(f"Hello, {filled.get('name')}!"))


async def _sampling(ctx: Context, params: types.CallToolRequestParams) -> Ran:
    answer = (params.input_responses or {}).get("capital_question")
    if not isinstance(answer, types.CreateMessageResult):
        return _needs(capital_question=_sample("What is the capital of France?", 100))
    told = answer.content.text if isinstance(answer.content, types.TextContent) else "no text"
    return done(text(told))


async def _list_roots(ctx: Context, params: types.CallToolRequestParams) -> Ran:
    answer = (params.input_responses or {}).get("client_roots")
    if not isinstance(answer, types.ListRootsResult):
        return _needs(client_roots=types.ListRootsRequest())
    return done(text(", ".join(str(root.uri) for root in answer.roots)))


async def _with_state(ctx: Context, params: types.CallToolRequestParams) -> Ran:
    filled = _filled(params, "confirm")
    if filled is None or params.request_state != "asked":
        return _needs("asked", confirm=_CONFIRM)
    return done(text("state-ok"))


async def _multiple(ctx: Context, params: types.CallToolRequestParams) -> Ran:
    requests: dict[str, types.InputRequest] = {
        "user_name": _NAME,
        "greeting": _sample("Generate a greeting", 50),
        "client_roots": types.ListRootsRequest(),
    }
    missing = {
        key: request
        for key, request in requests.items()
        if key not in (params.input_responses or {})
    }
    return _needs("asked for three", **missing) if missing else done(text("All three came"))


async def _multi_round(ctx: Context, params: types.CallToolRequestParams) -> Ran:
    """Two questions, one after the other; the state counts those that were answered."""
    step = int(params.request_state or 0)
    if params.request_state is not None and _filled(params, _STEPS[step][0]) is not None:
        step += 1
    if step == len(_STEPS):
        return done(text("Both questions were answered"))
    key, request = _STEPS[step]
    return _needs(str(step), **{key: request})


async def _capabilities(ctx: Context, params: types.CallToolRequestParams) -> Ran:
    """Ask for what the client can do, and for nothing else."""
    if params.input_responses:
        return done(text(", ".join(params.input_responses)))
    declared = ctx.session.client_capabilities or types.ClientCapabilities()
    requests: dict[str, types.InputRequest] = {}
    if declared.sampling is not None:
        requests["greeting"] = _sample("Generate a greeting", 50)
    if declared.elicitation is not None:
        requests["user_name"] = _NAME
    return _needs(**requests) if requests else done(text("The client can answer nothing"))


async def prompt_with_input(
    ctx: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    """A prompt that asks what it should be about."""
    filled = _filled(params, "user_context")
    if filled is None:
        return _needs(user_context=_CONTEXT)
    about = text(f"Use this context: {filled.get('context')}")
    return types.GetPromptResult(messages=[message(about)])


INPUT_TOOLS = (
    Fixture("test_input_required_result_elicitation", _elicitation),
    Fixture("test_streaming_elicitation", _elicitation),
    Fixture("test_input_required_result_sampling", _sampling),
    Fixture("test_input_required_result_list_roots", _list_roots),
    Fixture("test_input_required_result_request_state", _with_state),
    Fixture("test_input_required_result_tampered_state", _with_state),
    Fixture("test_input_required_result_multiple_inputs", _multiple),
    Fixture("test_input_required_result_multi_round", _multi_round),
    Fixture("test_input_required_result_capabilities", _capabilities),
)
