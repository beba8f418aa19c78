"""The supervisor is started once, whole, and apart from whoever started it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from muniment.kit import supervise
from muniment.kit.errors import PreconditionError, UnavailableError
from muniment.kit.paths import Home
from tests.waiting import until

STARTER = """\
import sys
from pathlib import Path
from muniment.kit import supervise
from muniment.kit.paths import Home

supervise.shipped_configuration = lambda: Path(sys.argv[2])
print(supervise.ensure_running(Home(Path(sys.argv[1])), deadline_seconds=30), flush=True)
if "stay" in sys.argv:
    sys.stdin.read()
"""

LISTENER = """\
import signal, socket, sys

if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
door = socket.socket(socket.AF_UNIX)
door.bind(sys.argv[1])
door.listen()
print("ready", flush=True)
while True:
    door.accept()
"""


@pytest.fixture
def home() -> Iterator[Home]:
    """A home with short socket paths. Its supervisor does not outlive the test."""
    with tempfile.TemporaryDirectory(prefix="mu-") as folder:
        home = Home(Path(folder).resolve() / "home")
        yield home
        end(home, signal.SIGKILL)


@pytest.fixture
def no_services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The shipped configuration without its programs, in its place."""
    text = supervise.shipped_configuration().read_text()
    bare = tmp_path / "supervisord.conf"
    bare.write_text(text[: text.index("[program:")])
    monkeypatch.setattr(supervise, "shipped_configuration", lambda: bare)
    return bare


def end(home: Home, number: int) -> None:
    with suppress(OSError):
        os.kill(supervisor_pid(home), number)
        until(lambda: not supervise.supervisor_lives(home), "the supervisor ends")
    shutil.rmtree(home.runtime, ignore_errors=True)


def supervisor_pid(home: Home) -> int:
    return int((home.runtime / "supervisord.pid").read_text())


def starter(home: Home, configuration: Path, *words: str) -> list[str]:
    return [sys.executable, "-c", STARTER, str(home.path), str(configuration), *words]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_the_first_starts_it_and_the_second_finds_it(home: Home, no_services: Path) -> None:
    assert not supervise.supervisor_lives(home)
    assert supervise.ensure_running(home, deadline_seconds=20)
    assert not supervise.ensure_running(home, deadline_seconds=20)
    assert supervise.supervisor_lives(home)


@pytest.mark.usefixtures("no_services")
def test_nobody_else_can_reach_it(home: Home) -> None:
    supervise.ensure_running(home, deadline_seconds=20)
    for folder in (home.path, home.runtime, home.logs, home.runtime / "conf.d"):
        assert mode(folder) == 0o700
    assert mode(home.socket("supervisor")) == 0o600
    for file in (*home.logs.iterdir(), home.runtime / "supervisord.pid"):
        assert mode(file) == 0o600


def test_sixteen_starters_start_one(home: Home, no_services: Path) -> None:
    starters = [
        subprocess.Popen(starter(home, no_services), stdout=subprocess.PIPE, text=True)
        for _ in range(16)
    ]
    answers = [one.communicate(timeout=60)[0].strip() for one in starters]
    assert sorted(answers) == ["False"] * 15 + ["True"]
    log = (home.logs / "supervisord.log").read_text()
    assert log.count("supervisord started with pid") == 1


@pytest.mark.usefixtures("no_services")
def test_a_stale_socket_is_replaced(home: Home) -> None:
    home.runtime.mkdir(mode=0o700, parents=True)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(home.socket("supervisor")))
    assert supervise.ensure_running(home, deadline_seconds=20)


@pytest.mark.usefixtures("no_services")
def test_a_killed_supervisor_is_replaced(home: Home) -> None:
    supervise.ensure_running(home, deadline_seconds=20)
    os.kill(supervisor_pid(home), signal.SIGKILL)
    until(lambda: not supervise.supervisor_lives(home), "the supervisor is dead")
    assert supervise.ensure_running(home, deadline_seconds=20)


def test_looking_for_one_makes_and_changes_nothing(home: Home) -> None:
    home.runtime.mkdir(mode=0o700, parents=True)
    assert not supervise.supervisor_lives(home)
    assert not list(home.runtime.iterdir())
    home.runtime.rmdir()
    home.runtime.write_text("")
    assert not supervise.supervisor_lives(home)


@pytest.mark.usefixtures("no_services")
def test_what_a_killed_one_left_is_removed_and_nothing_of_one_that_lives(home: Home) -> None:
    left = [home.socket("supervisor"), home.runtime / "supervisord.pid"]
    supervise.ensure_running(home, deadline_seconds=20)
    supervise.remove_leftovers(home)
    assert all(path.exists() for path in left)
    os.kill(supervisor_pid(home), signal.SIGKILL)
    until(lambda: not supervise.supervisor_lives(home), "the supervisor is dead")
    supervise.remove_leftovers(home)
    assert not any(path.exists() for path in left)


@pytest.mark.usefixtures("no_services")
def test_one_that_goes_down_is_waited_for_and_replaced(home: Home) -> None:
    supervise.ensure_running(home, deadline_seconds=20)
    first = supervisor_pid(home)
    os.kill(first, signal.SIGTERM)
    supervise.ensure_running(home, deadline_seconds=20)
    until(lambda: (home.runtime / "supervisord.pid").exists(), "there is a supervisor")
    until(lambda: supervisor_pid(home) != first, "it is another one")


def test_its_environment_is_clean(home: Home, no_services: Path) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": "/nowhere",
        "LC_ALL": "C.UTF-8",
        "XDG_CONFIG_HOME": "/nowhere/config",
        "MUNIMENT_LOG_LEVEL": "debug",
        "SIBYL_MEMORY_DB": "/nowhere/other.db",
        "MUNIMENT_SESSION": "one caller's",
        "MUNIMENT_PROJECT_ROOT": "/one/caller",
        "ANTHROPIC_API_KEY": "secret",
        "PYTHONPATH": "",
    }
    subprocess.run(starter(home, no_services), env=environment, check=True, timeout=60)
    seen = Path(f"/proc/{supervisor_pid(home)}/environ")
    if not seen.exists():
        pytest.skip("needs /proc")
    variables = dict(one.split("=", 1) for one in seen.read_text().strip("\0").split("\0"))
    ours = {"MUNIMENT_HOME", "SUPERVISED_RUNTIME", "SUPERVISED_LOGS", "SUPERVISED_PYTHON"}
    passed = set(environment) - {
        "MUNIMENT_SESSION", "MUNIMENT_PROJECT_ROOT", "ANTHROPIC_API_KEY", "PYTHONPATH",
    }  # fmt: skip
    assert set(variables) == passed | ours
    assert variables["MUNIMENT_HOME"] == str(home.path)


def test_it_holds_no_pipe_of_its_starter(home: Home, no_services: Path) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    started = subprocess.run(
        starter(home, no_services), capture_output=True, close_fds=False, check=True, timeout=60
    )
    os.close(writing)
    assert started.stdout.strip() == b"True"
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read() == b""  # Nobody has the other end open any more.
    assert supervise.supervisor_lives(home)


def test_it_survives_its_starter_and_the_starters_group(home: Home, no_services: Path) -> None:
    with subprocess.Popen(
        starter(home, no_services, "stay"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == b"True"
        pid = supervisor_pid(home)
        assert os.getsid(pid) != process.pid
        os.killpg(process.pid, signal.SIGKILL)
    assert not supervise.ensure_running(home, deadline_seconds=20)
    assert supervisor_pid(home) == pid


@pytest.mark.usefixtures("no_services")
def test_it_is_no_child_of_its_starter(home: Home) -> None:
    supervise.ensure_running(home, deadline_seconds=20)
    with pytest.raises(ChildProcessError):
        os.waitpid(supervisor_pid(home), os.WNOHANG)


@pytest.mark.parametrize("name", ["with space", "100%s #; 'x' \"y\" [z]", "漢字", "深" * 70])
@pytest.mark.usefixtures("no_services")
def test_any_home_will_do(home: Home, name: str) -> None:
    awkward = Home(home.path / name)
    try:
        assert supervise.ensure_running(awkward, deadline_seconds=20)
        assert not supervise.ensure_running(awkward, deadline_seconds=20)
        assert (awkward.logs / "supervisord.log").exists()
    finally:
        end(awkward, signal.SIGKILL)


@pytest.mark.usefixtures("no_services")
def test_programs_of_the_users_own_are_included(home: Home) -> None:
    awkward = Home(home.path / "a b")
    own = awkward.runtime / "conf.d"
    own.mkdir(mode=0o700, parents=True)
    awkward.runtime.chmod(0o700)
    (own / "mine.conf").write_text("[program:mine]\ncommand = sleep 1000\n")
    try:
        supervise.ensure_running(awkward, deadline_seconds=20)
        log = awkward.logs / "supervisord.log"
        until(lambda: "spawned: 'mine'" in log.read_text(), "the program runs")
    finally:
        end(awkward, signal.SIGTERM)


@pytest.mark.usefixtures("no_services")
def test_why_it_cannot_start_is_said(home: Home) -> None:
    own = home.runtime / "conf.d"
    own.mkdir(mode=0o700, parents=True)
    home.runtime.chmod(0o700)
    (own / "wrong.conf").write_text("[program:wrong]\n")
    with pytest.raises(PreconditionError, match="does not specify a command") as raised:
        supervise.ensure_running(home, deadline_seconds=20)
    assert raised.value.reason == "SUPERVISOR_FAILED"


@pytest.mark.usefixtures("no_services")
def test_a_silent_one_costs_no_more_than_the_deadline(home: Home) -> None:
    home.runtime.mkdir(mode=0o700, parents=True)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(home.socket("supervisor")))
        silent.listen()
        with pytest.raises(UnavailableError, match=r"within 0\.2 s"):
            supervise.ensure_running(home, deadline_seconds=0.2)


def test_a_runtime_folder_that_others_may_enter_is_refused(home: Home) -> None:
    home.runtime.mkdir(parents=True)
    home.runtime.chmod(0o755)
    with pytest.raises(PreconditionError) as raised:
        supervise.ensure_running(home, deadline_seconds=20)
    assert raised.value.fix == f"chmod 700 {home.runtime}"


def test_a_runtime_folder_that_is_a_link_is_refused(home: Home, tmp_path: Path) -> None:
    home.path.mkdir()
    home.runtime.symlink_to(tmp_path)
    with pytest.raises(PreconditionError, match="link"):
        supervise.ensure_running(home, deadline_seconds=20)


def test_a_home_that_is_a_file_is_refused(home: Home) -> None:
    home.path.write_text("")
    with pytest.raises(PreconditionError, match="cannot be used"):
        supervise.ensure_running(home, deadline_seconds=20)


@pytest.mark.parametrize("words", [[], ["stubborn"]])
def test_what_a_killed_supervisor_left_is_ended(home: Home, words: list[str]) -> None:
    home.runtime.mkdir(mode=0o700, parents=True)
    command = [sys.executable, "-c", LISTENER, str(home.socket("memory")), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as left:
        assert left.stdout is not None
        left.stdout.readline()
        assert supervise.end_leftovers(home, deadline_seconds=1.5 if words else 20)
        assert left.wait(timeout=20) == -(signal.SIGKILL if words else signal.SIGTERM)
    assert not supervise.end_leftovers(home, deadline_seconds=20)


def test_importing_it_is_cheap() -> None:
    code = "import sys, muniment.kit.supervise; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    heavy = {"asyncio", "http", "logging", "subprocess", "threading", "xmlrpc"}
    assert not heavy & set(loaded)
