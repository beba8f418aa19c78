"""llama-server over HTTP: one method a question, with its own time limit, and typed failures.

Source: tools/server/README.md of llama.cpp. A question that changes nothing, or that may be put
twice, is put again where the server closed the connection instead of answering. Answers are read up
to a size, and what they say is looked at before anybody uses it: anything may listen there.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt

from muniment.slots.addresses import ServerAddress
from muniment.slots.answers import parsed
from muniment.slots.failures import (
    Dropped,
    KeyRefused,
    Loading,
    NotSupported,
    NotUnderstood,
    Refused,
    SlowServer,
    Unreachable,
)

__all__ = ["SLOT_FLAG", "LlamaServer"]

_CONNECT_SECONDS = 2.0
_LOOK_SECONDS = 5.0
"""For what the server answers between two batches of a prompt."""
_TOKENIZE_SECONDS = 150.0
"""For the longest request there is: some tokenizers do less than 100 kB a second."""
_SLOT_SECONDS = 590.0
"""For saving and loading gigabytes, after whatever the slot is busy with."""
_COMPLETE_SECONDS = 600.0

SLOT_FLAG = "--slot-save-path FOLDER"

_ATTEMPTS = 2

_ANSWER_LIMIT_BYTES = 8 * 1024 * 1024
"""Longest answer to a question that has no text in it."""
_ANSWER_BYTES_PER_BYTE = 12
"""What an answer may have more for each byte of a text: a token has up to ten digits."""

_TOKEN_LIMIT = 2**31
"""Tokens are numbered with 32 bits."""

_HEADERS = {"Accept-Encoding": "identity", "Content-Type": "application/json"}


@dataclass(frozen=True)
class _Answer:
    """One answer, whole."""

    status: int
    body: bytes

    def words(self) -> str:
        """What the server says of its refusal."""
        try:
            told = parsed(self.body)["error"]
            return str(told["message"] if isinstance(told, dict) else told)
        except (ValueError, KeyError, TypeError):
            return f"it answers {self.status}"


class LlamaServer:
    """One server. Its connections are kept; a key is read anew for each request."""

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        transport = httpx.AsyncHTTPTransport(
            uds=address.socket, limits=httpx.Limits(max_connections=8, keepalive_expiry=5.0)
        )
        # Proxies of the environment are for the world outside.
        self._http = httpx.AsyncClient(
            base_url=address.base_url, transport=transport, trust_env=False
        )

    async def close(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def health(self) -> None:
        """Return if it is ready to be asked.

        Raises:
            MunimentError: It is not, and why.
        """
        await self._ask("GET", "/health", "say how it fares", _LOOK_SECONDS)

    async def props(self) -> dict[str, Any]:
        """What it says of itself and its settings."""
        answer = await self._ask("GET", "/props", "tell its properties", _LOOK_SECONDS)
        return self._object(answer, "/props")

    async def models(self) -> dict[str, Any]:
        """What it says of its model: `meta` of the first."""
        answer = await self._ask("GET", "/v1/models", "tell its model", _LOOK_SECONDS)
        data = self._object(answer, "/v1/models").get("data")
        first = data[0] if isinstance(data, list) and data else {}
        meta = first.get("meta") if isinstance(first, dict) else None
        return meta if isinstance(meta, dict) else {}

    async def slots(self) -> list[dict[str, Any]]:
        """Its slots, as it tells them."""
        answer = await self._ask("GET", "/slots", "list its slots", _LOOK_SECONDS, flag="--slots")
        if not isinstance(answer, list) or not all(isinstance(one, dict) for one in answer):
            raise NotUnderstood(self._address.url, "/slots is no list")
        return answer

    async def has_metrics(self) -> bool:
        """Whether it tells its metrics (Prometheus text)."""
        answer = await self._send("GET", "/metrics", "tell its metrics", _LOOK_SECONDS, None)
        return answer.status == httpx.codes.OK

    async def tokenize(self, content: str | Sequence[str | int], *, special: bool) -> list[int]:
        """The tokens of a text, or of a row of texts and ready tokens.

        With `special` the tokens that begin and end a prompt are added. Of numbers below 0 the
        answer has those only that stand in the row, if any.
        """
        answer = await self._ask(
            "POST",
            "/tokenize",
            "tokenize",
            _TOKENIZE_SECONDS,
            {"content": content, "add_special": special},
        )
        tokens = self._object(answer, "/tokenize").get("tokens")
        own = () if isinstance(content, str) else {one for one in content if isinstance(one, int)}
        if not isinstance(tokens, list) or not all(
            type(one) is int and (0 <= one < _TOKEN_LIMIT or one in own) for one in tokens
        ):
            raise NotUnderstood(self._address.url, "/tokenize gives no list of tokens")
        return tokens

    async def apply_template(self, request: Mapping[str, Any]) -> str:
        """The conversation as its chat template writes it."""
        answer = await self._ask(
            "POST", "/apply-template", "apply its chat template", _TOKENIZE_SECONDS, request
        )
        prompt = self._object(answer, "/apply-template").get("prompt")
        if not isinstance(prompt, str):
            raise NotUnderstood(self._address.url, "/apply-template gives no prompt")
        return prompt

    async def act(self, slot_id: int, action: str, file_name: str | None = None) -> dict[str, Any]:
        """Save, restore or erase a slot. Files are bare names in the server's own folder."""
        answer = await self._ask(
            "POST",
            f"/slots/{slot_id}?action={action}",
            f"{action} its slot {slot_id}",
            _SLOT_SECONDS,
            {} if file_name is None else {"filename": file_name},
            flag=SLOT_FLAG,
        )
        return self._object(answer, action)

    async def complete(self, slot_id: int, prompt: str) -> dict[str, Any]:
        """Evaluate a prompt in a slot, and one token more: the answer's `timings`."""
        request = {"prompt": prompt, "n_predict": 1, "cache_prompt": True, "id_slot": slot_id}
        answer = await self._ask(
            "POST", "/completion", "evaluate a prompt", _COMPLETE_SECONDS, request
        )
        timings = self._object(answer, "/completion").get("timings")
        if not isinstance(timings, dict):
            raise NotUnderstood(self._address.url, "/completion gives no timings")
        return timings

    async def _ask(
        self,
        method: str,
        path: str,
        what: str,
        seconds: float,
        request: Mapping[str, Any] | None = None,
        *,
        flag: str = "",
    ) -> Any:
        """The answer's JSON, or what is amiss."""
        answer = await self._send(method, path, what, seconds, request)
        url = self._address.url
        match answer.status:
            case httpx.codes.OK:
                pass
            case httpx.codes.UNAUTHORIZED | httpx.codes.FORBIDDEN:
                raise KeyRefused(url, has_key=self._address.key() is not None)
            case httpx.codes.SERVICE_UNAVAILABLE:
                raise Loading(url)
            case httpx.codes.NOT_IMPLEMENTED if flag:
                raise NotSupported(what, flag)
            case httpx.codes.BAD_REQUEST | httpx.codes.INTERNAL_SERVER_ERROR:
                raise Refused(what, answer.words())
            case _:
                raise NotUnderstood(url, f"{path} answers {answer.status}")
        try:
            return parsed(answer.body)
        except ValueError as error:
            raise NotUnderstood(url, f"{path} gives {error}") from None

    async def _send(
        self,
        method: str,
        path: str,
        what: str,
        seconds: float,
        request: Mapping[str, Any] | None,
    ) -> _Answer:
        key = self._address.key()
        headers = _HEADERS if key is None else _HEADERS | {"Authorization": f"Bearer {key}"}
        url = self._address.url
        # What is no text is sent as it is, for the server to refuse.
        content = b"" if request is None else _packed(request)
        limit = _ANSWER_LIMIT_BYTES + _ANSWER_BYTES_PER_BYTE * len(content)
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(httpx.RemoteProtocolError),
            stop=stop_after_attempt(_ATTEMPTS),
            reraise=True,
        )
        timeout = httpx.Timeout(seconds, connect=_CONNECT_SECONDS)
        try:
            asked = self._http.build_request(
                method, path, content=content, headers=headers, timeout=timeout
            )
            # The time limits of the transport are for each part of an answer.
            async with asyncio.timeout(seconds + _CONNECT_SECONDS):
                return await retrying(self._exchange, asked, limit)
        except httpx.ConnectTimeout:
            raise Unreachable(url, f"no answer within {_CONNECT_SECONDS:g} s") from None
        except httpx.ConnectError as error:
            cause = _cause(error)
            raise Unreachable(
                url,
                cause.strerror.lower() if cause and cause.strerror else "no connection",
                nothing_is_there=isinstance(cause, ConnectionRefusedError | FileNotFoundError),
            ) from None
        except (httpx.TimeoutException, TimeoutError):
            raise SlowServer(url, what, seconds) from None
        except httpx.RemoteProtocolError as error:
            if "illegal" in str(error):
                raise NotUnderstood(url, "it does not speak HTTP") from None
            raise Dropped(url, what) from None
        except httpx.TransportError:
            raise Dropped(url, what) from None
        except (httpx.HTTPError, UnicodeEncodeError, ValueError):
            raise NotUnderstood(url, "the request cannot be sent") from None

    async def _exchange(self, request: httpx.Request, limit_bytes: int) -> _Answer:
        response = await self._http.send(request, stream=True)
        try:
            body = bytearray()
            # As it comes: a packed answer may become any size, and nobody asked for one.
            async for part in response.aiter_raw():
                body += part
                if len(body) > limit_bytes:
                    path = request.url.path
                    told = f"{path} answers with more than {limit_bytes} bytes"
                    raise NotUnderstood(self._address.url, told)
            return _Answer(response.status_code, bytes(body))
        finally:
            await response.aclose()

    def _object(self, answer: Any, path: str) -> dict[str, Any]:
        if not isinstance(answer, dict):
            raise NotUnderstood(self._address.url, f"{path} gives no object")
        return answer


def _packed(request: Mapping[str, Any]) -> bytes:
    return json.dumps(request, ensure_ascii=False).encode(errors="surrogatepass")


def _cause(error: httpx.ConnectError) -> OSError | None:
    below: BaseException | None = error
    while below is not None:
        if isinstance(below, OSError) and below.strerror:
            return below
        below = below.__cause__ or below.__context__
    return None
