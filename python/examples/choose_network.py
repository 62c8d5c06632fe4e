"""Which network and placement suit a program: all combinations simulated, the fastest first.

    python choose_network.py TRACE
"""

import sys

import polars

import vef

trace = vef.open(sys.argv[1])
found = vef.sweep(
    trace,
    {
        "topology": ["torus:4x4", "fattree:4x4x2", "dragonfly:2x4x2"],
        "bandwidth": ["10Gbit/s", "100Gbit/s"],
        "placement": ["block", "block:2"],
    },
    latency="500ns",
)
table = polars.DataFrame(found.columns("runtime_ps", "latency.p99_ps")).sort("runtime_ps")
print(table)

best = table.row(0, named=True)
run = trace.sim(topology=best["topology"], bandwidth=best["bandwidth"], placement=best["placement"], latency="500ns")
print(f"{best['topology']} at {best['bandwidth']}, {best['placement']}: {run.runtime_ps / 1e9:.3f} ms")
