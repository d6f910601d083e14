# SPDX-License-Identifier: Apache-2.0
"""plumb.profile(): records a part of a process that `plumb run` did not start, such as a notebook.

The collector is loaded into this process. A second process, `plumb session`, keeps the run folder and makes
the profile. The protocol between the two is at the top of src/cli/run/session.c.
"""
from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any, Iterator

from . import _command, annotate, control

if TYPE_CHECKING:
    from .reading import Profile

__all__ = ["Recording", "SessionError", "profile"]

_LATE = {1: "this process is recorded already", 2: "the last recording did not end, or memory ran out"}
_lock = threading.Lock()
_running: Recording | None = None


class SessionError(RuntimeError):
    """A recording could not begin. The message says why."""


class Recording:
    """A recording by plumb.profile(). After it has ended:

    - `path`: the profile that was written. None: nothing was captured, or `plumb run` records the process
    - `summary`: the summary, as `plumb run` prints it
    - `result()`: the profile, as a plumb.Profile
    """

    def __init__(self, path: str, options: list[str], quiet: bool) -> None:
        self.path: str | None = None
        self.summary = ""
        self._wanted = path
        self._options = options
        self._quiet = quiet
        self._helper: subprocess.Popen[bytes] | None = None
        self._before: dict[str, str | None] = {}
        self._finder: _Finder | None = None

    def result(self) -> Profile:
        """Reads the profile that was written. Raises SessionError if nothing was written."""
        if self.path is None:
            raise SessionError("no profile was written: nothing was captured, or the recording has not ended")
        from .reading import Profile
        return Profile(self.path)

    # ---- the beginning ----

    def _start(self) -> None:
        command = [_command.binary(), "session", "-o", self._wanted, *self._options]
        try:
            # In a session of its own, so that Ctrl-C at the terminal does not reach it.
            self._helper = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.PIPE, start_new_session=True)
        except OSError as error:
            raise SessionError(f"cannot run {command[0]}: {error.strerror}; install plumb-profiler again") from None
        try:
            library, variables = self._hear()
            self._load(library, variables)
        except BaseException:
            self._restore()
            self._helper.kill()
            self._helper.communicate()
            self._helper = None
            raise

    def _hear(self) -> tuple[str, dict[str, str]]:
        """What the helper answers: the library's path, and the variables to set."""
        assert self._helper and self._helper.stdout and self._helper.stderr
        said = b""
        while not said.endswith(b"\0\0"):
            piece = os.read(self._helper.stdout.fileno(), 65536)
            if not piece:
                raise SessionError(self._helper.stderr.read().decode(errors="replace").replace("plumb: ", "").strip()
                                   or "plumb session ended early")
            said += piece
        library, *variables = [os.fsdecode(part) for part in said[:-2].split(b"\0")]
        return library, dict(text.split("=", 1) for text in variables)

    def _load(self, library: str, variables: dict[str, str]) -> None:
        import ctypes
        try:
            collector = ctypes.PyDLL(library, mode=os.RTLD_NOW | os.RTLD_LOCAL)
        except OSError as error:
            raise SessionError(f"the collector cannot be loaded: {error}") from None
        for name, value in variables.items():
            self._before[name] = os.environ.get(name)
            os.environ[name] = value
        result = collector.plumb_session_begin()
        if result:
            raise SessionError(_LATE.get(result, "recording could not begin"))
        self._collector = collector
        control.use(collector)
        annotate.use(collector)
        self._finder = _Finder(collector.plumb_session_begin)
        sys.meta_path.insert(0, self._finder)

    # ---- the end ----

    def _restore(self) -> None:
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._before = {}
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)

    def _stop(self) -> None:
        assert self._helper
        annotate.use(None)
        self._collector.plumb_session_end()
        control.use(None)
        self._restore()
        with contextlib.suppress(BrokenPipeError):
            out, text = self._helper.communicate(b"end\n")
        word = out.decode().strip()
        self._helper = None
        self.summary = text.decode(errors="replace")
        if word == "written":
            self.path = self._wanted
        elif word == "empty":
            self.summary += ("plumb: nothing was captured: no PyTorch operator, GPU call or plumb.span ran "
                             "during the recording\n")
        if self.summary and (not self._quiet or word != "written"):
            print(self.summary, end="", file=sys.stderr)


class _Finder(importlib.abc.MetaPathFinder):
    """Offers a framework to the collector when its import is done. It finds no module itself."""
    FRAMEWORKS = {"torch"}

    def __init__(self, offer: Any) -> None:
        self._offer = offer
        self._busy = False

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name not in self.FRAMEWORKS or self._busy:
            return None
        self._busy = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._busy = False
        if spec is None or spec.loader is None or not hasattr(spec.loader, "exec_module"):
            return spec
        run, offer = spec.loader.exec_module, self._offer

        def exec_module(module: Any) -> None:
            run(module)
            offer()
        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _words(options: dict[str, Any]) -> list[str]:
    """Options of `plumb run`, from Python's form: shapes=True, layers="python,operator", limit="64M"."""
    words = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            words.append(option)
        elif value not in (False, None):
            words.append(f"{option}={value}")
    return words


@contextlib.contextmanager
def profile(path: str | os.PathLike[str] | None = None, *, quiet: bool = False, **options: Any) -> Iterator[Recording]:
    """Records what happens inside the `with` block, and writes a profile to PATH.

        with plumb.profile("step.plumb"):
            train_step()

    PATH: the default is "plumb-PID.plumb", with a number if that file exists.
    OPTIONS: those of `plumb run`, such as mode="full", shapes=True, trace=True or gpu=False.
    QUIET: do not print the summary on stderr.

    Some things can be recorded only from the program's start: CPU samples and waits, tensor allocations, the
    line that called backward(), and the program's own use of CUPTI. Use `plumb run` for these. Under `plumb run`
    the block becomes part of the run's profile, and PATH is not written.

    There can be one recording at a time. Raises SessionError if a recording cannot begin.
    """
    global _running
    gpu = options.pop("gpu", True)
    mode = gpu if isinstance(gpu, str) else "activity" if gpu else "off"
    words = [*_words(options), f"--gpu={mode}"]
    recording = Recording(_name(path), words, quiet)
    with _lock:
        if _running is not None:
            raise SessionError("plumb.profile() records already; end that recording first, because they cannot be nested")
        if control.under_run():
            warnings.warn("plumb run records this process already, so plumb.profile() writes no profile of its own",
                          stacklevel=3)
            begun = False
        else:
            recording._start()
            _running = recording
            begun = True
    try:
        yield recording
    finally:
        if begun:
            with _lock:
                _running = None
                recording._stop()


def _name(path: str | os.PathLike[str] | None) -> str:
    if path is not None:
        return os.fspath(path)
    number = 1
    while os.path.exists(name := f"plumb-{os.getpid()}{f'-{number}' if number > 1 else ''}.plumb"):
        number += 1
    return name
