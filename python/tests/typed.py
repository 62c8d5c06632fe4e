"""What type checkers see of the package; checked by mypy --strict, never run."""

import numpy
import numpy.typing

import vef

trace: vef.Trace = vef.open("lj.vefx")
record: vef.Record = next(iter(trace[0]))
size: int = record.bytes
matrix: numpy.typing.NDArray[numpy.uint64] = trace.matrix()
result: vef.Result = vef.sim(trace, topology="torus:2x2", critical_path=True)
ok: bool = vef.check("lj.vefx").ok


def arrivals(batch: vef.Batch) -> list[int]:
    return [int(at) + 1 for at in batch.start_ps]


with vef.Replay("lj.vefx", vef.Job("lj.vefx", nodes=[0, 1])) as replay:
    replay.run(arrivals, window_ps=1000)
    message: vef.Message | None = replay.pop_ready(0)

# Wrong uses must be errors: with strict, an ignore that is not needed is one.
vef.open(1)  # type: ignore[arg-type]
vef.sim("lj.vefx", progress=1)  # type: ignore[arg-type]
