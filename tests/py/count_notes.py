#!/usr/bin/env python3
"""Counts what a container notes beside its records, as `vef stats --json` must say: functions, phases, messages within hosts.

    count_notes.py TRACE.vefx
"""
import json
import sys
from collections import Counter
from pathlib import Path

from count_trace import classes, exact

sys.path.append(str(Path(__file__).parents[2] / "examples"))
from vefx import Container, Numbers  # noqa: E402


def notes(name, task):
    """The place of each note of a section, the numbers of what it says, and the names so far in the piece."""
    for offset, length, _ in container.sections.get((name, task), []):
        piece, place, names = Numbers(container.block(offset, length)), 0, []
        while piece.at < len(piece.data):
            place += piece.signed()
            yield place, piece, names


def named(note, names):
    """A new name, or the number of one that occurred before."""
    number = note.get()
    if number == 0:
        names.append(note.text())
    return names[number - 1]


container = Container(sys.argv[1])
tasks, *_, clock = (container.header.get() for _ in range(6))
functions, phases = Counter(), {}
hosts, local = [], {True: [0, 0], False: [0, 0]}
for place, note, names in notes("placement", -1):
    hosts += hosts[-1:] * (place - len(hosts)) + [named(note, names)]
hosts += hosts[-1:] * (tasks - len(hosts))


def fields(line):
    """Task, computing time, and sender, receiver and bytes if it is a message."""
    words = line.split()
    if words[0].startswith("G"):
        return int(words[3]), int(words[7]), None
    src, dst, size, dep, time = map(int, words[1:6])
    mark = src == dst and size == 0 and dep & 4 == 0
    return src, time, (src, dst, size) if not mark else ()


for task in container.tasks:
    calls = [(place, named(note, names)) for place, note, names in notes("calls", task)]
    steps = [(place, note.get(), named(note, names)) for place, note, names in notes("phases", task)]
    # How much of the computing in front of a record came before each of these.
    moments = [(note.get(), note.get()) for _, note, _ in notes("moments", task)]
    computed = [ticks for kind, ticks in moments if kind == 1]
    assert not computed or len(computed) == len(steps)
    # What MPI_Init took of the time in front of the first record.
    initialised = sum(after for kind, after in [(note.get(), note.get()) for _, note, _ in notes("spans", task)] if kind == 0)
    function, inside = None, []

    def pass_steps(at, begin, time):
        """Passes what begins and ends in the computing of record `at`, from `begin` on; when the innermost phase behind it began."""
        while steps and steps[0][0] <= at:
            _, begins, name = steps.pop(0)
            step = min(max(computed.pop(0) if computed else 0, begin), time)
            if inside:
                inside[-1]["ticks"] += step - begin
            begin = step
            if begins:
                inside.append(phases.setdefault(name, {"entries": 0, "ticks": 0, "collectives": 0, "sizes": []}))
                inside[-1]["entries"] += 1
            elif inside:
                inside.pop()
        return begin

    at = 0
    for at, line in enumerate(container.records(task)):
        while calls and calls[0][0] <= at:
            function = calls.pop(0)[1]
        functions.update([function] if function else [])
        _, time, message = fields(line)
        begin = pass_steps(at, min(initialised, time) if at == 0 else 0, time)
        if message and hosts:
            entry = local[hosts[message[0]] == hosts[message[1]]]
            entry[0] += 1
            entry[1] += message[2]
        if inside:
            inside[-1]["ticks"] += time - begin
            inside[-1]["collectives"] += message is None
            inside[-1]["sizes"] += [message[2]] if message else []
    pass_steps(at + 1, 0, 0)

print(json.dumps({
    "calls": [{"function": name, "records": count} for name, count in sorted(functions.items(), key=lambda item: (-item[1], item[0]))],
    "phases": [{"name": name, "entries": phase["entries"], "messages": len(phase["sizes"]), "bytes": exact(sum(phase["sizes"])),
                "collectives": phase["collectives"], "computing_ps": exact(phase["ticks"] * clock),
                "sizes": classes((size, 1, size) for size in phase["sizes"])} for name, phase in sorted(phases.items())],
    "locality": {name: dict(zip(["messages", "bytes"], local[same]))
                 for name, same in [("same_host", True), ("between_hosts", False)]} if hosts else None,
}))
