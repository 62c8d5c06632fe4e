"""Conan 2 recipe of the replay library for C and C++, built from this source by Cargo:

    conan create replay-ffi/packaging

A consumer requires vef_replay and finds it by its own CMake package (CMakeDeps makes none) or by PkgConfigDeps.
"""
from pathlib import Path
import re

from conan import ConanFile
from conan.tools.files import copy

ROOT = ("Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "LICENSE-*", "scripts/*")


class VefReplay(ConanFile):
    name = "vef_replay"
    license = "MIT OR Apache-2.0"
    description = "Feeds MPI traces (VEF) to network simulators"
    package_type = "shared-library"
    settings = "os", "arch"  # the interface is C: the consumer's compiler does not matter

    def set_version(self):
        manifest = (Path(self.recipe_folder) / "../../Cargo.toml").read_text()
        self.version = re.search(r'^version = "(.*)"', manifest, re.MULTILINE).group(1)

    def export_sources(self):
        root = (Path(self.recipe_folder) / "../..").resolve()
        for pattern in ROOT:
            copy(self, pattern, root, self.export_sources_folder)
        # The library uses few of the crates, but Cargo.lock is of all.
        for manifest in root.glob("*/Cargo.toml"):
            crate = manifest.parent.name
            if crate not in ("fuzz", "python"):  # workspaces of their own
                copy(self, "*", root / crate, Path(self.export_sources_folder) / crate)

    def package(self):
        self.run(f'scripts/install --library-only "{self.package_folder}"', cwd=self.source_folder)
        copy(self, "LICENSE-*", self.source_folder, Path(self.package_folder) / "licenses")

    def package_info(self):
        self.cpp_info.libs = ["vef_replay"]
        self.cpp_info.builddirs = ["lib/cmake/vef_replay"]
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.set_property("pkg_config_name", "vef_replay")
