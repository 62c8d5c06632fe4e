"""What the tests share: traces, the command of the installed package, and the MPIs that are here."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import warnings

import pytest

import vef
from vef.commands import find_program

ROOT = pathlib.Path(__file__).parents[2]
MPIS = {
    "openmpi": ("mpicc.openmpi", ["mpirun.openmpi", "--oversubscribe"]),
    "mpich": ("mpicc.mpich", ["mpiexec.mpich"]),
}


@pytest.fixture(scope="session")
def capture():
    """A capture of four ranks."""
    return ROOT / "cli/demo/capture"


@pytest.fixture(scope="session")
def trace(capture, tmp_path_factory):
    """The container of that capture."""
    path = tmp_path_factory.mktemp("traces") / "demo.vefx"
    vef.mix(capture, path)
    return path


@pytest.fixture(scope="session")
def text(trace):
    """The same as text."""
    return vef.convert(trace, trace.with_suffix(".vef"))


@pytest.fixture(scope="session")
def large(tmp_path_factory):
    """A trace that takes some seconds to simulate."""
    return vef.gen("halo2d", tmp_path_factory.mktemp("traces") / "large.vefx", ranks=256, iterations=400)


def command(*words):
    """What the command line prints."""
    return subprocess.run([find_program(), *map(os.fspath, words)], check=True, capture_output=True, text=True).stdout


def command_json(*words):
    """The JSON that the command line prints."""
    return json.loads(command(*words, "--json"))


def mpis():
    """The MPIs that are installed, each as compiler and launcher."""
    for name, (compiler, launcher) in MPIS.items():
        if shutil.which(compiler) and shutil.which(launcher[0]):
            yield name
        else:
            skipped(f"{name} is not installed (scripts/deps)")


def skipped(why):
    """Notes that something was not tested, as the Rust tests do."""
    if "VEF_SKIPPED" in os.environ:
        with open(os.environ["VEF_SKIPPED"], "a") as file:
            file.write(f"python: {why}\n")
    print(f"skipped: {why}", file=sys.stderr)
