"""Traces: what they hold, as numbers, columns and matrices."""

from __future__ import annotations

import csv
import functools
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _vef, commands
from .results import Check, Result, html_table

if TYPE_CHECKING:
    import numpy
    import numpy.typing

#: Ranks up to which :meth:`Trace.matrix` makes a full matrix.
_MOST_RANKS = 4096


class Record(NamedTuple):
    """A record: a message, a local mark, or a task's part of a collective."""

    task: int
    kind: str
    """``message``, ``mark`` or ``collective``"""
    id: int
    dst: int | None
    """receiver of a message"""
    bytes: int
    """size of a message; what the task contributes to a collective"""
    received_bytes: int | None
    """what the task obtains of a collective"""
    operation: str | None
    communicator: int | None
    awaited: bool | None
    """whether a record waits for the reception of the message"""
    after: str
    """what the record waits for: ``start`` (nothing), ``send``, ``reception``, ``collective``"""
    after_id: int | None
    computing_ps: int
    """how long the task computes after that"""


class Table:
    """Records as columns: those of :class:`Record`.

    What takes Arrow takes a table as it is, in batches, without copies: ``polars.DataFrame(table)``, ``pyarrow.table(table)``,
    ``duckdb.sql("FROM table")``. Each use reads the file again.
    """

    def __init__(self, trace: _vef.Trace, ranks: Sequence[int] | None, rows: int) -> None:
        self._trace = trace
        self._ranks = ranks
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._trace.stream(self._ranks, self._rows).__arrow_c_stream__(requested_schema)


class Rank:
    """A rank of a trace: iterating gives its records; ``len`` is their number."""

    def __init__(self, trace: Trace, number: int) -> None:
        self.trace = trace
        self.number = number

    def __iter__(self) -> Iterator[Record]:
        return map(Record._make, self.trace._native.iterate(self.number))

    def __len__(self) -> int:
        known = self.trace._native.records_of(self.number)
        return sum(1 for _ in self) if known is None else known

    def records(self, *, rows: int = 1 << 16) -> Table:
        """The records as columns."""
        return self.trace.records(ranks=[self.number], rows=rows)

    def __repr__(self) -> str:
        return f"Rank({self.number} of {self.trace.path!r})"


class Trace:
    """A trace, in text (``.vef``) or in a container (``.vefx``), which is read when something is asked of it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        os.stat(self.path)
        self._native = _vef.Trace(self.path)

    def __fspath__(self) -> str:
        return self.path

    def __reduce__(self) -> tuple[type[Trace], tuple[str]]:
        return Trace, (self.path,)

    @property
    def tasks(self) -> int:
        """Number of ranks."""
        return self._native.tasks

    @property
    def message_records(self) -> int:
        """Number of point-to-point records by the header: messages, and the marks at which a rank waits."""
        return self._native.messages

    @functools.cached_property
    def messages(self) -> int:
        """Number of point-to-point messages. The trace is read for it, once."""
        return int(self.stats().to_dict()["totals"]["messages"])

    @property
    def collectives(self) -> int:
        """Number of collective operations."""
        return self._native.collectives

    @property
    def clock_ps(self) -> int:
        """Picoseconds of a tick of the trace's times."""
        return self._native.clock_ps

    @property
    def is_container(self) -> bool:
        """Whether the file is a container."""
        return self._native.is_container

    @property
    def origin(self) -> dict[str, str]:
        """Where a container comes from: program, command, MPI … Values of one name are joined by line breaks."""
        facts: dict[str, str] = {}
        for name, value in self._native.origin:
            facts[name] = f"{facts[name]}\n{value}" if name in facts else value
        return facts

    @property
    def communicators(self) -> dict[int, list[int]]:
        """World ranks of each communicator's members, by its id."""
        return dict(self._native.communicators())

    @property
    def ranks(self) -> Sequence[Rank]:
        """The ranks."""
        return [Rank(self, number) for number in range(self.tasks)]

    def __len__(self) -> int:
        return self.tasks

    def __getitem__(self, rank: int) -> Rank:
        if not -self.tasks <= rank < self.tasks:
            raise IndexError(f"rank {rank} of {self.tasks}")
        return Rank(self, rank % self.tasks)

    def __iter__(self) -> Iterator[Rank]:
        return iter(self.ranks)

    def records(self, *, ranks: Iterable[int] | None = None, rows: int = 1 << 16) -> Table:
        """The records as columns, in batches of ``rows``; with ``ranks`` only theirs, of which a container reads no others.

        Records of a rank are in its program order. Ranks follow each other in a container, and are mixed in text as in the file.
        """
        chosen = None if ranks is None else [self[rank].number for rank in ranks]
        return Table(self._native, chosen, rows)

    def stats(self, *, replay: bool = False, progress: commands.Progress = None, **options: commands.Value) -> Result:
        """Statistics: the JSON of ``vef stats``, or with ``replay`` that of ``vef report``."""
        return commands.stats(self, replay=replay, progress=progress, **options)

    def table(self, name: str, *, progress: commands.Progress = None) -> dict[str, list[Any]]:
        """A table of ``vef stats --csv``, as columns: ranks, pairs, sizes, distances, collectives, phases, calls …"""
        text = commands.command("stats", commands._input(self), csv=name, progress=progress)
        head, *rows = csv.reader(text.splitlines())
        return {column: [_value(row[number]) for row in rows] for number, column in enumerate(head)}

    def check(self, *, progress: commands.Progress = None, **options: commands.Value) -> Check:
        """Validates and replays the trace, as ``vef check``."""
        return commands.check(self, progress=progress, **options)

    def sim(self, *, progress: commands.Progress = None, **options: commands.Value) -> Result:
        """Simulates the trace, as ``vef sim``."""
        return commands.sim(self, progress=progress, **options)

    def matrix(self, *, by: str = "bytes") -> numpy.typing.NDArray[numpy.uint64]:
        """``bytes`` or ``messages`` between ranks, from point-to-point messages: row src, column dst; above 4096 ranks raises
        (``table("pairs")`` has the pairs that there are)."""
        np = _numpy()
        if self.tasks > _MOST_RANKS:
            raise ValueError(f"{self.tasks} ranks are too many for a full matrix: use table('pairs')")
        if by not in ("bytes", "messages"):
            raise ValueError(f"by={by!r}: write 'bytes' or 'messages'")
        matrix: numpy.typing.NDArray[numpy.uint64] = np.zeros((self.tasks, self.tasks), dtype=np.uint64)
        pairs = self.table("pairs")
        matrix[pairs["src"], pairs["dst"]] = pairs[by]
        return matrix

    def comm_matrix(self, output: str = "size") -> numpy.typing.NDArray[numpy.uint64]:
        """:meth:`matrix` by Pipit's name: ``size`` in bytes, or ``count`` of messages."""
        return self.matrix(by={"size": "bytes", "count": "messages"}.get(output, output))

    def message_histogram(self, bins: int = 20) -> tuple[Any, Any]:
        """Numbers of messages by size, and the edges of the ``bins``, as numpy.histogram has them."""
        np = _numpy()
        sizes = self.table("sizes")
        of = sizes["size"] if "size" in sizes else sizes["size_from"]
        counts, edges = np.histogram(of, bins=bins, weights=sizes["messages"])
        return counts, edges

    def comm_over_time(self, *, progress: commands.Progress = None, **options: commands.Value) -> Result:
        """Bytes and messages over time, of a replay on a yardstick network: ``over_time`` of ``stats(replay=True)``."""
        replayed = self.stats(replay=True, progress=progress, **options).to_dict()["replayed"]
        return Result(replayed["over_time"])

    def load_imbalance(self) -> dict[str, list[Any]]:
        """Computing time of each rank, and its ratio to the mean: columns ``rank``, ``computing_ps``, ``imbalance``."""
        ranks = self.table("ranks")
        times = ranks["computing_ps"]
        mean = sum(times) / len(times)
        ratios = [time / mean if mean else 1.0 for time in times]
        return {"rank": ranks["rank"], "computing_ps": times, "imbalance": ratios}

    def _facts(self) -> dict[str, Any]:
        counts = {"tasks": self.tasks, "messages and marks": self.message_records, "collectives": self.collectives}
        return {"file": self.path, **counts, **self.origin}

    def __repr__(self) -> str:
        counts = f"{self.tasks} tasks, {self.message_records} messages and marks, {self.collectives} collectives"
        return f"Trace({self.path!r}: {counts})"

    def _repr_html_(self) -> str:
        return html_table(self._facts())


def _numpy() -> Any:
    """The module numpy, or an error that says how to get it."""
    try:
        import numpy
    except ImportError as error:
        raise ImportError("this needs numpy: pip install 'vef[numpy]'") from error
    return numpy


def open(path: str | os.PathLike[str]) -> Trace:
    """Opens a trace: its header is read, and of a container its index."""
    return Trace(path)


def _value(text: str) -> Any:
    """A cell of a table: a number if it is one."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text or None
