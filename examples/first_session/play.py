"""Play the first session: `python examples/first_session/play.py [--home DIR] [--keep] [--plain]`.

Exits with 0 when everything held, with 1 when something did not, with 130 when interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

# Run as a file, this folder is on the path and the repository is not.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.first_session import script
from examples.first_session.checks import Check
from examples.first_session.stage import Stage
from examples.first_session.workspace import CommandError, Workspace, bridge_command, prepare

if TYPE_CHECKING:
    from examples.first_session.performance import Play

__all__ = ["main"]

_SESSION_FILE = Path(__file__).resolve().parent / "session.jsonl"

_Handler = Callable[[int, FrameType | None], None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the session and return the exit code."""
    options = _options(arguments)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    stage = Stage(plain=options.plain)
    with _told_to_stop(_interrupt):
        return _play(options, stage)


def _play(options: argparse.Namespace, stage: Stage) -> int:
    workspace = prepare(options.home)
    # The MCP client logs; a person who watches wants the story.
    logging.basicConfig(filename=workspace.player_log, level=logging.INFO)
    code = 1
    try:
        code = _perform(workspace, stage)
    except (KeyboardInterrupt, asyncio.CancelledError):
        stage.say("\nInterrupted.")
        code = 130
    finally:
        _leave(workspace, stage, failed=code == 1, keep=options.keep)
    return code


def _perform(workspace: Workspace, stage: Stage) -> int:
    """Play in this workspace; say how it went, and where to look when it went wrong."""
    started = time.perf_counter()
    _open(workspace, stage)
    # The MCP client takes a moment to load, and the reader has something to read by now.
    from examples.first_session.performance import Play

    play: Play | None = None
    try:
        play = Play(script.read(_SESSION_FILE), workspace, stage)
        results = asyncio.run(_until_told_to_stop(play))
    except Exception as error:
        logging.getLogger("play").exception("the session stopped")
        stage.fail(f"Stopped at {play.at if play else 'the session file'}: {_cause(error)}")
        _show_logs(workspace, stage)
        return 1
    stage.heading("Verdict")
    stage.verdict(results)
    failed = [check for check in results if not check.holds]
    if failed:
        stage.fail(f"{len(failed)} of {len(results)} did not hold, the first: {failed[0].claim}")
        _show_logs(workspace, stage)
        return 1
    seconds = time.perf_counter() - started
    stage.say(f"\nAll {len(results)} held. Played in {seconds:.0f} s.", style="bold green")
    return 0


async def _until_told_to_stop(play: Play) -> list[Check]:
    """Play, and take other signals as asyncio takes Ctrl-C: as a reason to end tidily."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None

    def cancel(number: int, _frame: FrameType | None) -> None:
        _leave_terminal(number)
        loop.call_soon_threadsafe(task.cancel)

    with _told_to_stop(cancel):
        return await play.run()


@contextmanager
def _told_to_stop(handler: _Handler) -> Iterator[None]:
    """Handle SIGTERM, and SIGHUP unless that is ignored, as under nohup."""
    numbers = [signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, action in before.items():
            signal.signal(number, action)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    _leave_terminal(number)
    raise KeyboardInterrupt


def _leave_terminal(number: int) -> None:
    """Print to nowhere from here on, if the signal says that the terminal is gone."""
    if number == signal.SIGHUP:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere, stream.fileno())


def _open(workspace: Workspace, stage: Stage) -> None:
    stage.heading("Muniment: a first session")
    stage.say(
        "A coding agent works for two days on chandler, the stock service of a ship chandlery. The "
        "turns are a script; every call is real: it goes over MCP to a bridge, and on to services "
        "that were started for this."
    )
    ends = "thrown away at the end" if workspace.owns_home else "yours, its services stay up"
    stage.facts(
        [
            ("home", f"{workspace.home} ({ends})"),
            ("repository", str(workspace.repository)),
            ("spawned", " ".join(bridge_command())),
        ]
    )


def _leave(workspace: Workspace, stage: Stage, *, failed: bool, keep: bool) -> None:
    """Stop what was started, and remove the folder unless somebody wants to look at it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # A second one would leave services behind.
    if workspace.owns_home:
        try:
            with stage.waiting("Stopping the services …"):
                workspace.stop_services()
        except CommandError as error:
            stage.fail(f"The services of {workspace.home} may still run: {error}")
            keep = True
    if not keep and not failed:
        workspace.remove()
        return
    commands = Path(sys.executable).parent
    stage.say(f"\nKept: {workspace.folder}. To look around in it:")
    stage.say(f"  cd {workspace.repository}")
    variables = " ".join(f"{name}={value}" for name, value in workspace.variables.items())
    stage.say(f"  export {variables} PATH={commands}:$PATH")
    stage.say("  muniment up && muniment recall 'staging port' && muniment down")


def _show_logs(workspace: Workspace, stage: Stage) -> None:
    stage.facts(
        [
            ("bridge said", workspace.last_words_of_the_bridge()),
            ("its log", str(workspace.bridge_log)),
            ("the services' logs", str(workspace.home / "logs")),
            ("the client's log", str(workspace.player_log)),
        ]
    )


def _cause(error: BaseException) -> str:
    """What went wrong, in words: the MCP client wraps it once for every task that it ran."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="play.py", description="Play a coding session against a real Muniment."
    )
    parser.add_argument(
        "--home",
        type=Path,
        metavar="DIR",
        help="play in this data home (its memory service is killed once) and leave it running; "
        "default: a new home that is thrown away",
    )
    parser.add_argument("--keep", action="store_true", help="keep the folders, and say where")
    parser.add_argument("--plain", action="store_true", help="plain text, also in a terminal")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
