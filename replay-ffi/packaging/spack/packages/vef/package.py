"""Spack recipe, which builds what is committed in the checkout that it lies in:

    spack repo add replay-ffi/packaging/spack
    spack install vef

Spack's own rust may be older than needed: then make the system's an external package (rust in packages.yaml).
"""

from pathlib import Path

from spack.package import *


class Vef(Package):
    """Captures the MPI traffic of programs and replays it into network simulators: command, recorder, and replay library for C and C++."""

    git = Path(__file__).resolve().parents[5].as_uri()

    license("MIT OR Apache-2.0")

    version("0.2.0")

    variant("command", default=True, description="Build the command and the recorder besides the replay library")

    depends_on("rust@1.88:", type="build")

    def install(self, spec, prefix):
        options = [] if spec.satisfies("+command") else ["--library-only"]
        Executable("scripts/install")(*options, prefix)
