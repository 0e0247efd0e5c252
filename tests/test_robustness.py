"""What goes wrong is said in one line, and hurts neither the program nor the next run."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lineheat.session.linux import process_mark
from lineheat.targets.runtime import Family, Runtime
from lineheat_runner import RUNTIMES, Lineheat, Outcome, one_of_each_family, outcome_of, run_plain, wait_until

RUNTIME = next(runtime for runtime in (*RUNTIMES, None) if runtime and runtime.family is Family.LUA54)
is_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can mount a small disk")
each_family = pytest.mark.parametrize("runtime", one_of_each_family(), ids=lambda runtime: runtime.name)

ENDLESS = "io.write('running\\n') io.flush()\nlocal n = 0\nwhile true do\n  n = n + 1\nend\n"
SHORT = "local n = 0\nfor i = 1, 10 do\n  n = n + i\nend\nprint(n)\n"


def check_refused(outcome: Outcome, status: int, *words: str) -> None:
    """One line that names the thing, the right status, and no traceback."""
    assert outcome.status == status, outcome
    assert outcome.stderr.startswith("lineheat: "), outcome.stderr
    assert outcome.stderr.count("\n") == 1, outcome.stderr
    assert "Traceback" not in outcome.stderr
    for word in words:
        assert word in outcome.stderr
    assert outcome.stdout == ""


@pytest.fixture
def run(lineheat: Lineheat, tmp_path: Path) -> Callable[..., Outcome]:
    """lineheat run, in tmp_path, without a report."""

    def call(*arguments: str | Path, **options: Any) -> Outcome:
        runtime = ("--mode", "trace", "--runtime", RUNTIME.name)
        return lineheat("run", *runtime, "--report", "none", *arguments, cwd=tmp_path, **options)

    return call


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "short.lua"
    path.write_text(SHORT)
    return path


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    path = tmp_path / "endless.lua"
    path.write_text(ENDLESS)
    return path


# ---- The script ---------------------------------------------------------------------------------


def test_no_such_script(run: Callable[..., Outcome]) -> None:
    check_refused(run("nowhere.lua"), 1, "nowhere.lua")


def test_script_is_a_folder(run: Callable[..., Outcome], tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    check_refused(run("folder"), 1, "folder")


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything; see the test below")
def test_script_that_may_not_be_read(run: Callable[..., Outcome], script: Path) -> None:
    script.chmod(0)
    check_refused(run(script), 1, "short.lua", "Permission denied")


@is_root
def test_script_that_another_user_may_not_read(lineheat: Lineheat, script: Path) -> None:
    """As the user nobody, for root may read everything."""
    nobody = 65534
    try:
        subprocess.run([sys.executable, "-c", ""], user=nobody, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("the user nobody may not run this Python")
    script.chmod(0o600)
    for folder in (script.parent, *script.parents):
        if folder.stat().st_mode & 0o001 == 0:
            pytest.skip(f"the user nobody may not enter {folder}")
    check_refused(lineheat("run", script, user=nobody), 1, "short.lua", "Permission denied")


def test_syntax_error_is_the_interpreters_to_tell(lineheat: Lineheat, tmp_path: Path) -> None:
    """As the interpreter alone: its message, its status; then one line of ours."""
    (tmp_path / "wrong.lua").write_text("local x =\nprint(\n")
    outcome = lineheat("run", "--mode", "trace", "--runtime", RUNTIME.name, "wrong.lua", cwd=tmp_path)
    plain = run_plain(RUNTIME, "wrong.lua", cwd=tmp_path)
    assert outcome.status == plain.status == 1
    assert outcome.stderr.startswith(plain.stderr)
    ours = outcome.stderr[len(plain.stderr) :]
    assert ours.count("\n") == 1
    assert ours.startswith("lineheat: ")
    assert "Traceback" not in ours


# ---- Wrong usage --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ("run",),
        ("run", "--"),
        ("run", "--mode", "guess", "x.lua"),
        ("run", "--mode"),
        ("run", "--runtime", "lua9.9", "x.lua"),
        ("run", "--mode", "trace", "--runtime", "", "x.lua"),
        ("run", "--mode", "trace", "--runtime", "embedded:9.9", "x.lua"),
        ("run", "--report", "poem", "x.lua"),
        ("run", "--unknown", "x.lua"),
        ("show",),
        ("show", "--top", "0", "x.heat"),
        ("show", "--top", "many", "x.heat"),
        ("show", "--lines", "--tree", "x.heat"),
        ("sing",),
        ("--sing",),
    ],
    ids=" ".join,
)
def test_wrong_usage(lineheat: Lineheat, script: Path, arguments: tuple[str, ...]) -> None:
    shutil.copy(script, script.with_name("x.lua"))
    check_refused(lineheat(*arguments, cwd=script.parent), 2)


def test_options_behind_the_script_are_the_scripts(run: Callable[..., Outcome], tmp_path: Path) -> None:
    (tmp_path / "words.lua").write_text("print(...)")
    assert run("words.lua", "--mode", "guess", "--", "-o").stdout == "--mode\tguess\t--\t-o\n"


# ---- The interpreter ----------------------------------------------------------------------------


def test_no_such_interpreter(lineheat: Lineheat, script: Path) -> None:
    check_refused(lineheat("run", "--mode", "trace", "--runtime", "./no/lua", script), 1, "no/lua")


def test_an_interpreter_that_is_no_program(lineheat: Lineheat, script: Path) -> None:
    program = script.with_name("lua")
    program.write_text("not a program")
    check_refused(lineheat("run", "--mode", "trace", "--runtime", program, script), 1, str(program))
    program.chmod(0o755)
    check_refused(lineheat("run", "--mode", "trace", "--runtime", program, script), 1, str(program))


def test_an_interpreter_that_is_no_lua(lineheat: Lineheat, script: Path) -> None:
    check_refused(lineheat("run", "--mode", "trace", "--runtime", "/bin/true", script), 1, "/bin/true")
    check_refused(lineheat("run", "--mode", "trace", "--runtime", "/bin/cat", script), 1, "/bin/cat")


def test_an_interpreter_that_is_a_folder(lineheat: Lineheat, script: Path) -> None:
    check_refused(
        lineheat("run", "--mode", "trace", "--runtime", f"{script.parent}/", script), 1, str(script.parent)
    )


# ---- Where the profile goes ---------------------------------------------------------------------


def test_folder_of_the_output_is_missing(run: Callable[..., Outcome], script: Path) -> None:
    check_refused(run("-o", "no/such/folder/x.heat", script), 1, "no/such/folder", "x.heat")


def test_output_is_a_folder(run: Callable[..., Outcome], script: Path) -> None:
    check_refused(run("-o", script.parent, script), 1, str(script.parent))


@is_root
def test_output_on_a_full_disk(run: Callable[..., Outcome], script: Path, small_disk: Path) -> None:
    """The run succeeds; the profile stays in the session folder, and a line says so."""
    (small_disk / "filler").write_bytes(bytes(200 << 10))
    outcome = run("-o", small_disk / "x.heat", script)
    assert outcome.stdout == "55\n"
    assert outcome.status == 0
    assert not list(small_disk.glob("*x.heat*"))
    assert outcome.stderr.startswith("lineheat: ")
    assert outcome.stderr.count("\n") == 1


@is_root
@each_family
def test_recording_stops_when_the_disk_is_full(
    lineheat: Lineheat, tmp_path: Path, small_disk: Path, runtime: Runtime
) -> None:
    """The target goes on; what was counted is there, with a note."""
    lineheat.extra_environment = {"XDG_STATE_HOME": str(small_disk)}
    lineheat.memory.rmdir()
    lineheat.memory.symlink_to(small_disk)
    (tmp_path / "grows.lua").write_text(
        "local compile = loadstring or load\n"
        "local sum = 0\n"
        "for i = 1, 3000 do\n"
        "  sum = sum + compile('local n = ' .. i .. ' return n' .. (' '):rep(500))()\n"
        "end\n"
        "print(sum)\n"
    )
    outcome = lineheat(
        "run",
        "--mode",
        "trace",
        "--runtime",
        runtime.name,
        "-o",
        tmp_path / "x.heat",
        "grows.lua",
        cwd=tmp_path,
    )
    assert outcome.stdout == "4501500\n"
    assert outcome.status == 0
    assert "Traceback" not in outcome.stderr


@is_root
@pytest.mark.parametrize("size", ["4k", "64k"])
def test_no_room_in_memory(
    run: Callable[..., Outcome], lineheat: Lineheat, script: Path, tmp_path: Path, size: str
) -> None:
    """A small memory folder is passed over."""
    with mounted(lineheat.memory, size):
        outcome = run("-o", tmp_path / "x.heat", script)
        assert outcome == Outcome("55\n", "", 0)
    assert lineheat.show(tmp_path / "x.heat")["session"]["state"] == "finished"


@each_family
def test_limit_on_the_size_of_files(
    lineheat: Lineheat, script: Path, tmp_path: Path, runtime: Runtime
) -> None:
    """ulimit -f: too small to begin with is a refusal with its reason, and never a SIGXFSZ."""
    outcome = run_limited(lineheat, 100, "--runtime", runtime.name, "-o", tmp_path / "x.heat", script)
    check_refused(outcome, 1, "there is no room for the heat file")


def test_limit_below_the_size_of_our_own_files(lineheat: Lineheat, script: Path) -> None:
    check_refused(run_limited(lineheat, 0, "--runtime", RUNTIME.name, script), 1, str(lineheat.state))


def run_limited(lineheat: Lineheat, kibibytes: int, *arguments: str | Path) -> Outcome:
    shell = ["bash", "-c", f'ulimit -f {kibibytes}; exec "$@"', "bash", *lineheat.command]
    return outcome_of(
        [*shell, "run", "--mode", "trace", "--report", "none", *map(str, arguments)], env=lineheat.environment
    )


@contextmanager
def mounted(folder: Path, size: str) -> Iterator[None]:
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("no disk can be mounted here, not even by root")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    with mounted(folder, "256k"):
        yield folder


# ---- Profiles -----------------------------------------------------------------------------------


@pytest.fixture
def profile(run: Callable[..., Outcome], script: Path, tmp_path: Path) -> Path:
    path = tmp_path / "good.heat"
    assert run("-o", path, script).status == 0
    return path


@pytest.mark.parametrize("verb", ["show", "annotate"])
def test_no_such_profile(lineheat: Lineheat, verb: str) -> None:
    check_refused(lineheat(verb, "nowhere.heat"), 1, "nowhere.heat")


@pytest.mark.parametrize("verb", ["show", "annotate"])
def test_profile_is_a_folder(lineheat: Lineheat, tmp_path: Path, verb: str) -> None:
    check_refused(lineheat(verb, tmp_path), 1, str(tmp_path))


@pytest.mark.parametrize("verb", ["show", "annotate"])
@pytest.mark.parametrize(
    "content", [b"", b"LINEHEAT", b"print(1)\n", b"\0" * 5000, b"LINEHEAT" + b"\xff" * 5000]
)
def test_not_a_profile(lineheat: Lineheat, tmp_path: Path, verb: str, content: bytes) -> None:
    (tmp_path / "bad.heat").write_bytes(content)
    check_refused(lineheat(verb, tmp_path / "bad.heat"), 1, "bad.heat")


def test_profile_of_another_version(lineheat: Lineheat, profile: Path) -> None:
    content = bytearray(profile.read_bytes())
    content[8:12] = (99).to_bytes(4, "little")
    profile.write_bytes(content)
    check_refused(lineheat("show", profile), 1, "good.heat", "99")


@pytest.mark.parametrize("parts", [2, 3, 5, 50])
def test_profile_that_is_cut(lineheat: Lineheat, profile: Path, parts: int) -> None:
    """Shown as far as it goes, and it says what is missing."""
    content = profile.read_bytes()
    profile.write_bytes(content[: len(content) // parts])
    outcome = lineheat("show", profile)
    assert outcome.status in (0, 1)
    assert "Traceback" not in outcome.stderr
    if outcome.status == 0:
        assert "missing" in outcome.stdout + outcome.stderr
        assert lineheat.show(profile)["session"]["missing"]
    else:
        check_refused(outcome, 1, "good.heat")


@pytest.mark.parametrize("start", range(4096, 30000, 2500))
def test_profile_that_is_garbled(lineheat: Lineheat, profile: Path, start: int) -> None:
    content = bytearray(profile.read_bytes())
    content[start : start + 2000] = bytes((7 * i + start) % 251 for i in range(2000))
    profile.write_bytes(content)
    for arguments in (
        ("show", profile),
        ("show", "--json", profile),
        ("show", "--tree", profile),
        ("annotate", profile),
    ):
        outcome = lineheat(*arguments)
        assert outcome.status in (0, 1)
        assert "Traceback" not in outcome.stderr
        assert outcome.stderr.count("\n") <= 1


def test_profile_of_a_running_target(lineheat: Lineheat, endless: Path, tmp_path: Path) -> None:
    """By its session's ID or by the path it will have, while it grows."""
    runner, session = start_endless(lineheat, endless, "-o", tmp_path / "x.heat")
    for name in (session["id"], str(tmp_path / "x.heat"), session["profile"]):
        assert lineheat.show(name)["session"]["state"] == "recording"
    assert lineheat("annotate", session["id"]).status == 0
    end(runner, session["pid"])
    assert lineheat.show(tmp_path / "x.heat")["session"]["state"] == "died"


def test_profile_of_a_target_that_crashed(lineheat: Lineheat, tmp_path: Path) -> None:
    (tmp_path / "crash.lua").write_text(
        "local n = 0\nfor i = 1, 10 do\n  n = n + i\nend\nos.execute('kill -SEGV $PPID')\n"
    )
    outcome = lineheat(
        "run", "--mode", "trace", "--runtime", RUNTIME.name, "-o", "x.heat", "crash.lua", cwd=tmp_path
    )
    assert outcome.status == 128 + signal.SIGSEGV
    assert "Traceback" not in outcome.stderr
    report = lineheat.show(tmp_path / "x.heat")
    assert (report["session"]["state"], report["session"]["exit_status"]) == ("died", 139)
    assert [line["hits"] for line in report["lines"] if line["line"] == 3] == [10]


# ---- Ends, from outside -------------------------------------------------------------------------


def start_endless(
    lineheat: Lineheat, endless: Path, *options: str | Path, **process: Any
) -> "tuple[subprocess.Popen[bytes], dict[str, Any]]":
    """A runner with its endless target, once that is at work."""
    runtime = ("--mode", "trace", "--runtime", RUNTIME.name, "--report", "none")
    runner = lineheat.start(
        "run", *runtime, *options, endless, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **process
    )
    assert runner.stdout is not None
    assert runner.stdout.readline() == b"running\n"
    (session,) = lineheat.sessions()
    return runner, session


def end(runner: "subprocess.Popen[bytes]", pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    runner.communicate(timeout=20)
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the target is gone")


@each_family
def test_ctrl_c_reaches_the_target_as_it_would_alone(
    lineheat: Lineheat, tmp_path: Path, runtime: Runtime
) -> None:
    """Sent to the process group: the interpreter says "interrupted!"; the profile is whole."""
    (tmp_path / "endless.lua").write_text(ENDLESS)
    run = (
        "run",
        "--mode",
        "trace",
        "--runtime",
        runtime.name,
        "--report",
        "none",
        "-o",
        "x.heat",
        "endless.lua",
    )
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    runner = lineheat.start(*run, cwd=tmp_path, start_new_session=True, **streams)
    assert runner.stdout is not None
    assert runner.stdout.readline() == b"running\n"
    (session,) = lineheat.sessions()
    os.killpg(runner.pid, signal.SIGINT)
    try:
        _, said = runner.communicate(timeout=15)
    except subprocess.TimeoutExpired:
        end(runner, session["pid"])
        pytest.fail("the target does not end on Ctrl-C")
    assert b"interrupted!" in said
    assert b"Traceback" not in said
    assert runner.returncode == 1
    report = lineheat.show(tmp_path / "x.heat")
    assert (report["session"]["state"], report["session"]["exit_status"]) == ("finished", 1)
    assert any(line["line"] == 4 and line["hits"] for line in report["lines"])


def test_a_second_ctrl_c_terminates_a_target_that_does_not_hear(lineheat: Lineheat, endless: Path) -> None:
    """To the runner alone: the target never hears of it."""
    runner, session = start_endless(lineheat, endless)
    target_is_gone = lambda: process_mark(session["pid"]) is None or os.kill(runner.pid, signal.SIGINT)  # noqa: E731
    wait_until(target_is_gone, "the target is gone")
    _, said = runner.communicate()
    assert said == b""
    assert runner.returncode in (128 + signal.SIGTERM, 128 + signal.SIGKILL)


def test_sigterm_goes_on_to_the_target(lineheat: Lineheat, endless: Path, tmp_path: Path) -> None:
    runner, session = start_endless(lineheat, endless, "-o", tmp_path / "x.heat")
    runner.terminate()
    _, said = runner.communicate(timeout=20)
    assert runner.returncode == 128 + signal.SIGTERM
    assert said == b""
    assert not Path(f"/proc/{session['pid']}").exists()
    assert lineheat.show(tmp_path / "x.heat")["session"]["exit_status"] == 143


def test_a_target_outlives_its_runner_and_its_profile_is_adopted(lineheat: Lineheat, tmp_path: Path) -> None:
    """SIGKILL to the runner: the target runs to its end, and the next lineheat saves what it has counted."""
    script = tmp_path / "waits.lua"
    script.write_text(
        "io.write('running\\n') io.flush()\n"
        "io.read()\n"
        "local n = 0\n"
        "for i = 1, 500 do\n"
        "  n = n + i\n"
        "end\n"
        "local file = io.open('result', 'w')\n"
        "file:write(n)\n"
        "file:close()\n"
    )
    runner, session = start_endless(
        lineheat, script, "-o", tmp_path / "x.heat", cwd=tmp_path, stdin=subprocess.PIPE
    )
    runner.kill()
    runner.wait()
    assert [s["state"] for s in lineheat.sessions()] == ["recording"]
    assert not (tmp_path / "x.heat").exists()
    assert runner.stdin is not None
    runner.stdin.close()
    wait_until(lambda: not Path(f"/proc/{session['pid']}").exists(), "the target has ended")
    assert (tmp_path / "result").read_text() == "125250"
    (adopted,) = lineheat.sessions()
    assert adopted["profile"] == str(tmp_path / "x.heat")
    report = lineheat.show(tmp_path / "x.heat")
    assert [line["hits"] for line in report["lines"] if line["line"] == 5] == [500]
    assert not list(lineheat.memory.rglob("*.heat"))
    for stream in (runner.stdout, runner.stderr):
        assert stream is not None
        stream.close()


def test_a_hundred_sessions_leave_nothing_behind(lineheat: Lineheat, script: Path, tmp_path: Path) -> None:
    """No process, no live file; of session folders the newest hundred."""
    for _ in range(25):
        runners = [
            lineheat.start(
                "run",
                "--runtime",
                RUNTIME.name,
                "--mode",
                "coverage",
                "--report",
                "none",
                script,
                stdout=subprocess.DEVNULL,
            )
            for _ in range(4)
        ]
        assert [runner.wait(60) for runner in runners] == [0, 0, 0, 0]
    assert list(lineheat.memory.rglob("*.heat")) == []
    sessions = lineheat.sessions()
    assert len(sessions) == 100
    assert {session["state"] for session in sessions} == {"finished"}
    left = [path for path in lineheat.state.rglob("*") if path.is_file() and ".part" in path.name]
    assert left == []
    assert processes_of(lineheat) == []
    lineheat("run", "--mode", "trace", "--runtime", RUNTIME.name, "--report", "none", script)
    lineheat("run", "--mode", "trace", "--runtime", RUNTIME.name, "--report", "none", script)
    assert len(lineheat.sessions()) <= 101


def processes_of(lineheat: Lineheat) -> list[str]:
    """Those that run with the folders of this test in their environment."""
    mark = f"XDG_STATE_HOME={lineheat.state}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return found


# ---- Nothing of ours can be replaced ------------------------------------------------------------

MALICE = "import sys\nsys.stderr.write('replaced\\n')\nraise SystemExit(99)\n"
MODULES = ("rich", "lineheat", "lupa", "argparse", "json", "sitecustomize")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A folder with files that are called like modules of ours."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    for module in MODULES:
        (folder / f"{module}.py").write_text(MALICE)
    (folder / "lineheat.lua").write_text("error('replaced')")
    (folder / "main.lua").write_text(SHORT)
    return folder


def lineheat_program() -> str:
    """The command as it is installed: 'python -m' looks into the current folder by itself."""
    program = Path(sys.executable).with_name("lineheat")
    if not program.exists():
        pytest.skip("the command lineheat is not installed beside this Python")
    return str(program)


@each_family
def test_files_in_the_current_folder_are_not_loaded(
    lineheat: Lineheat, workspace: Path, runtime: Runtime
) -> None:
    run = [
        lineheat_program(),
        "run",
        "--mode",
        "trace",
        "--runtime",
        runtime.name,
        "--report",
        "none",
        "main.lua",
    ]
    finished = subprocess.run(
        run, cwd=workspace, env=lineheat.environment, capture_output=True, text=True, check=False
    )
    assert (finished.stdout, finished.stderr, finished.returncode) == ("55\n", "", 0)


@pytest.mark.parametrize("module", ["rich", "lupa", "lineheat"])
@pytest.mark.parametrize("runtime", [RUNTIME.name, "embedded:5.4"])
def test_python_path_is_the_targets(lineheat: Lineheat, tmp_path: Path, runtime: str, module: str) -> None:
    """PYTHONPATH of the workspace replaces nothing of ours, and reaches the target unchanged."""
    (tmp_path / f"{module}.py").write_text(MALICE)
    (tmp_path / "main.lua").write_text("print(os.getenv('PYTHONPATH'))\n")
    lineheat.extra_environment = {"PYTHONPATH": str(tmp_path)}
    run = [
        lineheat_program(),
        "run",
        "--mode",
        "trace",
        "--runtime",
        runtime,
        "--report",
        "lines",
        "main.lua",
    ]
    outcome = outcome_of(run, cwd=tmp_path, env=lineheat.environment)
    assert "replaced" not in outcome.stderr
    assert (outcome.stdout, outcome.status) == (f"{tmp_path}\n", 0)
