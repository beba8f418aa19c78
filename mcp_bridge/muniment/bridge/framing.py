"""The wire of stdio: one JSON-RPC message a line, in UTF-8, on descriptors that are ours alone.

Owns the standard streams of the front: nothing that a library or a child prints can reach the
harness. Decides whether a line is a message at all; what the message means is decided elsewhere.

Standard library only, and of that only what costs no start time (no dataclasses, no pathlib).
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import select
import threading
from collections.abc import Callable, Iterator

__all__ = [
    "DEPTH_LIMIT",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "LINE_LIMIT_BYTES",
    "METHOD_NOT_FOUND",
    "PARSE_ERROR",
    "LineSplitter",
    "Message",
    "Output",
    "Oversize",
    "Refusal",
    "RequestId",
    "complain",
    "encode",
    "error_reply",
    "parse",
    "read_lines",
    "result_reply",
    "take_standard_streams",
]

RequestId = int | str
"""What MCP allows as the id of a request."""

LINE_LIMIT_BYTES = 32 * 1024 * 1024
"""Longest message. Episodes reach 16 MiB, and escaping doubles the worst of them."""

DEPTH_LIMIT = 128
"""Deepest nesting of objects and arrays in a message, the message itself included."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

_READ_BYTES = 256 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")


class Refusal(Exception):
    """A message that is answered with a JSON-RPC error.

    Args:
        code: The JSON-RPC error code.
        text: The error's message.
        data: The error's data, where it has any.
        request_id: Id of the answer; None where the request's own could not be read.
    """

    def __init__(
        self, code: int, text: str, *, data: object = None, request_id: RequestId | None = None
    ) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.data = data
        self.request_id = request_id


class Message:
    """A well-formed request, or a notification where `request_id` is None."""

    __slots__ = ("line", "method", "params", "request_id")

    def __init__(
        self, line: bytes, method: str, params: dict[str, object], request_id: RequestId | None
    ) -> None:
        self.line = line
        """The message's own bytes, fit to stand inside another JSON text."""
        self.method = method
        self.params = params
        self.request_id = request_id


class Oversize:
    """What is left of a line over the limit: the request's id, where it could be read."""

    __slots__ = ("request_id",)

    def __init__(self, request_id: RequestId | None) -> None:
        self.request_id = request_id


# --- Descriptors


def take_standard_streams() -> tuple[int, int]:
    """Move standard input and output to private descriptors and divert the public ones.

    From here on descriptor 0 reads as empty and descriptor 1 is standard error, for this process
    and for its children.

    Returns:
        The private descriptors of input and output.

    Raises:
        OSError: Standard input or output is closed.
    """
    try:
        os.fstat(2)
    except OSError:
        _divert(os.open(os.devnull, os.O_WRONLY), 2)
    reading = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
    writing = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
    _divert(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    return reading, writing


def _divert(source: int, target: int) -> None:
    if source != target:
        os.dup2(source, target)
        os.close(source)


def complain(text: str) -> None:
    """Write one line to standard error, if there is one."""
    line = " ".join(text.split())
    try:
        os.write(2, f"muniment-mcp: {line}\n".encode("utf-8", "backslashreplace"))
    except OSError:
        return


class Output:
    """The one writer to the harness: whole lines, from any thread."""

    def __init__(self, descriptor: int, on_broken: Callable[[], None]) -> None:
        """Write to `descriptor`; call `on_broken` once when nobody reads it any more."""
        self._descriptor = descriptor
        self._on_broken = on_broken
        self._lock = threading.Lock()
        self._closed = False

    def write(self, message: bytes) -> None:
        """Write one message (without its newline), blocking while the harness does not read."""
        with self._lock:
            if self._closed:
                return
            try:
                _write_fully(self._descriptor, message + b"\n")
            except OSError:
                self._closed = True
            else:
                return
        self._on_broken()

    def close(self) -> None:
        """Let the message that is being written end, and write no more."""
        with self._lock:
            self._closed = True


def _write_fully(descriptor: int, data: bytes) -> None:
    """Write all of `data`, also where somebody else has made the descriptor non-blocking.

    Raises:
        OSError: The other end is gone.
    """
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:
            _wait_for(descriptor, select.POLLOUT)


def _wait_for(descriptor: int, event: int) -> None:
    poller = select.poll()
    poller.register(descriptor, event)
    poller.poll()


# --- Lines


def read_lines(descriptor: int) -> Iterator[bytes | Oversize]:
    """The lines of a descriptor until its end, the last one also without its newline."""
    splitter = LineSplitter(LINE_LIMIT_BYTES)
    while True:
        try:
            chunk = os.read(descriptor, _READ_BYTES)
        except BlockingIOError:
            _wait_for(descriptor, select.POLLIN)
            continue
        except OSError:
            # A terminal that hung up, or a closed descriptor: an end like any other.
            chunk = b""
        if not chunk:
            break
        yield from splitter.feed(chunk)
    yield from splitter.rest()


class LineSplitter:
    """Cuts a stream of bytes into lines, holding no more than one line of the limit's length."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._parts: list[bytes] = []
        self._size = 0
        self._skeleton: _Skeleton | None = None

    def feed(self, chunk: bytes) -> Iterator[bytes | Oversize]:
        """The lines that end in this chunk, without their newlines."""
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._add(chunk[start:end])
            yield self._take()
            start = end + 1
        self._add(chunk[start:])

    def rest(self) -> Iterator[bytes | Oversize]:
        """What came after the last newline, if anything did."""
        if self._size:
            yield self._take()

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._skeleton is None and self._size > self._limit_bytes:
            self._skeleton = _Skeleton()
            for kept in self._parts:
                self._skeleton.feed(kept)
            self._parts.clear()
        if self._skeleton is not None:
            self._skeleton.feed(part)
        elif part:
            self._parts.append(part)

    def _take(self) -> bytes | Oversize:
        line: bytes | Oversize = (
            b"".join(self._parts)
            if self._skeleton is None
            else Oversize(self._skeleton.request_id())
        )
        self._parts.clear()
        self._size = 0
        self._skeleton = None
        return line


class _Skeleton:
    """The outermost object of a JSON text that is too big or too deep to be parsed.

    Members that are objects or arrays are kept as null, so that what stays is small enough to
    find the request's id in: a client that waits for that id is told, instead of left waiting.
    """

    _KEPT_LIMIT_BYTES = 16 * 1024
    _STEP_LIMIT = 100_000
    _STRUCTURE = re.compile(rb'["\[\]{}]')
    _STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)

    def __init__(self) -> None:
        self._kept = bytearray()
        self._depth = 0
        self._in_string = False
        self._escaping = False
        self._steps = 0

    def feed(self, chunk: bytes) -> None:
        """Take in the next bytes of the text."""
        position = 0
        while position < len(chunk) and self._steps < self._STEP_LIMIT:
            self._steps += 1
            step = self._read_string if self._in_string else self._read_structure
            position = step(chunk, position)

    def request_id(self) -> RequestId | None:
        """The id of the request that the text is, or None."""
        if self._steps >= self._STEP_LIMIT or len(self._kept) > self._KEPT_LIMIT_BYTES:
            return None
        try:
            message = _DECODER.decode(bytes(self._kept).decode())
        except ValueError:
            return None
        return _readable_id(message) if isinstance(message, dict) and "method" in message else None

    def _read_string(self, chunk: bytes, position: int) -> int:
        if self._escaping:
            self._escaping = False
            end = position + 1
        elif chunk[position] == ord('"'):
            self._in_string = False
            end = position + 1
        else:
            found = self._STRING.match(chunk, position)
            end = found.end() if found is not None else position
            if end == position:  # A backslash whose second half is in the next chunk.
                self._escaping = True
                end = position + 1
        self._keep(chunk[position:end])
        return end

    def _read_structure(self, chunk: bytes, position: int) -> int:
        found = self._STRUCTURE.search(chunk, position)
        if found is None:
            self._keep(chunk[position:])
            return len(chunk)
        self._keep(chunk[position : found.start()])
        mark = found.group()
        if mark == b'"':
            self._in_string = True
            self._keep(mark)
        elif mark in b"{[":
            self._keep(b"null" if self._depth else mark)
            self._depth += 1
        else:
            self._depth -= 1
            if self._depth == 0:
                self._keep(mark)
        return found.end()

    def _keep(self, text: bytes) -> None:
        if self._depth <= 1 and len(self._kept) <= self._KEPT_LIMIT_BYTES:
            self._kept += text


# --- Messages


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def encode(value: object) -> bytes:
    """A value as compact JSON in UTF-8, without a newline. What is no Unicode stays escaped."""
    return _ENCODER.encode(value).encode("utf-8", "backslashreplace")


def result_reply(request_id: RequestId, result: bytes) -> bytes:
    """The response that carries an encoded result."""
    return b'{"jsonrpc":"2.0","id":' + encode(request_id) + b',"result":' + result + b"}"


def error_reply(request_id: RequestId | None, code: int, text: str, data: object = None) -> bytes:
    """The response that carries an error; `data` is left out where it is None."""
    error: dict[str, object] = {"code": code, "message": text}
    if data is not None:
        error["data"] = data
    return encode({"jsonrpc": "2.0", "id": request_id, "error": error})


def parse(line: bytes | Oversize) -> Message | None:
    """The message of a line, or None where the line asks for nothing (blank, or a response).

    Raises:
        Refusal: The line is not a message that may be acted on.
    """
    if isinstance(line, Oversize):
        raise Refusal(
            INVALID_REQUEST,
            f"Invalid request: the message is longer than {LINE_LIMIT_BYTES} bytes; "
            "nothing of it was used",
            request_id=line.request_id,
        )
    line = line.removeprefix(_BYTE_ORDER_MARK).strip(b" \t\r\n")
    if not line:
        return None
    message = _decode(line)
    if not isinstance(message, dict):
        batch = "batches are not supported" if isinstance(message, list) else "not an object"
        raise Refusal(INVALID_REQUEST, f"Invalid request: {batch}")
    if "method" not in message and ("result" in message or "error" in message):
        return None
    try:
        _check_content(message, line)
        return _envelope(message, line)
    except Refusal as refusal:
        refusal.request_id = _readable_id(message)
        raise


def _decode(line: bytes) -> object:
    try:
        return _DECODER.decode(line.decode())
    except RecursionError:
        skeleton = _Skeleton()
        skeleton.feed(line)
        raise _too_deep(skeleton.request_id()) from None
    except UnicodeDecodeError as error:
        raise Refusal(
            PARSE_ERROR, f"Parse error: not UTF-8 at byte {error.start} of the message"
        ) from None
    except ValueError as error:
        raise Refusal(PARSE_ERROR, f"Parse error: {error}") from None


def _too_deep(request_id: RequestId | None = None) -> Refusal:
    return Refusal(
        INVALID_REQUEST,
        f"Invalid request: nested deeper than {DEPTH_LIMIT} levels",
        request_id=request_id,
    )


def _check_content(message: dict[str, object], line: bytes) -> None:
    """Refuse what a service behind this one could not read, or could not store."""
    with_strings = _SURROGATE_ESCAPE.search(line) is not None
    level: list[object] = [message]
    for _ in range(DEPTH_LIMIT):
        below: list[object] = []
        for container in level:
            if isinstance(container, dict):
                children = list(container.values())
                strings = [*container, *children] if with_strings else []
            elif isinstance(container, list):
                children = container
                strings = children if with_strings else []
            else:
                continue
            if not all(map(_is_unicode, strings)):
                raise Refusal(
                    INVALID_REQUEST,
                    "Invalid request: the message holds half of a surrogate pair, which is no "
                    "character; nothing of it was used",
                )
            below.extend(child for child in children if isinstance(child, dict | list))
        level = below
        if not level:
            return
    raise _too_deep()


def _is_unicode(value: object) -> bool:
    if not isinstance(value, str) or value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _envelope(message: dict[str, object], line: bytes) -> Message:
    if message.get("jsonrpc") != "2.0":
        raise Refusal(INVALID_REQUEST, 'Invalid request: "jsonrpc" must be "2.0"')
    method = message.get("method")
    if not isinstance(method, str):
        raise Refusal(INVALID_REQUEST, 'Invalid request: "method" must be a string')
    request_id = _readable_id(message)
    if "id" in message and request_id is None:
        raise Refusal(INVALID_REQUEST, 'Invalid request: "id" must be a string or an integer')
    params = message.get("params")
    if params is None:
        params = {}
    if not isinstance(params, dict):
        raise Refusal(INVALID_PARAMS, 'Invalid params: "params" must be an object')
    return Message(line, method, params, request_id)


def _readable_id(message: dict[str, object]) -> RequestId | None:
    value = message.get("id")
    if isinstance(value, bool) or not isinstance(value, int | str) or not _is_unicode(value):
        return None
    return value
