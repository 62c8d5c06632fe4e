"""The wheel alone captures MPI programs: nothing else is set, nothing else is installed."""

import os
import shutil
import subprocess
import sys

import pytest
from conftest import MPIS, mpis
from vef.commands import find_program

import vef

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size, in = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 5; i++)
        MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &in, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return in != (rank + size - 1) % size;
}
"""


def plain_environment():
    """The environment of somebody who has only installed the wheel."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("VEF_", "LD_PRELOAD"))}
    # Open MPI refuses to start as root unless told twice; containers often are root.
    return environment | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@pytest.mark.parametrize("mpi", MPIS)
def test_a_program_is_captured_by_the_wheel_alone(mpi, tmp_path):
    if mpi not in mpis():
        pytest.skip("not installed")
    compiler, launcher = MPIS[mpi]
    source, program = tmp_path / "ring.c", tmp_path / "ring"
    source.write_text(PROGRAM)
    subprocess.run([compiler, "-o", program, source], check=True)
    vef.run(
        [program], ranks=2, mpirun=" ".join(launcher), output=tmp_path / "capture", mix=tmp_path / "ring.vefx",
        env=plain_environment(),
    )  # fmt: skip
    trace = vef.open(tmp_path / "ring.vefx")
    assert trace.tasks == 2 and trace.check().messages == 10
    with pytest.raises(subprocess.CalledProcessError):
        vef.run(["sh", "-c", "exit 3"], ranks=1, mpirun=" ".join(launcher), output=tmp_path / "failed", env=plain_environment())


def test_a_link_to_the_command_finds_the_recorder(tmp_path):
    """As pipx and uv make it."""
    link = tmp_path / "bin/vef"
    link.parent.mkdir()
    link.symlink_to(find_program())
    if not any(True for _ in mpis()):
        pytest.skip("no MPI")
    ended = subprocess.run([link, "run", "-o", tmp_path / "c", "--script", "--", "true"], capture_output=True, text=True, env=plain_environment())
    assert "preload library" not in ended.stderr, ended.stderr


def test_without_the_recorder_the_error_names_the_places(tmp_path):
    copy = tmp_path / "bin/vef"
    copy.parent.mkdir()
    shutil.copy(find_program(), copy)
    ended = subprocess.run([copy, "run", "true"], capture_output=True, text=True, env=plain_environment())
    assert ended.returncode == 2 and str(tmp_path / "lib/vef/libvef_interpose.so") in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_the_program_is_of_this_environment():
    assert os.path.dirname(find_program()) == os.path.dirname(sys.executable)
