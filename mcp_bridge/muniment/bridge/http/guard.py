"""What stands before the SDK's HTTP server: who may ask, how much, and in which words.

The SDK tells the eras apart by a header. Here the body comes first: a body of the modern era
without its header is told so, and so is a modern header over a body without its envelope. Nothing
reaches the SDK that stdio would refuse.
"""

from __future__ import annotations

import asyncio
import hmac
from dataclasses import dataclass, field

from mcp.server.transport_security import TransportSecurityMiddleware
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.types import Message as Event

from muniment.bridge.eras import BARE_ERA, HANDSHAKE_VERSIONS, VERSION_KEY, era_of
from muniment.bridge.framing import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LINE_LIMIT_BYTES,
    Message,
    Refusal,
    RequestId,
    error_reply,
    parse,
)

__all__ = ["BODY_SECONDS", "Guard"]

BODY_SECONDS = 30.0
"""How long a request may take to arrive."""

HEADER_MISMATCH = -32020

_VERSION_HEADER = "mcp-protocol-version"
_SESSION_HEADER = "mcp-session-id"
_JSON = "application/json"
_ENDED = (
    "The server ended before the answer was there. If the request was to write, recall before you"
    " send it again: it may have been recorded."
)


@dataclass(frozen=True)
class Guard:
    """An ASGI application around another."""

    app: ASGIApp
    security: TransportSecurityMiddleware
    """Knows the hosts and origins that may ask."""
    token: str | None = field(repr=False)
    """What callers must bring as a bearer token; None where everybody on this host may call."""
    body_seconds: float = BODY_SECONDS

    _under_way: set[tuple[str, str]] = field(default_factory=set, repr=False)
    """Session and id of requests that are not answered yet."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, or answer it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request = Request(scope)
        refusal = await self.security.validate_request(request, is_post=scope["method"] == "POST")
        refusal = refusal or self._not_allowed(headers)
        message = None
        if refusal is None and scope["method"] == "POST":
            try:
                body = await asyncio.wait_for(_read(headers, receive), self.body_seconds)
                message = _checked(body, headers)
                receive = _again(body if message is None else message.line, receive)
            except TimeoutError:
                refusal = _refused(408, None, INVALID_REQUEST, "the request took too long to come")
            except _TooLongError:
                text = f"the message is longer than {LINE_LIMIT_BYTES} bytes; nothing was used"
                refusal = _refused(413, None, INVALID_REQUEST, f"Invalid request: {text}")
            except _GoneError:
                return
            except Refusal as error:
                refusal = _refused(400, error.request_id, error.code, error.text, error.data)
        if refusal is not None:
            await refusal(scope, receive, send)
        elif message is None or message.request_id is None:
            await self.app(scope, receive, send)
        else:
            await self._answer(message.request_id, headers, scope, receive, send)

    async def _answer(
        self, request_id: RequestId, headers: Headers, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Let a request through that gets exactly one answer, whatever happens.

        In a session no other request may have its id: the SDK would answer the later one only.
        """
        session = headers.get(_SESSION_HEADER)
        # The SDK knows ids by their text.
        mark = (session, str(request_id)) if session and _is_of_session(headers) else None
        if mark in self._under_way:
            text = f"Invalid request: a request with the id {request_id!r:.100} is under way"
            await _refused(400, request_id, INVALID_REQUEST, text)(scope, receive, send)
            return
        answer = _Answer(request_id, send)
        if mark is not None:
            self._under_way.add(mark)
        try:
            await self.app(scope, receive, answer.send)
        except asyncio.CancelledError:
            await answer.break_off()  # The server ends.
        finally:
            if mark is not None:
                self._under_way.discard(mark)

    def _not_allowed(self, headers: Headers) -> Response | None:
        if self.token is None:
            return None
        scheme, _, given = headers.get("authorization", "").partition(" ")
        # As bytes, since the comparison takes no other text than ASCII.
        if scheme.lower() == "bearer" and hmac.compare_digest(
            given.strip().encode("latin-1"), self.token.encode()
        ):
            return None
        text = "Unauthorized: send the token of this server as `Authorization: Bearer`"
        refusal = _refused(401, None, INVALID_REQUEST, text)
        refusal.headers["WWW-Authenticate"] = 'Bearer realm="muniment"'
        return refusal


class _Answer:
    """How far the answer to a request has come."""

    def __init__(self, request_id: RequestId, send: Send) -> None:
        self._request_id = request_id
        self._send = send
        self._status: int | None = None
        self._is_complete = False

    async def send(self, event: Event) -> None:
        """Send more of it."""
        if event["type"] == "http.response.start":
            self._status = event["status"]
        elif event["type"] == "http.response.body":
            self._is_complete = not event.get("more_body", False)
        await self._send(event)

    async def break_off(self) -> None:
        """End what has not ended with the reason; in the older era it is a stream by now."""
        if self._is_complete:
            return
        reply = error_reply(self._request_id, INTERNAL_ERROR, _ENDED)
        if self._status is None:
            length = str(len(reply)).encode()
            kind = [(b"content-type", _JSON.encode()), (b"content-length", length)]
            await self.send({"type": "http.response.start", "status": 503, "headers": kind})
        else:
            reply = b"event: message\r\ndata: " + reply + b"\r\n\r\n"
        await self.send({"type": "http.response.body", "body": reply})


class _TooLongError(Exception):
    """The body is longer than any message may be."""


class _GoneError(Exception):
    """The caller went away before the body was complete."""


async def _read(headers: Headers, receive: Receive) -> bytes:
    announced = headers.get("content-length", "")
    if announced.isdigit() and int(announced) > LINE_LIMIT_BYTES:
        raise _TooLongError
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _GoneError
        body += message.get("body", b"")
        if len(body) > LINE_LIMIT_BYTES:
            raise _TooLongError
        if not message.get("more_body"):
            return bytes(body)


def _again(body: bytes, receive: Receive) -> Receive:
    """What gives the body once more, and then what the caller does."""
    given = False

    async def first() -> Event:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return first


def _checked(body: bytes, headers: Headers) -> Message | None:
    """The message of the body: one that stdio would take, of the era of its headers.

    None where it is the answer to a request of ours.

    Raises:
        Refusal: It may not be acted on.
    """
    if not body.strip():
        raise Refusal(INVALID_REQUEST, "Invalid request: the body is empty")
    message = parse(body)
    if message is None:
        if _is_of_session(headers) and _SESSION_HEADER not in headers:
            raise Refusal(INVALID_REQUEST, "Invalid request: an answer without a session")
        return None
    try:
        _check_era(message, headers)
    except Refusal as refusal:
        refusal.request_id = message.request_id
        raise
    return message


def _is_of_session(headers: Headers) -> bool:
    """Whether the headers are of the era of sessions."""
    version = headers.get(_VERSION_HEADER)
    return version is None or version in HANDSHAKE_VERSIONS


def _check_era(message: Message, headers: Headers) -> None:
    envelope = message.params.get("_meta")
    is_modern = isinstance(envelope, dict) and VERSION_KEY in envelope
    version = headers.get(_VERSION_HEADER)
    if is_modern and version is None:
        raise Refusal(
            HEADER_MISMATCH,
            f"{_VERSION_HEADER} header is missing; it must repeat the version of _meta",
        )
    if not is_modern and _is_of_session(headers):
        if message.method != "initialize" and _SESSION_HEADER not in headers:
            # The SDK would open a session for it, and refuse it then.
            raise Refusal(
                INVALID_REQUEST,
                f"Invalid request: no session; send `initialize` first, or {_VERSION_HEADER}"
                " with the request's _meta",
            )
        return
    if message.request_id is None:
        return
    if not isinstance(envelope, dict):
        raise Refusal(INVALID_PARAMS, "Invalid params: request _meta is missing")
    if not is_modern:
        raise Refusal(INVALID_PARAMS, f"Invalid params: _meta lacks {VERSION_KEY}")
    told = envelope[VERSION_KEY]
    if isinstance(told, str) and told != version:
        raise Refusal(HEADER_MISMATCH, f"{_VERSION_HEADER} header is not the version of _meta")
    era_of(message.params, BARE_ERA)


def _refused(
    status: int, request_id: RequestId | None, code: int, text: str, data: object = None
) -> Response:
    return Response(error_reply(request_id, code, text, data), status, media_type=_JSON)
