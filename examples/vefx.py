#!/usr/bin/env python3
"""Prints a container of version 4 as the text of its trace, as `vef convert` does: vefx.py TRACE.vefx > TRACE.vef
Rests on nothing but docs/formats.md. Compressed blocks need the program zstd."""
import subprocess, sys, zlib
from struct import unpack_from

WIDTH, EXCESS, WRAP = [0, 1, 2, 4], {0: 0, 1: 1 << 7, 2: 1 << 15, 4: 1 << 31, 8: 0}, (1 << 64) - 1


class Numbers:
    def __init__(self, data):
        self.data, self.at = data, 0

    def get(self):
        first = self.data[self.at]
        size = (first & -first).bit_length() if first else 9
        self.at, word = self.at + size, int.from_bytes(self.data[self.at:self.at + size], "little")
        return word >> size & (1 << 7 * size) - 1 if first else word >> 8

    def signed(self):
        return (zigzag := self.get()) >> 1 ^ -(zigzag & 1)

    def text(self):
        size = self.get()
        self.at += size
        return self.data[self.at - size:self.at].decode()

    def runs(self, count):
        """So many tasks, told as steps that repeat."""
        task = left = 0
        for _ in range(count):
            if left == 0:
                step, left = self.signed(), self.get() + 1
            task, left = task + step, left - 1
            yield task


class Container:
    def __init__(self, path):
        self.data = data = open(path, "rb").read()
        if data[:8] != b"VEFX\x04\r\n\x1a" or data[-4:] != b"XFEV" or zlib.crc32(data[-32:-8]) != int.from_bytes(data[-8:-4], "little"):
            sys.exit(f"{path}: not a container of version 4, or cut, or damaged")
        offset, length, minor, required = unpack_from("<QQHxxI", data, len(data) - 32)
        self.index = index = Numbers(self.block(offset, length))
        numbers, of_records = index.get(), index.get()
        about, self.communicators, self.order = (self.places(numbers) for _ in range(3))
        self.sections, self.tasks, task = {}, {}, 0  # sections by name and task, -1 for the trace's
        for _ in range(index.get()):
            name, required, of = index.text(), required | index.get() & 1, -1
            for _ in range(index.get()):
                of += index.get()
                self.sections[name, of] = self.places(numbers)
        if required:
            sys.exit(f"{path}: needs a reader of version 4.{minor}")
        for _ in range(index.get()):
            task += index.get()
            self.tasks[task] = self.places(of_records)
        self.header = Numbers(self.block(*about[0][:2]))

    def block(self, offset, length):
        codec, flags, stored, crc = unpack_from("<xBH12xII", self.data, offset)
        content = self.data[offset + 24:offset + length]
        if zlib.crc32(content, zlib.crc32(self.data[offset:offset + 20])) != crc or stored != length - 24 or flags or codec > 1:
            sys.exit(f"the block at byte {offset} is damaged, or of a later version")
        return subprocess.run(["zstd", "-dc"], input=content, capture_output=True, check=True).stdout if codec else content

    def places(self, numbers):
        """Offset, length and items of each block of a list; what else is told of it is passed by."""
        found, end = [], 0
        for _ in range(self.index.get()):
            step, length, items, *_ = [self.index.get() for _ in range(numbers)]
            found.append((end + step, length, items))
            end += step + length
        return found

    def records(self, task):
        """The lines of one task."""
        for offset, length, items in self.tasks[task]:
            data, at, message, collective = self.block(offset, length), 0, 0, 0
            while items > 0:
                head, at, items = unpack_from("<H", data, at)[0], at + 2, items - 1
                dep, kind, wide = head & 7, head >> 3 & 3, head & 32
                widths = [8 if wide else WIDTH[head >> bit & 3] for bit in range(6, 16, 2)]
                if kind > 1:  # two further fields, and a byte that tells how wide they are
                    more = at if kind == 3 else at + sum(widths)
                    widths += [8, 8] if wide else [WIDTH[data[more] & 3], WIDTH[data[more] >> 2 & 3]]
                fields = []
                for number, width in enumerate(widths):
                    at += kind > 1 and not wide and at == more and number in (0, 5)
                    signed = number in (0, 2) or (number, kind) in ((3, 1), (3, 3), (5, 3))
                    fields.append(int.from_bytes(data[at:at + width], "little") - (EXCESS[width] if signed else 0))
                    at += width
                if kind == 3:
                    mark = message + fields[5] & WRAP
                    yield f"{mark} {task} {task} 0 1 {fields[6]} {message}"
                    message, items = mark, items - 1
                last = [0, message, message, collective][dep & 3] + fields[2] & WRAP
                after = ["-1", last, last, f"G{last}"][dep & 3]
                if kind == 2:
                    collective = collective + fields[0] & WRAP
                    yield f"G{collective} C{fields[5]} {fields[6]} {task} {fields[3]} {fields[4]} {dep} {fields[1]} {after}"
                else:
                    message, to = message + fields[0] & WRAP, task + fields[3] & WRAP if kind else task
                    yield f"{message} {task} {to} {fields[4]} {dep} {fields[1]} {after}"

    def text(self):
        tasks, messages, communicators, collectives, parts, clock = (self.header.get() for _ in range(6))
        yield f"VEF3 {tasks} {messages} {communicators} {collectives} {parts} 0 {clock}"
        for offset, length, items in self.communicators:
            block = Numbers(self.block(offset, length))
            for _ in range(items):
                yield f"C{block.get()} " + " ".join(map(str, block.runs(block.get())))
        records = {task: self.records(task) for task in self.tasks}
        yield from () if self.order else (line for lines in records.values() for line in lines)
        runs = (Numbers(self.block(offset, length)).runs(items) for offset, length, items in self.order)
        yield from (next(records[task]) for run in runs for task in run)


if __name__ == "__main__":
    sys.stdout.writelines(line + "\n" for line in Container(sys.argv[1]).text())
