"""The worker's socket: accepts fronts, reads their frames, drains when told to stop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import structlog

from muniment.bridge.calls import Greeting
from muniment.bridge.catalogue import NAMES, PROFILES, Catalogue
from muniment.bridge.connection import FrontConnection, Worker, decode, encode
from muniment.bridge.eras import SUBSCRIPTIONS_LIMIT
from muniment.bridge.protocol import make_server
from muniment.bridge.subscriptions import Changes, Listening
from muniment.bridge.tools.code import GET_REPO_MAP, IMPACT_OF_CHANGE, QUERY_SYMBOL
from muniment.bridge.tools.memory import COMMIT_EPISODE, PIN, RECALL
from muniment.bridge.tools.operability import STATUS
from muniment.bridge.tools.records import RECORD_TOOLS
from muniment.bridge.tools.session import RESTORE, SNAPSHOT
from muniment.kit.errors import PreconditionError
from muniment.kit.paths import Home
from muniment.kit.server import forget_failure, free_socket
from muniment.kit.settings import Settings
from muniment.workflows.clients import open_clients

__all__ = ["CATALOGUE", "FRAME_LIMIT_BYTES", "PROTOCOL", "run_worker"]

CATALOGUE = Catalogue(
    (
        *(COMMIT_EPISODE, PIN, RECALL, GET_REPO_MAP, QUERY_SYMBOL, IMPACT_OF_CHANGE),
        *(SNAPSHOT, RESTORE, STATUS, *RECORD_TOOLS),
    )
)
"""Everything that the bridge serves, in the order of the context reference, then of the vault's."""

PROTOCOL = 1
"""Version of the frames between front and worker."""

FRAME_LIMIT_BYTES = 100 * 1024 * 1024
"""Longest frame: an episode of 16 MiB in which JSON escapes every byte, and some."""

_log = structlog.get_logger()


async def run_worker(home: Home, settings: Settings) -> None:
    """Serve fronts until told to stop, then finish what they asked for."""
    path = home.socket("worker")
    free_socket(path)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with open_clients(home) as clients:
        changes = Changes(clients)
        server = make_server(CATALOGUE, Listening(changes))
        worker = Worker(server, CATALOGUE, clients, settings, changes)
        serving: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(_serve_front(worker, reader, writer, stop))
            serving.add(task)
            task.add_done_callback(serving.discard)

        listening = await asyncio.start_unix_server(accept, path, limit=FRAME_LIMIT_BYTES)
        path.chmod(0o600)
        forget_failure(home, "worker")
        _log.info("serving", socket=str(path))
        await stop.wait()
        _log.info("draining", seconds=settings.drain_seconds, connections=len(serving))
        listening.close()
        path.unlink(missing_ok=True)
        if serving:
            await asyncio.wait(serving, timeout=settings.drain_seconds)
        for task in serving:
            task.cancel()
    _log.info("stopped")


async def _serve_front(
    worker: Worker,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    stop: asyncio.Event,
) -> None:
    stopping = asyncio.create_task(stop.wait())
    connection: FrontConnection | None = None
    try:
        hello = await reader.readline()
        if not hello:
            return  # Somebody only looked whether the worker lives.
        greeting = _greeting(decode(hello))
        connection = FrontConnection(worker, greeting, lambda frame: writer.write(encode(frame)))
        while line := await _next_line(reader, stopping):
            connection.receive(decode(line))
            await writer.drain()
        await connection.finish()
        await writer.drain()
    except PreconditionError as refusal:
        writer.write(encode({"refused": str(refusal)}))
    except (ConnectionError, ValueError, KeyError) as error:
        # A front that vanished takes its unread replies with it; its calls run to their end.
        _log.warning("front dropped", error=f"{type(error).__name__}: {error}")
        if connection is not None:
            connection.stop_telling()
    finally:
        stopping.cancel()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def _next_line(reader: asyncio.StreamReader, stopping: asyncio.Task[Any]) -> bytes:
    """The next frame; nothing at the front's end or when the worker stops."""
    line = asyncio.create_task(reader.readline())
    await asyncio.wait((line, stopping), return_when=asyncio.FIRST_COMPLETED)
    if line.done():
        return line.result()
    line.cancel()
    return b""


def _greeting(frame: Mapping[str, Any]) -> Greeting:
    hello = frame["hello"]
    if not isinstance(hello, dict) or not isinstance(hello["environment"], dict):
        raise ValueError("the greeting is not an object with an environment")
    if hello["protocol"] != PROTOCOL:
        raise PreconditionError(
            f"the front speaks protocol {hello['protocol']}, this worker {PROTOCOL}",
            reason="FRONT_PROTOCOL_UNKNOWN",
            fix="restart the harness, or run `muniment restart worker`",
        )
    if hello["profile"] not in PROFILES or hello["names"] not in NAMES:
        raise ValueError("unknown profile or names")
    subscribed = hello.get("subscribed", [])
    texts = (hello["connection"], hello["cwd"], *hello["environment"].values(), *subscribed)
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("connection, folder, environment and subscriptions are texts")
    if len(subscribed) > SUBSCRIPTIONS_LIMIT:
        raise ValueError("more is subscribed to than may be")
    return Greeting(
        connection=hello["connection"],
        profile=hello["profile"],
        names=hello["names"],
        cwd=hello["cwd"],
        environment=hello["environment"],
        subscribed=tuple(subscribed),
    )
