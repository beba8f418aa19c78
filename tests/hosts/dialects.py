"""The three ways in which harnesses speak with a model: what a request shows it, how it answers.

Each takes apart a request (which tools are offered, what they returned so far) and puts together a
reply, whole or as the events of a stream. Only what the harnesses read is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["DIALECTS", "ByCall", "Dialect", "Reply", "Returned"]

Body = Mapping[str, Any]
Event = tuple[str | None, Mapping[str, Any] | str]
"""Its name where the dialect has one, and its data."""


@dataclass(frozen=True)
class ByCall:
    """A tool, as the model names it when it calls it."""

    name: str
    namespace: str | None = None
    """Of the responses dialect; the harness makes one for each server."""


@dataclass(frozen=True)
class Returned:
    """What a tool returned, as the model was given it."""

    call_id: str
    text: str


@dataclass(frozen=True)
class Reply:
    """What the model says: a call of a tool, or its last words."""

    text: str = ""
    call_id: str = ""
    tool: ByCall | None = None
    arguments: str = "{}"
    """JSON."""


class Dialect(Protocol):
    """One API of a model."""

    def offered(self, body: Body) -> Sequence[ByCall]:
        """The tools that the request lists."""

    def returned(self, body: Body) -> Sequence[Returned]:
        """What tools returned so far, oldest first."""

    def whole(self, reply: Reply, model: str) -> Mapping[str, Any]:
        """The reply in one piece."""

    def events(self, reply: Reply, model: str) -> Iterator[Event]:
        """The reply as a stream."""


def _texts(content: object) -> str:
    """All text in a content, whether it is one or a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return json.dumps(content, ensure_ascii=False)
    return "\n".join(
        part["text"] if "text" in part else json.dumps(part, ensure_ascii=False) for part in content
    )


class Messages:
    """Anthropic's messages."""

    def offered(self, body: Body) -> Sequence[ByCall]:
        """The tools that the request lists."""
        return [ByCall(tool["name"]) for tool in body.get("tools", ())]

    def returned(self, body: Body) -> Sequence[Returned]:
        """What tools returned so far, oldest first."""
        return [
            Returned(part["tool_use_id"], _texts(part.get("content", "")))
            for message in body["messages"]
            if isinstance(message["content"], list)
            for part in message["content"]
            if part["type"] == "tool_result"
        ]

    def whole(self, reply: Reply, model: str) -> Mapping[str, Any]:
        """The reply in one piece."""
        block = self._block(reply)
        if reply.tool is None:
            block["text"] = reply.text
        else:
            block["input"] = json.loads(reply.arguments)
        return self._message(model, [block], self._reason(reply))

    def events(self, reply: Reply, model: str) -> Iterator[Event]:
        """The reply as a stream."""
        delta = (
            {"type": "text_delta", "text": reply.text}
            if reply.tool is None
            else {"type": "input_json_delta", "partial_json": reply.arguments}
        )
        for event in (
            {"type": "message_start", "message": self._message(model, [], None)},
            {"type": "content_block_start", "index": 0, "content_block": self._block(reply)},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": self._reason(reply), "stop_sequence": None},
                "usage": {"output_tokens": 1},
            },
            {"type": "message_stop"},
        ):
            yield str(event["type"]), event

    def _block(self, reply: Reply) -> dict[str, Any]:
        if reply.tool is None:
            return {"type": "text", "text": ""}
        return {"type": "tool_use", "id": reply.call_id, "name": reply.tool.name, "input": {}}

    def _reason(self, reply: Reply) -> str:
        return "end_turn" if reply.tool is None else "tool_use"

    def _message(self, model: str, content: list[Any], reason: str | None) -> dict[str, Any]:
        return {
            "id": "msg_scripted",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": content,
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }


class ChatCompletions:
    """OpenAI's older API, which most local servers speak."""

    def offered(self, body: Body) -> Sequence[ByCall]:
        """The tools that the request lists."""
        return [ByCall(tool["function"]["name"]) for tool in body.get("tools", ())]

    def returned(self, body: Body) -> Sequence[Returned]:
        """What tools returned so far, oldest first."""
        return [
            Returned(message["tool_call_id"], _texts(message["content"]))
            for message in body["messages"]
            if message["role"] == "tool"
        ]

    def whole(self, reply: Reply, model: str) -> Mapping[str, Any]:
        """The reply in one piece."""
        choice = {"message": self._said(reply), "finish_reason": self._reason(reply)}
        return self._frame(model, "chat.completion", choice)

    def events(self, reply: Reply, model: str) -> Iterator[Event]:
        """The reply as a stream."""
        said = {"delta": self._said(reply), "finish_reason": None}
        end = {"delta": {}, "finish_reason": self._reason(reply)}
        for choice in (said, end):
            yield None, self._frame(model, "chat.completion.chunk", choice)
        yield None, "[DONE]"

    def _said(self, reply: Reply) -> dict[str, Any]:
        if reply.tool is None:
            return {"role": "assistant", "content": reply.text}
        call = {
            "index": 0,
            "id": reply.call_id,
            "type": "function",
            "function": {"name": reply.tool.name, "arguments": reply.arguments},
        }
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    def _reason(self, reply: Reply) -> str:
        return "stop" if reply.tool is None else "tool_calls"

    def _frame(self, model: str, kind: str, choice: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "id": "chat_scripted",
            "object": kind,
            "created": 0,
            "model": model,
            "choices": [{"index": 0, **choice}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }


class Responses:
    """OpenAI's newer API, with a namespace of tools for each server."""

    def offered(self, body: Body) -> Sequence[ByCall]:
        """The tools that the request lists, those within namespaces too."""
        return [
            ByCall(inner["name"], outer["name"] if outer is not inner else None)
            for outer in body.get("tools", ())
            for inner in (outer["tools"] if outer["type"] == "namespace" else [outer])
            if "name" in inner
        ]

    def returned(self, body: Body) -> Sequence[Returned]:
        """What tools returned so far, oldest first."""
        return [
            Returned(item["call_id"], _texts(item["output"]))
            for item in body["input"]
            if item.get("type") == "function_call_output"
        ]

    def whole(self, reply: Reply, model: str) -> Mapping[str, Any]:
        """The reply in one piece."""
        return {**self._response(model, "completed"), "output": [self._item(reply)]}

    def events(self, reply: Reply, model: str) -> Iterator[Event]:
        """The reply as a stream."""
        item = self._item(reply)
        for event in (
            {"type": "response.created", "response": self._response(model, "in_progress")},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": self.whole(reply, model)},
        ):
            yield str(event["type"]), event

    def _item(self, reply: Reply) -> dict[str, Any]:
        if reply.tool is None:
            said = {"type": "output_text", "text": reply.text, "annotations": []}
            return {"type": "message", "id": "msg_1", "role": "assistant", "content": [said]}
        space = reply.tool.namespace
        return {
            "type": "function_call",
            "id": f"fc_{reply.call_id}",
            "call_id": reply.call_id,
            "name": reply.tool.name,
            "arguments": reply.arguments,
            **({} if space is None else {"namespace": space}),
        }

    def _response(self, model: str, status: str) -> dict[str, Any]:
        usage = {
            "input_tokens": 1,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 2,
        }
        return {
            "id": "resp_scripted",
            "object": "response",
            "created_at": 0,
            "model": model,
            "status": status,
            "output": [],
            "usage": usage,
        }


DIALECTS: Mapping[str, Dialect] = {
    "/v1/messages": Messages(),
    "/v1/chat/completions": ChatCompletions(),
    "/v1/responses": Responses(),
}
"""By the path that is asked."""
