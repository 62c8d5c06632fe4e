"""Commands as functions: the numbers of the command line, errors with their places, progress, interruption."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from datetime import timedelta

import pytest
from conftest import command, command_json
from vef.commands import find_program

import vef


def without_clock(result):
    """A simulation's JSON without how long it took."""
    values = json.loads(json.dumps(dict(result.to_dict() if isinstance(result, vef.Result) else result)))
    values.pop("performance")
    return values


def test_simulations_are_those_of_the_command(trace):
    options = {"topology": "fattree:2x2x2", "bandwidth": "40Gbit/s", "latency": timedelta(microseconds=2)}
    here = vef.sim(trace, **options, critical_path=True)
    line = ["sim", trace, "--topology", "fattree:2x2x2", "--bandwidth", "40Gbit/s", "--latency", "2us", "--critical-path"]
    assert without_clock(here) == without_clock(command_json(*line))
    assert here.runtime_ps == here["runtime_ps"] >= here.ideal.runtime_ps > 0
    assert here.jobs[0].tasks == 4
    assert "runtime_ps" in dir(here) and "runtime_ps" in here._repr_html_()
    with pytest.raises(AttributeError, match="no 'run_time' in this result, which has"):
        here.run_time


def test_checks_are_those_of_the_command(trace):
    assert vef.check(trace) == command_json("check", trace)
    assert vef.check(trace).ok and bool(vef.check(trace))


def test_a_check_of_an_invalid_trace_has_its_problems(text, tmp_path):
    lines = text.read_text().splitlines()
    bad = tmp_path / "bad.vef"
    # The last record waits for a collective: here for one that does not exist.
    record, collective = lines[-1].rsplit(" ", 1)
    assert collective.startswith("G")
    bad.write_text("\n".join([*lines[:-1], f"{record} G99"]) + "\n")
    checked = vef.check(bad)
    assert not checked and not checked.ok
    assert checked.errors > 0 and checked.problems[0].line >= 1


def test_a_sweep_is_a_table(trace):
    swept = vef.sweep(trace, {"topology": ["torus:2x2", "fattree:2x2x2"], "bandwidth": ["10G", "100G"]})
    assert len(swept) == 4
    columns = swept.columns("runtime_ps", "latency.mean_ps")
    assert columns["bandwidth"] == ["10G", "100G"] * 2 and columns["error"] == [None] * 4
    for topology, bandwidth, time_ps in zip(columns["topology"], columns["bandwidth"], columns["runtime_ps"]):
        assert vef.sim(trace, topology=topology, bandwidth=bandwidth).runtime_ps == time_ps
    failing = vef.sweep(trace, {"topology": ["torus:2x2", "torus:1x1"], "placement": ["block:1"]})
    assert failing.columns()["error"][0] is None and failing.columns()["error"][1]


def test_files_are_those_of_the_command(trace, capture, tmp_path):
    command("mix", "-i", capture, "-o", tmp_path / "theirs.vefx")
    assert (tmp_path / "theirs.vefx").read_bytes() == trace.read_bytes()
    page = vef.report(trace, tmp_path / "report.html")
    assert page.read_text().startswith("<!DOCTYPE html>")
    placed = vef.place(optimise=trace, topology="torus:2x2", output=tmp_path / "better.toml")
    assert sorted(placed.node_of_rank) == [0, 1, 2, 3] and (tmp_path / "better.toml").exists()
    assert vef.sim(trace, topology="torus:2x2", placement=tmp_path / "better.toml").runtime_ps > 0
    assert "torus" in vef.traffic("torus:4x4", load=0.1).topology
    assert vef.command("stats", trace) == command("stats", trace)


def test_errors_have_their_class_and_place(text, tmp_path):
    with pytest.raises(FileNotFoundError) as missing:
        vef.sim(tmp_path / "nowhere.vef")
    assert missing.value.filename == str(tmp_path / "nowhere.vef")
    with pytest.raises(FileNotFoundError):
        vef.open(tmp_path / "nowhere.vef")
    with pytest.raises(OSError) as unwritable:
        vef.convert(text, tmp_path / "no/such/directory.vefx")
    assert unwritable.value.errno == 2
    lines = text.read_text().splitlines()
    bad = tmp_path / "bad.vef"
    bad.write_text("\n".join([*lines[:7], "1 2 x 4 5 6 7", *lines[8:]]) + "\n")
    for read in (
        lambda: vef.open(bad).stats(),
        lambda: list(vef.open(bad)[0]),
        lambda: vef.sim(bad),
        lambda: vef.Replay(bad).run(lambda batch: batch.start_ps),
    ):
        with pytest.raises(vef.TraceError) as error:
            read()
        assert (error.value.path, error.value.line) == (str(bad), 8), error.value
        assert error.value.field == "dst" and error.value.problem.startswith("field dst is `x`")
    with pytest.raises(vef.CaptureError):
        vef.mix(tmp_path, tmp_path / "out.vef")
    for options, says in [({"topolgy": "torus:2x2"}, "similar argument"), ({"topology": "torus:2xW"}, "torus:2xW")]:
        with pytest.raises(vef.OptionError, match=says) as wrong:
            vef.sim(text, **options)
        assert isinstance(wrong.value, ValueError) and not str(wrong.value).startswith("error")
    with pytest.raises(vef.VefError, match="command line"):
        vef.command("demo")


def test_remarks_go_to_the_logger(text, caplog, tmp_path):
    with caplog.at_level(logging.WARNING, logger="vef"):
        vef.sim(text)
    lines = [record.message for record in caplog.records]
    said = subprocess.run([find_program(), "sim", text], capture_output=True, text=True).stderr.splitlines()
    assert lines == [line.removeprefix("vef: ").removeprefix("warning: ") for line in said]


def test_progress_is_reported_and_its_exception_ends_the_work(large, tmp_path):
    seen = []
    vef.sim(large, progress=lambda done, total, phase: seen.append((done, total, phase)))
    assert seen[-1][2] == "simulating" and seen[-1][0] > 0

    def stop(done, total, phase):
        raise ZeroDivisionError(phase)

    with pytest.raises(ZeroDivisionError, match="simulating"):
        vef.sim(large, progress=stop)
    with pytest.raises(ZeroDivisionError):
        vef.report(large, tmp_path / "report.html", progress=stop)
    assert not list(tmp_path.iterdir())


INTERRUPTED = """
import os, signal, sys, threading, time, vef
def ctrl_c(done, total, phase, sent=[]):
    if not sent:
        sent.append(os.kill(os.getpid(), signal.SIGINT))
try:
    {call}
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize(
    "call",
    [
        "vef.sim(sys.argv[1], topology='torus:16x16', model='packet', progress=ctrl_c)",
        "vef.sweep(sys.argv[1], {'bandwidth': ['%dG' % n for n in range(1, 60)]}, progress=ctrl_c)",
        "vef.report(sys.argv[1], sys.argv[2] + '.html', progress=ctrl_c)",
    ],
)
def test_ctrl_c_ends_the_work(large, tmp_path, call):
    line = [sys.executable, "-W", "error", "-c", INTERRUPTED.format(call=call), large, tmp_path / "out.vefx"]
    ended = subprocess.run(line, capture_output=True, text=True, timeout=300)
    assert (ended.stdout, ended.stderr) == ("interrupted\n", "")
    assert not list(tmp_path.iterdir())


def test_other_threads_run_meanwhile(large):
    counted, over = [0], threading.Event()

    def count():
        while not over.wait(0.002):
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    vef.sim(large)
    over.set()
    thread.join()
    assert counted[0] > 10


def test_threads_run_commands_side_by_side(trace):
    expected, found = vef.sim(trace).runtime_ps, []
    threads = [threading.Thread(target=lambda: found.append(vef.sim(trace).runtime_ps)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


def test_the_module_is_the_command(trace):
    # Python leaves it alone where the shell ignores it.
    before = signal.getsignal(signal.SIGINT)
    line = [sys.executable, "-m", "vef", "--version"]
    assert subprocess.run(line, capture_output=True, text=True, check=True).stdout == f"vef {vef.__version__}\n"
    assert os.path.isfile(find_program())
    assert signal.getsignal(signal.SIGINT) is before


def test_options_are_keywords_and_must_exist(trace):
    with pytest.raises(vef.OptionError, match="--by: options are keywords: by="):
        vef.command("stats", trace, "--by", "time")
    with pytest.raises(vef.OptionError, match="--sweep foo=1"):
        vef.sweep(trace, {"foo": [1, 2]})
