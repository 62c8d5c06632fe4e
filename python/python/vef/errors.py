"""The errors of vef: one message, the words of the command line, with the place in a file where there is one."""

from __future__ import annotations

import os
import re


class VefError(Exception):
    """An error of vef.

    ``path``, ``line`` (from 1), ``offset`` (bytes) and ``record`` (from 0) are the place in a file, as far as it is known; ``problem`` is the
    message without it; ``field`` is the field of a line of text.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        place = _place(message)
        self.path: str | None = place["path"]
        self.line: int | None = _number(place["line"])
        self.record: int | None = _number(place["record"])
        self.offset: int | None = _number(place["offset"])
        self.problem: str = message[len(place[""] or "") :]
        field = re.search(r"\bfield ([^`,]+?)(?: is `|$)", self.problem)
        self.field: str | None = field and field[1]


class OptionError(VefError, ValueError):
    """An option that does not exist, or a value that it does not take."""


class TraceError(VefError):
    """A trace that cannot be read."""


class CaptureError(VefError):
    """A capture that cannot be read or mixed."""


class ReplayError(VefError):
    """A trace that cannot be replayed."""


class StuckError(ReplayError):
    """A replay in which nothing happens any more; the message says which tasks wait for what."""


class MisuseError(ReplayError, ValueError):
    """A call of a replay that is not allowed, after which the replay is as before, or that is over."""


#: How errors begin: a path, and a line, a record or an offset (``vef_format::error::Place``).
_PLACE = re.compile(
    r"(?P<path>.+?)(?::(?P<line>\d+)|: record (?P<record>\d+) at byte (?P<offset>\d+)| at byte (?P<byte>\d+))?: "
)


def _place(message: str) -> dict[str, str | None]:
    """The place at the beginning of a message, if it is of a file that exists. The key "" has its text."""
    found = _PLACE.match(message)
    if found is None or not os.path.exists(found["path"]):
        return dict.fromkeys(["", "path", "line", "record", "offset"])
    offset = found["offset"] or found["byte"]
    return {"": found[0], "path": found["path"], "line": found["line"], "record": found["record"], "offset": offset}


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def _located(name: str, message: str) -> Exception:
    """The exception of this class; an ``OSError`` where the operating system refused a file."""
    system = re.search(r"^(.*?): [^:]* \(os error (\d+)\)$", message, re.DOTALL)
    if system:
        number = int(system[2])
        return OSError(number, os.strerror(number), system[1])
    classes: dict[str, type[VefError]] = {
        "CaptureError": CaptureError,
        "MisuseError": MisuseError,
        "OptionError": OptionError,
        "ReplayError": ReplayError,
        "StuckError": StuckError,
        "TraceError": TraceError,
    }
    if name == "OptionError":
        message = message.removeprefix("error: ")
    error = classes.get(name, VefError)(message)
    # Commands give some errors as text: of an option, of a file.
    if type(error) is VefError and message.startswith("--"):
        return OptionError(message)
    if type(error) is VefError and error.path is not None:
        return (CaptureError if os.path.isdir(error.path) else TraceError)(message)
    return error
