"""vef in Python: capture MPI programs, look at their traces, simulate them, or carry their messages over a network of your own.

>>> import vef
>>> trace = vef.open("lj.vefx")
>>> vef.sim(trace, topology="fattree:4x4x2", bandwidth="100Gbit/s").runtime_ps

Each function is the command of ``vef`` with its name. Keyword arguments are the command's options with underscores for hyphens
(``critical_path=True`` is ``--critical-path``), values are those of the command line; ``vef sim --help`` lists them.
"""

from ._vef import Message, __version__
from .commands import (
    Placement,
    check,
    command,
    convert,
    gen,
    mix,
    place,
    report,
    run,
    sim,
    sweep,
    traffic,
)
from .errors import (
    CaptureError,
    MisuseError,
    OptionError,
    ReplayError,
    StuckError,
    TraceError,
    VefError,
)
from .replay import KINDS, Batch, Job, Replay
from .results import Check, Result, Sweep
from .trace import Rank, Record, Table, Trace, open

__all__ = [
    "KINDS",
    "Batch",
    "CaptureError",
    "Check",
    "Job",
    "Message",
    "MisuseError",
    "OptionError",
    "Placement",
    "Rank",
    "Record",
    "Replay",
    "ReplayError",
    "Result",
    "StuckError",
    "Sweep",
    "Table",
    "Trace",
    "TraceError",
    "VefError",
    "__version__",
    "check",
    "command",
    "convert",
    "gen",
    "mix",
    "open",
    "place",
    "report",
    "run",
    "sim",
    "sweep",
    "traffic",
]
