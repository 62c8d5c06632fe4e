"""The commands of vef as functions."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import IO, Any, TypeAlias

from . import _vef
from .errors import OptionError
from .results import Check, Result, Sweep

#: A file; a Trace is one, too.
PathLike: TypeAlias = str | os.PathLike[str]
#: A value of an option. A list is repeated or joined by commas, as the option takes it; a timedelta is a time.
Value: TypeAlias = None | bool | int | float | str | os.PathLike[str] | timedelta | Sequence[int | float | str]
#: None; True for a bar on the terminal; or a function of units done, their total if it is known, and the phase.
Progress: TypeAlias = None | bool | Callable[[int, int | None, str], object]

_log = logging.getLogger("vef")


class Placement(Result):
    """Nodes of ranks: the JSON of ``vef place``, and each rank's node."""

    @property
    def node_of_rank(self) -> list[int]:
        """Number of the node of each rank, as :class:`~vef.Job` takes it."""
        return [rank["node"] for rank in self._values["ranks"]]


def command(name: str, *arguments: PathLike, progress: Progress = None, **options: Value) -> str:
    """Runs a command of ``vef`` that has no function of its own, and returns what it prints.

    >>> vef.command("timeline", "app.vefx", output="app.json")
    """
    for argument in [os.fspath(argument) for argument in arguments]:
        if argument.startswith("--") and not os.path.exists(argument):
            option, _, value = argument[2:].partition("=")
            keyword = option.replace("-", "_")
            raise OptionError(f"{argument}: options are keywords: {keyword}={value or '…'!r}")
    return _run([name, *map(_path, arguments), *_words(options)], progress)


def mix(capture: PathLike, output: PathLike, *, progress: Progress = None, **options: Value) -> Result:
    """Mixes a capture into a trace, as ``vef mix``; returns the summary."""
    return Result(_json(["mix", _input(capture), "-o", _path(output), *_words(options)], progress))


def check(trace: PathLike, *, progress: Progress = None, **options: Value) -> Check:
    """Validates a trace and replays it, as ``vef check``. Raises only if the file cannot be read."""
    return Check(_json(["check", _input(trace), *_words(options)], progress))


def stats(trace: PathLike, *, replay: bool = False, progress: Progress = None, **options: Value) -> Result:
    """Statistics of a trace: the JSON of ``vef stats``, or with ``replay`` that of ``vef report``."""
    if replay:
        words = ["report", _input(trace), "--format", "json", *_words(options)]
        return Result(json.loads(_run(words, progress)))
    return Result(_json(["stats", _input(trace), *_words(options)], progress))


def sim(trace: PathLike, *, progress: Progress = None, **options: Value) -> Result:
    """Simulates a trace on a network, as ``vef sim``.

    >>> vef.sim("lj.vefx", topology="torus:4x4x4", latency="500ns", links=True).runtime_ps
    """
    return Result(_json(["sim", _input(trace), *_words(options)], progress))


def sweep(
    trace: PathLike,
    values: Mapping[str, Sequence[bool | int | float | str]],
    *,
    progress: Progress = None,
    **options: Value,
) -> Sweep:
    """Simulates all combinations of values of options, on all cores, as ``vef sim --sweep``. A point that fails has its error.

    >>> vef.sweep("lj.vefx", {"topology": ["torus:4x4", "fattree:4x4x2"], "bandwidth": ["10G", "100G"]}).columns()
    """
    words = ["sim", _input(trace), *_words(options), "--json"]
    for option, those in values.items():
        texts = [_text(value) for value in those]
        # One value may have a comma.
        joined = "|".join(texts) if len(texts) > 1 or "," in texts[0] else texts[0]
        words.append(f"--sweep={_name(option)}={joined}")
    _, result, remarks, error = _vef.execute(words, _reporter(progress))
    _tell(remarks)
    if error is not None and not result:
        raise error
    return Sweep(json.loads(result))


def traffic(topology: str, *, progress: Progress = None, **options: Value) -> Result:
    """Synthetic traffic on a network, as ``vef traffic``."""
    return Result(_json(["traffic", f"--topology={topology}", *_words(options)], progress))


def convert(source: PathLike, output: PathLike, *, progress: Progress = None, **options: Value) -> Path:
    """Converts a trace between text (.vef) and container (.vefx); returns the output."""
    _run(["convert", _input(source), _path(output), *_words(options)], progress)
    return Path(_path(output))


def gen(workload: str, output: PathLike, *, progress: Progress = None, **options: Value) -> Path:
    """Writes the trace of a known communication pattern, as ``vef gen``; returns the output."""
    _run(["gen", workload, f"--output={_path(output)}", *_words(options)], progress)
    return Path(_path(output))


def place(*, progress: Progress = None, **options: Value) -> Placement:
    """Places ranks on nodes by a launcher's rules, or optimises their placement, as ``vef place``.

    >>> vef.place(optimise="lj.vefx", topology="torus:4x4x4", output="better.toml").node_of_rank
    """
    return Placement(json.loads(_run(["place", "--format=json", *_words(options)], progress)))


def report(trace: PathLike, output: PathLike, *, progress: Progress = None, **options: Value) -> Path:
    """Writes a page about a trace or capture, as ``vef report``; returns the page."""
    _run(["report", _input(trace), f"--output={_path(output)}", *_words(options)], progress)
    return Path(_path(output))


def run(
    program: Sequence[str | os.PathLike[str]],
    *,
    stdout: int | IO[Any] | None = None,
    stderr: int | IO[Any] | None = None,
    check: bool = True,
    env: Mapping[str, str] | None = None,
    **options: Value,
) -> subprocess.CompletedProcess[Any]:
    """Runs an MPI program and captures it, as ``vef run``; ``check=False`` does not raise if the program fails.

    >>> vef.run(["lmp", "-in", "in.lj"], ranks=4, output="capture", mix="lj.vefx")
    """
    line = [find_program(), "run", *_words(options), "--", *(os.fspath(word) for word in program)]
    return subprocess.run(line, stdout=stdout, stderr=stderr, check=check, env=env)


def find_program() -> str:
    """The path of the command ``vef`` of this package."""
    name = "vef"
    schemes = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", vars={"base": sys.base_prefix})]
    user = sysconfig.get_preferred_scheme("user")
    schemes.append(sysconfig.get_path("scripts", scheme=user))
    for directory in schemes:
        path = os.path.join(directory, name)
        if os.path.isfile(path):
            return path
    raise FileNotFoundError(f"the command vef is in none of {', '.join(schemes)}: install the package's wheel")


def _run(words: list[str], progress: Progress) -> str:
    """The result of a command line; remarks go to the logger ``vef``."""
    success, result, remarks, error = _vef.execute(words, _reporter(progress))
    _tell(remarks)
    if error is not None:
        raise error
    if not success and not result:
        raise RuntimeError("; ".join(remarks))
    return result


def _json(words: list[str], progress: Progress) -> Any:
    return json.loads(_run([*words, "--json"], progress))


def _tell(remarks: list[str]) -> None:
    for remark in remarks:
        _log.warning("%s", remark.removeprefix("warning: "))


def _input(path: PathLike) -> str:
    """The path of a file that exists; an OSError otherwise."""
    text = _path(path)
    os.stat(text)
    return text


def _path(path: PathLike) -> str:
    text = os.fspath(path)
    # Not an option.
    return os.path.join(".", text) if text.startswith("-") else text


def _name(option: str) -> str:
    return option.rstrip("_").replace("_", "-")


def _words(options: Mapping[str, Value]) -> list[str]:
    """Options as words of a command line."""
    words = []
    for option, value in options.items():
        name = _name(option)
        dashes = "-" if len(name) == 1 else "--"
        match value:
            case None | False:
                pass
            case True:
                words.append(f"{dashes}{name}")
            case str() | int() | float() | os.PathLike() | timedelta():
                words.append(f"{dashes}{name}{'=' if dashes == '--' else ''}{_text(value)}")
            case _:
                joined = ",".join(_text(item) for item in value)
                words.append(f"{dashes}{name}={joined}")
    return words


def _text(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case timedelta():
            return f"{(value.days * 86400 + value.seconds) * 1_000_000 + value.microseconds}us"
        case os.PathLike():
            return str(os.fspath(value))
        case _:
            return str(value)


def _reporter(progress: Progress) -> Callable[[int, int | None, str], object] | None:
    """The function that shows progress."""
    if progress is None or progress is False:
        return None
    if progress is not True:
        return progress
    if not sys.stderr.isatty():
        return None
    try:
        from tqdm import tqdm  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return _on_stderr
    bars: dict[str, Any] = {}

    def show(done: int, total: int | None, phase: str) -> None:
        if phase not in bars:
            for bar in bars.values():
                bar.close()
            bars.clear()
            bars[phase] = tqdm(desc=phase, leave=False)
        bars[phase].total = total
        bars[phase].n = done
        bars[phase].refresh()

    return show


def _on_stderr(done: int, total: int | None, phase: str) -> None:
    share = f"{100 * done // total} %" if total else f"{done:,}"
    print(f"\r{phase}: {share}", end="", file=sys.stderr, flush=True)
