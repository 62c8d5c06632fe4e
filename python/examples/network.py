"""A network of one's own, in numpy: each node has a link into the network, on which its messages follow each other.

    python network.py TRACE [WINDOW_US]
"""

import sys
import time

import numpy

import vef

LATENCY_PS = 2_000_000
PS_PER_BYTE = 80  # 100 Gbit/s


class Links:
    """Messages wait for their node's link, occupy it for their bytes, and arrive after the latency."""

    def __init__(self, nodes):
        self.free = numpy.zeros(nodes, dtype=numpy.int64)

    def __call__(self, batch):
        start = batch.start_ps.astype(numpy.int64)
        order = numpy.lexsort((start, batch.src_node))
        node = batch.src_node[order]
        took = batch.bytes[order].astype(numpy.int64) * PS_PER_BYTE
        begin = numpy.maximum(start[order], self.free[node])
        # Of one node's messages, each begins at its own time, or when the one before it ends: a running maximum.
        group = numpy.cumsum(numpy.r_[False, node[1:] != node[:-1]])
        before = numpy.cumsum(took) - took
        earliest = begin - before
        span = earliest.max() - earliest.min() + 1
        end = numpy.maximum.accumulate(earliest + group * span) - group * span + before + took
        self.free[node] = end  # the last of a node's messages is the last to be written
        arrival = numpy.empty_like(end)
        arrival[order] = end + LATENCY_PS
        return arrival


def main(path, window_us=1.9):
    with vef.Replay(path, same_node="network") as replay:
        began = time.perf_counter()
        replay.run(Links(replay.tasks()), window_ps=int(window_us * 1e6))
        seconds = time.perf_counter() - began
        messages = replay.counts["messages"]
        print(f"{messages:,} messages in {seconds:.2f} s, {messages / seconds / 1e6:.2f} M/s")
        print(f"run time {replay.finish_ps / 1e9:.3f} ms")
        return replay.finish_ps


if __name__ == "__main__":
    main(sys.argv[1], *map(float, sys.argv[2:]))
