#!/usr/bin/env python3
"""Runs a configuration of SST or gem5 without the simulator: its modules do nothing, but take numbers and assert as the simulators' own do.

    without_simulator.py CONFIGURATION [ARGUMENT …]
"""
import runpy
import sys
from types import ModuleType
from unittest.mock import MagicMock

NAMES = "sst sst.merlin sst.merlin.base sst.merlin.interface sst.merlin.topology m5 m5.util network"


class Job:
    def __init__(self, *_):
        pass

    def _declareClassVariables(self, names):
        pass


def any_to_latency(text):
    """A period or a frequency of gem5, in seconds."""
    for unit, seconds in (("GHz", lambda number: 1e-9 / number), ("ns", lambda number: 1e-9 * number)):
        if text.endswith(unit):
            return seconds(float(text[: -len(unit)]))
    raise ValueError(text)


def mesh(options, *_):
    assert options.num_cpus // options.mesh_rows * options.mesh_rows == options.num_cpus


def options_of_networks(parser):
    parser.add_argument("--topology")
    parser.add_argument("--network")
    parser.add_argument("--mesh-rows", type=int, default=0)
    parser.add_argument("--link-width-bits", type=int, default=128)


def module(name, **members):
    sys.modules[name] = ModuleType(name)
    vars(sys.modules[name]).update(members)


sys.modules.update((name, MagicMock(name=name)) for name in NAMES.split())
sys.modules["sst.merlin.base"].Job = Job
sys.modules["m5"].simulate.return_value.getCode.return_value = 0
sys.modules["network"].Network.create_network.return_value = [MagicMock()] * 5
sys.modules["network"].Network.define_options = options_of_networks
module("m5.objects", **{name: MagicMock() for name in "Root RubySystem SrcClockDomain System VefNode VefReplay VoltageDomain".split()})
module("m5.util.convert", anyToLatency=any_to_latency)
module("topologies", __path__=[])
module("topologies.CrossbarGarnet", CrossbarGarnet=MagicMock())
module("topologies.Mesh_XY", Mesh_XY=MagicMock())
sys.modules["topologies.Mesh_XY"].Mesh_XY.return_value.makeTopology = mesh
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
