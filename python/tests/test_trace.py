"""Traces: the same numbers as on the command line, and columns in what takes Arrow."""

import csv
import pickle

import numpy
import pandas
import polars
import pyarrow
import pytest
from conftest import command, command_json

import vef


def test_the_header_is_that_of_the_file(trace, text):
    for path in (trace, text):
        opened = vef.open(path)
        checked = command_json("check", path)
        assert opened.tasks == checked["tasks"] == len(opened) == 4
        assert opened.messages == checked["messages"] > 0
        assert opened.message_records == checked["messages"] + checked["marks"]
        assert opened.collectives == checked["collectives"]
        assert len(opened.communicators) == checked["communicators"]
        assert opened.communicators[0] == [0, 1, 2, 3]
    assert vef.open(trace).is_container and not vef.open(text).is_container
    assert "mpi" in vef.open(trace).origin


def test_columns_are_the_records(trace, text):
    lines = [line.split() for line in text.read_text().splitlines()[1:]]
    messages = [line for line in lines if line[0].isdecimal()]
    parts = [line for line in lines if line[0].startswith("G")]
    for path in (trace, text):
        table = polars.DataFrame(vef.open(path).records())
        assert table.height == len(messages) + len(parts)
        of = table.filter(polars.col("kind") != "collective").sort("id")
        expected = sorted((int(line[0]), int(line[1]), int(line[2]), int(line[3])) for line in messages)
        assert list(of.select("id", "task", "dst", "bytes").iter_rows()) == expected
        assert table.filter(polars.col("kind") == "collective").height == len(parts)


def test_both_forms_have_the_same_rows(trace, text):
    def rows(path):
        table = polars.DataFrame(vef.open(path).records(rows=100))
        words = ["kind", "operation", "after"]
        return table.with_columns(polars.col(words).cast(polars.String)).sort("task", maintain_order=True)

    assert rows(trace).equals(rows(text))


def test_what_takes_arrow_takes_records(trace):
    opened = vef.open(trace)
    table = opened.records(rows=64)
    read = pyarrow.RecordBatchReader.from_stream(table)
    batches = list(read)
    assert len(batches) > 2 and all(batch.num_rows <= 64 for batch in batches)
    arrow = pyarrow.table(table)
    assert arrow.num_rows == sum(batch.num_rows for batch in batches) == sum(map(len, opened))
    frame = arrow.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and frame["computing_ps"].sum() > 0
    # A stream is read once, a table as often as one likes.
    stream = opened._native.stream(None, 10)
    pyarrow.table(stream)
    with pytest.raises(vef.MisuseError, match="was read"):
        pyarrow.table(stream)


def test_records_of_some_ranks(trace, text):
    for path in (trace, text):
        opened = vef.open(path)
        some = polars.DataFrame(opened.records(ranks=[3, 1]))
        assert set(some["task"]) == {1, 3}
        assert some.height == len(opened[1]) + len(opened[-1])
        record = next(iter(opened[2]))
        assert (record.task, record.after) == (2, "start")
        assert [record.id for record in opened[2]] == polars.DataFrame(opened[2].records())["id"].to_list()
        with pytest.raises(IndexError):
            opened[4]


def test_statistics_are_those_of_the_command(trace):
    opened = vef.open(trace)
    assert opened.stats() == command_json("stats", trace)
    rows = list(csv.DictReader(command("stats", trace, "--csv", "pairs").splitlines()))
    matrix = opened.matrix()
    assert matrix.shape == (4, 4) and matrix.sum() == sum(int(row["bytes"]) for row in rows) > 0
    for row in rows:
        assert matrix[int(row["src"]), int(row["dst"])] == int(row["bytes"])
    assert opened.comm_matrix("count").sum() == sum(int(row["messages"]) for row in rows)
    counts, edges = opened.message_histogram(bins=5)
    assert counts.sum() == opened.comm_matrix("count").sum() and len(edges) == 6
    balance = opened.load_imbalance()
    assert numpy.mean(balance["imbalance"]) == pytest.approx(1)
    with pytest.raises(ValueError, match="by='size'"):
        opened.matrix(by="size")


def test_a_replay_has_times(trace):
    over = vef.open(trace).comm_over_time()
    assert over == vef.open(trace).stats(replay=True)["replayed"]["over_time"]
    assert len(over) > 0


def test_traces_are_files_to_other_functions(trace):
    opened = vef.open(trace)
    again = pickle.loads(pickle.dumps(opened))
    assert (again.path, again.messages) == (opened.path, opened.messages)
    assert vef.sim(opened).runtime_ps == opened.sim().runtime_ps == vef.sim(trace).runtime_ps
    assert "4 tasks" in repr(opened) and "<table>" in opened._repr_html_()


def test_opening_again_and_again_keeps_no_memory(trace):
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    def use():
        for _ in range(300):
            opened = vef.open(trace)
            pyarrow.table(opened.records())
            next(iter(opened[0]))
            vef.Replay(trace).close()

    use()
    before = resident()
    use()
    use()
    assert resident() - before < 8 << 20
