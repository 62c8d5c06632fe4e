"""What is in a trace: its biggest pairs of ranks, its balance, and how its messages are sized.

    python look.py TRACE
"""

import sys

import numpy
import polars

import vef

trace = vef.open(sys.argv[1])
print(trace)

# Columns, without a copy: records by kind.
records = polars.DataFrame(trace.records())
print(records.group_by("kind").agg(polars.len(), polars.col("bytes").sum()).sort("kind"))

matrix = trace.matrix()
for pair in numpy.argsort(matrix, axis=None)[:-4:-1]:
    src, dst = divmod(int(pair), trace.tasks)
    print(f"rank {src} to {dst}: {matrix[src, dst]:,} bytes")

counts, edges = trace.message_histogram(bins=4)
print("messages up to", ", ".join(f"{edge:,.0f} bytes: {count:,.0f}" for count, edge in zip(counts, edges[1:])))

imbalance = trace.load_imbalance()["imbalance"]
print(f"the slowest rank computes {max(imbalance):.2f} times as long as the mean")
