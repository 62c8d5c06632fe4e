#!/usr/bin/env python3
"""Replays a VEF3 trace of point-to-point messages on a network without contention, by the rule of docs/replay.md alone: what
`vef report --format json` must say of it.

    replay_trace.py TRACE LATENCY_PS PS_PER_BYTE BIN_PS

A record starts at max(start of the record before, what it waits for) + its time; a message arrives a latency and the time of its
bytes after its start. Shares no code and no idea with the replay of vef: every record is tried until none can start.
"""
import json
import sys


def replay(clock, records, latency, per_byte):
    """The times between which tasks computed and waited for messages, (task, begin, end); the end of each task; the time that all
    messages were under way."""
    tasks = {task: [] for task in range(max(record[0] for record in records.values()) + 1)}
    for identity, record in records.items():
        tasks[record[0]].append(identity)
    start, arrival = {}, {}
    computing, reception, end = [], [], [0] * len(tasks)
    moved = True
    while moved:
        moved = False
        for task, waiting in tasks.items():
            while waiting:
                src, dst, size, dep, time, on = records[waiting[0]]
                known = {0: {on: 0}, 1: start, 2: arrival}[dep & 3]
                if on not in known:
                    break
                ready = max(end[task], known[on])
                reception.append((task, end[task], ready))
                computing.append((task, ready, ready + time * clock))
                identity = waiting.pop(0)
                end[task] = start[identity] = ready + time * clock
                arrival[identity] = start[identity] + latency + size * per_byte
                moved = True
    assert len(start) == len(records), "stuck"
    messages = [i for i, (src, dst, size, dep, *_) in records.items() if src != dst or size > 0 or dep & 4]
    return computing, reception, end, sum(arrival[i] - start[i] for i in messages)


def by_task(spans, tasks):
    sums = [0] * tasks
    for task, begin, end in spans:
        sums[task] += end - begin
    return sums


def by_bin(spans, width, runtime):
    sums = [0] * -(-runtime // width)
    for _, begin, end in spans:
        for at in range(begin // width, -(-end // width)):
            sums[at] += min(end, (at + 1) * width) - max(begin, at * width)
    return sums


def main():
    latency, per_byte, width = (int(word) for word in sys.argv[2:])
    records = {}
    with open(sys.argv[1]) as file:
        words = file.readline().split()
        tasks, clock = int(words[1]), int(words[7])
        for line in file:
            if line[0] in "CG":
                assert line[0] == "C", "a collective"
                continue
            words = [int(word) for word in line.split()]
            records[words[0]] = words[1:]
    computing, reception, end, under_way = replay(clock, records, latency, per_byte)
    runtime, ideal = max(end), max(replay(clock, records, 0, 0)[2])
    states = {"computing": computing, "reception": reception, "finished": [(task, at, runtime) for task, at in enumerate(end)]}
    times = by_task(computing, tasks)
    mean, most = sum(times) / tasks, max(times)
    print(json.dumps({
        "under_way_ps": under_way,
        "replayed": {
            "runtime_ps": runtime, "ideal_runtime_ps": ideal,
            "ranks": {f"{state}_ps": by_task(spans, tasks) for state, spans in states.items()},
            "states": {f"{state}_ps": by_bin(spans, width, runtime) for state, spans in states.items()},
            "efficiency": {"load_balance": mean / most, "serialisation": most / ideal, "transfer": ideal / runtime,
                           "parallel": mean / runtime},
        },
    }))


if __name__ == "__main__":
    main()
