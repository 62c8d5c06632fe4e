#!/usr/bin/env python3
"""Counts a VEF3 trace in text the plain way, line by line: what `vef stats --json` must say of it.

    count_trace.py TRACE [CODE=NAME ...]

Shares no code and no idea with the counting of vef beyond the schema: dictionaries, sorted lists, Python's whole numbers.
"""
import json
import math
import sys
from collections import Counter, defaultdict

NAMES = {0: "Bcast", 1: "Reduce", 2: "Allreduce", 3: "Gather", 4: "Scatter", 5: "Allgather", 6: "Barrier",
         7: "Alltoall", 8: "Gatherv", 9: "Scatterv", 10: "Allgatherv", 11: "Alltoallv", 12: "Alltoallw",
         13: "Reduce_scatter", 14: "Reduce_scatter_block", 15: "Scan", 16: "Exscan"}


def exact(value):
    """Whole numbers beyond 2^53 are strings."""
    return value if value <= 2 ** 53 else str(value)


def power_class(value):
    """The bounds of the class of a value by powers of two."""
    if value == 0:
        return 0, 0
    low = 1 << (value.bit_length() - 1)
    return low, 2 * low - 1


def classes(pairs):
    """Classes by powers of two of (value, messages, bytes)."""
    sums = defaultdict(lambda: [0, 0])
    for value, messages, bytes_ in pairs:
        entry = sums[power_class(value)]
        entry[0] += messages
        entry[1] += bytes_
    return [{"from": exact(low), "to": exact(high), "messages": exact(m), "bytes": exact(b)}
            for (low, high), (m, b) in sorted(sums.items())]


def main():
    with open(sys.argv[1]) as file:
        words = file.readline().split()
        tasks, clock = int(words[1]), int(words[7])
        ticks, marks, parts = [0] * tasks, [0] * tasks, [0] * tasks
        sent, received = [[0, 0] for _ in range(tasks)], [[0, 0] for _ in range(tasks)]
        pairs, sizes = defaultdict(lambda: [0, 0]), Counter()
        after, awaited = [0, 0, 0, 0], 0
        members, collectives = {}, defaultdict(lambda: [0, 0, 0])
        for line in file:
            words = line.split()
            if words[0].startswith("C"):
                members[int(words[0][1:])] = [int(word) for word in words[1:]]
            elif words[0].startswith("G"):
                task, dep = int(words[3]), int(words[6])
                entry = collectives[int(words[1][1:]), int(words[2])]
                entry[0] += 1
                entry[1] += int(words[4])
                entry[2] += int(words[5])
                parts[task] += 1
                ticks[task] += int(words[7])
                after[dep & 3] += 1
            else:
                src, dst, size, dep, time = (int(word) for word in words[1:6])
                ticks[src] += time
                after[dep & 3] += 1
                if src == dst and size == 0 and dep & 4 == 0:
                    marks[src] += 1
                    continue
                awaited += dep >> 2 & 1
                sizes[size] += 1
                for entry in (pairs[src, dst], sent[src], received[dst]):
                    entry[0] += 1
                    entry[1] += size
    messages, bytes_ = sum(sizes.values()), sum(size * count for size, count in sizes.items())
    ordered = sorted(sizes.items())

    def quantile(share):
        seen, wanted = 0, max(1, math.ceil(share * messages))
        for size, count in ordered:
            seen += count
            if seen >= wanted:
                return exact(size)
        return 0

    per_row = max(1, -(-tasks // 512))
    rows = -(-tasks // per_row)
    cells = defaultdict(lambda: [0, 0])
    for (src, dst), (m, b) in pairs.items():
        entry = cells[src // per_row * rows + dst // per_row]
        entry[0] += m
        entry[1] += b
    sparse = 4 * len(cells) < rows * rows
    listed = sorted(cells) if sparse else range(rows * rows)
    off = {pair: b for pair, (m, b) in pairs.items() if pair[0] != pair[1]}
    total = sum(off.values())
    partners = Counter(Counter(src for src, _ in pairs).values())
    silent = tasks - len({src for src, _ in pairs})
    if silent and pairs:
        partners[0] = silent
    by_sender = defaultdict(list)
    for (src, _), (m, _) in pairs.items():
        by_sender[src].append(m)
    bits = {src: sum(m / sum(counts) * math.log2(sum(counts) / m) for m in counts) for src, counts in by_sender.items()}
    table = max(1, -(-tasks // 4096))

    def column(values):
        return [exact(sum(values[at:at + table])) for at in range(0, tasks, table)]

    def spread(measure, values):
        mean = math.fsum(values) / tasks
        deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / tasks)
        least, most = (best(range(tasks), key=values.__getitem__) for best in (min, max))
        return {"measure": measure, "min": {"rank": least, "value": exact(values[least])}, "mean": mean,
                "max": {"rank": most, "value": exact(values[most])}, "variation": deviation / mean if mean else 0.0}

    by_size, by_comm = defaultdict(lambda: [0, 0, 0, 0, 0]), Counter()
    for (comm, code), (n, s, r) in collectives.items():
        size = len(members[comm])
        by_comm[comm] += -(-n // size)
        entry = by_size[NAMES.get(code, f"code {code}"), size]
        for at, value in enumerate([1, -(-n // size), n, s, r]):
            entry[at] += value
    print(json.dumps({
        "totals": {
            "records": exact(sum(after)), "messages": exact(messages), "bytes": exact(bytes_), "awaited": awaited,
            "to_self": sum(m for (src, dst), (m, _) in pairs.items() if src == dst), "marks": sum(marks),
            "collectives": sum(entry[1] for entry in by_size.values()), "collective_parts": sum(parts),
            "communicators": len(members), "computing_ps": exact(sum(ticks) * clock),
            "computing_max_ps": exact(max(ticks, default=0) * clock),
            "after": dict(zip(["nothing", "send", "reception", "collective"], after)),
        },
        "sizes": {
            "mean": exact(bytes_ // messages if messages else 0), "min": quantile(0.0), "p50": quantile(0.5),
            "p90": quantile(0.9), "p99": quantile(0.99), "max": quantile(1.0), "different": len(sizes),
            "classes": classes((size, count, size * count) for size, count in sizes.items()),
            "common": [{"size": exact(size), "messages": count, "bytes": exact(size * count)}
                       for size, count in sorted(sizes.items(), key=lambda item: (-item[1], item[0]))[:20]],
        },
        "pairs": {
            "different": len(pairs),
            "top": [{"src": src, "dst": dst, "messages": m, "bytes": exact(b)} for (src, dst), (m, b) in
                    sorted(pairs.items(), key=lambda item: (-item[1][1], -item[1][0], item[0]))[:20]],
            "partners": [{"partners": count, "ranks": ranks} for count, ranks in sorted(partners.items())],
            "symmetry": sum(min(b, off.get((dst, src), 0)) for (src, dst), b in off.items()) / total if total else None,
            # Which of nearly equal ranks is the first is a matter of rounding.
            "entropy": {"min": {"bits": min(bits.values())}, "mean": sum(bits.values()) / len(bits),
                        "max": {"bits": max(bits.values())}} if bits else None,
            "matrix": {
                "ranks_per_row": per_row, "rows": rows, "cells": listed if sparse else None,
                "messages": [exact(cells[at][0]) if at in cells else 0 for at in listed],
                "bytes": [exact(cells[at][1]) if at in cells else 0 for at in listed],
            },
        },
        "distances": classes((abs(src - dst), m, b) for (src, dst), (m, b) in pairs.items()),
        "ranks": {
            "ranks_per_row": table, "sent_messages": column([m for m, _ in sent]), "sent_bytes": column([b for _, b in sent]),
            "received_messages": column([m for m, _ in received]), "received_bytes": column([b for _, b in received]),
            "computing_ps": column([value * clock for value in ticks]), "collectives": column(parts), "marks": column(marks),
            "spread": [spread(measure, values) for measure, values in [
                ("computing_ps", [value * clock for value in ticks]),
                ("sent_messages", [m for m, _ in sent]), ("sent_bytes", [b for _, b in sent]),
                ("received_messages", [m for m, _ in received]), ("received_bytes", [b for _, b in received]),
                ("collectives", parts)]],
        },
        "collectives": {"operations": [{"operation": name, "members": size, "communicators": c, "operations": o, "parts": n,
                         "sent_bytes": exact(s), "received_bytes": exact(r)}
                        for (name, size), (c, o, n, s, r) in by_size.items()],
            "different": len(by_comm), "communicators": [
                {"id": comm, "members": len(members[comm]), "operations": count}
                for comm, count in sorted(by_comm.items(), key=lambda item: (-item[1], item[0]))[:20]]},
    }))


if __name__ == "__main__":
    main()
