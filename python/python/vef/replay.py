"""Replays: traces whose messages a network in Python carries. docs/replay.md has the rules."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _vef
from ._vef import Message

if TYPE_CHECKING:
    import numpy
    import numpy.typing

#: What messages belong to, by ``Message.kind``: point-to-point, or a collective operation.
KINDS: tuple[str, ...] = tuple(_vef.Replay.kinds())


class Job(NamedTuple):
    """A trace, and how it is replayed."""

    path: str | os.PathLike[str]
    nodes: Sequence[int] | None = None
    """node of each rank; without it each has a node of its own"""
    start_ps: int = 0
    time_factor: float = 1.0
    """computing times are multiplied by it"""
    from_launch: bool = False
    """count ``MPI_Init`` as computing, where the trace records it"""


class Batch:
    """Messages as arrays: ``id``, ``src``, ``dst``, ``src_node``, ``dst_node``, ``bytes``, ``job``, ``ready_ps``, ``start_ps``, ``kind``.

    Without numpy they are memory views.
    """

    __slots__ = ("_native",)

    def __init__(self, native: _vef.Batch) -> None:
        self._native = native

    def __len__(self) -> int:
        return len(self._native)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _array(getattr(self._native, name))

    def __dir__(self) -> list[str]:
        return [name for name in dir(self._native) if not name.startswith("_")]

    def __repr__(self) -> str:
        return repr(self._native)


class Replay:
    """Traces being replayed: gives messages when they are ready, and takes their arrivals. Times are picoseconds.

    >>> with vef.Replay("lj.vefx") as replay:
    ...     replay.run(lambda batch: batch.start_ps + 2_000_000)     # every message takes 2 us
    ...     print(replay.finish_ps)

    ``send``, ``same_node`` and ``algorithms`` are the options ``--send-completion``, ``--same-node`` and ``--algorithms`` of ``vef sim``.
    One thread at a time may use a replay.
    """

    def __init__(
        self,
        *jobs: str | os.PathLike[str] | Job,
        send: str = "eager",
        same_node: str | tuple[str, str] = "memory",
        algorithms: str = "default",
    ) -> None:
        all_jobs = [job if isinstance(job, Job) else Job(job) for job in jobs]
        for job in all_jobs:
            os.stat(job.path)
        inside = same_node if isinstance(same_node, str) else ",".join(same_node)
        self._native = _vef.Replay(
            [
                (os.fspath(job.path), job.nodes, job.start_ps, [job.time_factor], job.from_launch)
                for job in all_jobs
            ],
            send,
            inside,
            algorithms,
        )

    def next_ready(self) -> int | None:
        """The next moment at which a message is ready, as far as is known; None: nothing happens without an arrival."""
        return self._native.next_ready()

    def pop_ready(self, now: int) -> Message | None:
        """The next message that is ready at ``now``, which it enters the network."""
        return self._native.pop_ready(now)

    def pop_ready_batch(self, now: int, most: int = 1 << 16) -> Batch:
        """Up to ``most`` messages that are ready at ``now``."""
        return Batch(self._native.pop_ready_batch(now, most))

    def sent(self, id: int, at: int) -> None:
        """Reports that a message has left its source; it matters with ``send="sent"``."""
        self._native.sent(id, at)

    def delivered(self, id: int, at: int) -> None:
        """Reports that a message has arrived."""
        self._native.delivered(id, at)

    def delivered_batch(self, ids: Iterable[int] | numpy.typing.NDArray[numpy.uint64], at: int) -> None:
        """Reports that messages have arrived at ``at``, in this order."""
        self._native.delivered_batch(ids, at)

    def run(self, arrivals: Callable[[Batch], Any], *, window_ps: int = 0) -> None:
        """Carries all messages by a function from a :class:`Batch` to the moments at which its messages arrive.

        A batch has the messages that start within ``window_ps`` of the first, so larger windows make fewer, larger batches. No message
        may arrive within the window in which it starts: a network whose shortest message takes 1 us can have a window of just under that.
        Raises :class:`~vef.StuckError` if tasks remain that wait for nothing.
        """
        self._native.run(lambda native: arrivals(Batch(native)), window_ps)

    @property
    def clock_ps(self) -> int:
        """The latest moment of any call."""
        return self._native.clock

    @property
    def finish_ps(self) -> int:
        """When the last task finished: the run time, once the replay is complete."""
        return self._native.finish

    @property
    def is_complete(self) -> bool:
        """Whether every record was replayed, and every message has arrived."""
        return self._native.is_complete

    def stuck(self) -> str | None:
        """Why nothing happens, if that is so."""
        return self._native.stuck()

    @property
    def counts(self) -> dict[str, int]:
        """What was done so far: ``messages``, ``bytes``, ``delivered``, ``inside_messages``, ``inside_bytes``, ``marks``, ``collectives``."""
        names = ("messages", "bytes", "delivered", "inside_messages", "inside_bytes", "marks", "collectives")
        return dict(zip(names, self._native.counts(), strict=True))

    def tasks(self, job: int = 0) -> int:
        """Number of tasks of a job."""
        return self._native.tasks(job)

    def close(self) -> None:
        """Frees the replay; ``with`` does that."""
        self._native.close()

    def __enter__(self) -> Replay:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _array(column: _vef.Column) -> Any:
    try:
        import numpy
    except ImportError:
        # Buffers have no type before Python 3.12.
        return memoryview(column)  # type: ignore[arg-type]
    return numpy.asarray(column)
