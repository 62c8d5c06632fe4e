"""Replays: a network in Python carries the messages as a network in Rust does; misuse is refused."""

import heapq
import threading

import numpy
import pytest
from conftest import command_json

import vef

LATENCY_PS = 2_000_000
#: Of the yardstick network of `vef check`.
YARDSTICK = ["--latency", "2us", "--bandwidth", "8000Gbit/s"]


def carried(replay, pop):
    """The loop of docs/replay.md with a network in which every message takes 2 us and a picosecond a byte."""
    network = []
    while True:
        arrival = network[0][0] if network else None
        now = min((at for at in (replay.next_ready(), arrival) if at is not None), default=None)
        if now is None:
            return replay.finish_ps
        if now == arrival:
            replay.delivered(heapq.heappop(network)[1], now)
        else:
            for message_id, size in pop(replay, now):
                heapq.heappush(network, (now + LATENCY_PS + size, message_id))


def one_by_one(replay, now):
    while (message := replay.pop_ready(now)) is not None:
        match message:
            case vef.Message(id, src, dst, bytes):
                assert src != dst and vef.KINDS[message.kind]
                yield id, bytes


def in_batches(replay, now):
    batch = replay.pop_ready_batch(now)
    assert batch.id.dtype == numpy.uint64 and batch.src.dtype == numpy.uint32 and not batch.id.flags.writeable
    return list(zip(batch.id.tolist(), batch.bytes.tolist()))


def test_the_run_is_that_of_the_yardstick(trace, text):
    for path in (trace, text):
        expected = command_json("check", path, *YARDSTICK)
        for pop in (one_by_one, in_batches):
            with vef.Replay(path) as replay:
                assert carried(replay, pop) == expected["runtime_ps"]
                assert replay.is_complete and replay.stuck() is None
                assert replay.counts["messages"] == replay.counts["delivered"]
        for window in (0, 1_000_000, LATENCY_PS - 1):
            with vef.Replay(path) as replay:
                replay.run(lambda batch: batch.start_ps + batch.bytes + LATENCY_PS, window_ps=window)
                assert replay.finish_ps == expected["runtime_ps"]
        # Without numpy.
        with vef.Replay(path) as replay:
            replay.run(lambda batch: [int(at) + int(size) + LATENCY_PS for at, size in zip(batch.start_ps, batch.bytes)])
            assert replay.finish_ps == expected["runtime_ps"]


def test_several_jobs_share_a_network(trace):
    alone = vef.Replay(trace)
    alone.run(lambda batch: batch.start_ps + LATENCY_PS)
    later = vef.Job(trace, nodes=[7, 5, 6, 4], start_ps=5_000_000)
    both = vef.Replay(trace, later)
    nodes = set()

    def arrivals(batch):
        nodes.update(batch.src_node.tolist())
        return batch.start_ps + LATENCY_PS

    both.run(arrivals)
    assert nodes == set(range(8))
    assert both.finish_ps == alone.finish_ps + 5_000_000
    assert both.counts["messages"] == 2 * alone.counts["messages"]
    slow = vef.Replay(vef.Job(trace, time_factor=2.0))
    slow.run(lambda batch: batch.start_ps)
    assert slow.finish_ps > alone.finish_ps


def test_messages_within_a_node(trace):
    inside = vef.Replay(vef.Job(trace, nodes=[0, 0, 0, 0]), same_node=("1us", "100Gbit/s"))
    inside.run(lambda batch: pytest.fail("no message leaves the node"))
    assert inside.is_complete and inside.counts["inside_messages"] == inside.counts["messages"] > 0
    through = vef.Replay(vef.Job(trace, nodes=[0, 0, 0, 0]), same_node="network")
    through.run(lambda batch: batch.start_ps + 1)
    assert through.is_complete and through.counts["inside_messages"] == 0


def test_misuse_is_refused_and_harmless(trace, tmp_path):
    with pytest.raises(vef.OptionError, match='send="never"'):
        vef.Replay(trace, send="never")
    with pytest.raises(vef.OptionError, match="same_node"):
        vef.Replay(trace, same_node=("1us", "fast"))
    with pytest.raises(vef.ReplayError, match="no trace"):
        vef.Replay()
    with pytest.raises(vef.ReplayError, match="4 tasks"):
        vef.Replay(vef.Job(trace, nodes=[0]))
    with pytest.raises(FileNotFoundError):
        vef.Replay(tmp_path / "nowhere.vef")
    replay = vef.Replay(trace)
    now = replay.next_ready()
    message = replay.pop_ready(now)
    for wrong in (
        lambda: replay.delivered(12345, now),
        lambda: replay.delivered_batch(numpy.array([12345], dtype=numpy.uint64), now),
        lambda: replay.pop_ready(now - 1),
    ):
        with pytest.raises(vef.MisuseError):
            wrong()
    with pytest.raises(OverflowError):
        replay.delivered(-1, now)
    with pytest.raises(TypeError):
        replay.delivered_batch(["x"], now)
    replay.delivered_batch([message.id], now + 1)
    with pytest.raises(vef.MisuseError, match="no message on its way"):
        replay.delivered(message.id, now + 1)
    with pytest.raises(vef.MisuseError, match="within the window"):
        vef.Replay(trace).run(lambda batch: batch.start_ps + 10, window_ps=100_000)
    with pytest.raises(vef.MisuseError, match="0 arrivals for"):
        vef.Replay(trace).run(lambda batch: [])
    with pytest.raises(ZeroDivisionError):
        vef.Replay(trace).run(lambda batch: 1 // 0)
    replay.close()
    with pytest.raises(vef.MisuseError, match="closed"):
        replay.next_ready()


def test_a_replay_that_is_stuck_says_why(tmp_path):
    path = tmp_path / "stuck.vef"
    # Task 1 waits for a message that nobody sends.
    path.write_text("VEF3 2 1 0 0 0 0 1000\n0 1 0 50 2 5 7\n")
    replay = vef.Replay(path)
    with pytest.raises(vef.ReplayError) as error:
        replay.run(lambda batch: batch.start_ps)
    assert "task 1" in str(error.value)


def test_a_replay_belongs_to_one_thread_at_a_time(trace):
    replay, outcomes = vef.Replay(trace), []

    def meanwhile():
        try:
            outcomes.append(replay.next_ready())
        except vef.MisuseError as error:
            outcomes.append(str(error))

    def arrivals(batch):
        # The engine is free while the function runs.
        thread = threading.Thread(target=meanwhile)
        thread.start()
        thread.join()
        return batch.start_ps + LATENCY_PS

    replay.run(arrivals)
    assert replay.is_complete and outcomes
