"""llama-server over HTTP: one method a question, with its own time limit, and typed failures.

Source: tools/server/README.md of llama.cpp. A question that changes nothing, or that may be put
twice, is put again where the server closed the connection instead of answering.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt

from muniment.slots.addresses import ServerAddress
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
_TOKENIZE_SECONDS = 30.0
_SLOT_SECONDS = 590.0
"""For saving and loading gigabytes, after whatever the slot is busy with."""
_COMPLETE_SECONDS = 600.0

SLOT_FLAG = "--slot-save-path FOLDER"

_ATTEMPTS = 2


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
        response = await self._send("GET", "/metrics", "tell its metrics", _LOOK_SECONDS, None)
        return response.status_code == httpx.codes.OK

    async def tokenize(self, content: str | Sequence[str | int], *, special: bool) -> list[int]:
        """The tokens of a text, or of a row of texts and ready tokens.

        With `special` the tokens that begin and end a prompt are added.
        """
        answer = await self._ask(
            "POST",
            "/tokenize",
            "tokenize",
            _TOKENIZE_SECONDS,
            {"content": content, "add_special": special},
        )
        tokens = self._object(answer, "/tokenize").get("tokens")
        if not isinstance(tokens, list) or not all(isinstance(one, int) for one in tokens):
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
        response = await self._send(method, path, what, seconds, request)
        url = self._address.url
        match response.status_code:
            case httpx.codes.OK:
                pass
            case httpx.codes.UNAUTHORIZED | httpx.codes.FORBIDDEN:
                raise KeyRefused(url, has_key=self._address.key() is not None)
            case httpx.codes.SERVICE_UNAVAILABLE:
                raise Loading(url)
            case httpx.codes.NOT_IMPLEMENTED if flag:
                raise NotSupported(what, flag)
            case httpx.codes.BAD_REQUEST | httpx.codes.INTERNAL_SERVER_ERROR:
                raise Refused(what, _words(response))
            case _:
                raise NotUnderstood(url, f"{path} answers {response.status_code}")
        try:
            return response.json()
        except ValueError:
            raise NotUnderstood(url, f"{path} gives no JSON") from None

    async def _send(
        self,
        method: str,
        path: str,
        what: str,
        seconds: float,
        request: Mapping[str, Any] | None,
    ) -> httpx.Response:
        key = self._address.key()
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        url = self._address.url
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(httpx.RemoteProtocolError),
            stop=stop_after_attempt(_ATTEMPTS),
            reraise=True,
        )
        try:
            # The time limits of the transport are for each part of an answer.
            async with asyncio.timeout(seconds + _CONNECT_SECONDS):
                return await retrying(
                    self._http.request,
                    method,
                    path,
                    json=request,
                    headers=headers,
                    timeout=httpx.Timeout(seconds, connect=_CONNECT_SECONDS),
                )
        except httpx.ConnectTimeout:
            raise Unreachable(url, f"no answer within {_CONNECT_SECONDS:g} s") from None
        except httpx.ConnectError as error:
            raise Unreachable(url, _cause(error)) from None
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

    def _object(self, answer: Any, path: str) -> dict[str, Any]:
        if not isinstance(answer, dict):
            raise NotUnderstood(self._address.url, f"{path} gives no object")
        return answer


def _cause(error: httpx.ConnectError) -> str:
    below: BaseException | None = error
    while below is not None:
        if isinstance(below, OSError) and below.strerror:
            return below.strerror.lower()
        below = below.__cause__ or below.__context__
    return "no connection"


def _words(response: httpx.Response) -> str:
    """What the server says of its refusal."""
    try:
        told = response.json()["error"]
        return str(told["message"] if isinstance(told, dict) else told)
    except (ValueError, KeyError, TypeError):
        return f"it answers {response.status_code}"
