"""A trace on a network of Garnet:

    gem5.opt replay.py TRACE --nodes 16 --topology Mesh_XY --mesh-rows 4

The topologies and the options of networks are gem5's own, of the directory configs of the checkout in which the program was built.
"""
import argparse
import importlib
import os
import sys
import traceback

try:
    import m5
    from m5.objects import *
    from m5.util.convert import anyToLatency
except ImportError as error:
    raise SystemExit("vef: %s: this is a configuration for the program gem5.opt" % error)

CHECKOUT = os.path.dirname(os.path.realpath("/proc/self/exe")) + "/../.."


def network(ruby, nodes, options):
    """The network that the options describe, and `nodes` at its ends."""
    from network import Network

    ruby.network, internal, external, router, interface = Network.create_network(options, ruby)
    # Packets of two sizes: whole ones, and one flit.
    flit = options.link_width_bits // 8
    ruby.block_size_bytes = 1 << (options.packet - 1).bit_length()
    ruby.network.control_msg_size = flit
    ruby.network.data_msg_size = options.packet - flit
    ruby.network.number_of_virtual_networks = ruby.number_of_virtual_networks = 3
    ruby.network.buffers_per_data_vc = options.buffers_per_vc
    try:
        topology = getattr(importlib.import_module("topologies." + options.topology), options.topology)
    except (AttributeError, ImportError) as error:
        raise SystemExit("vef: --topology %s: %s" % (options.topology, error))
    try:
        topology(nodes).makeTopology(options, ruby.network, internal, external, router)
    except (AssertionError, ZeroDivisionError) as error:
        # What gem5's topologies require of their numbers they assert, without a text.
        place = traceback.extract_tb(error.__traceback__)[-1]
        given = "--topology %s --nodes %d --routers %d --mesh-rows %d" % (options.topology, options.nodes, options.num_cpus, options.mesh_rows)
        raise SystemExit("vef: %s cannot be: %s (%s, line %d)" % (given, place.line, place.filename, place.lineno))
    Network.init_network(options, ruby.network, interface)


def count(text):
    if int(text) < 1:
        raise ValueError
    return int(text)


def clock(text):
    if anyToLatency(text) <= 0:
        raise ValueError
    return text


def main():
    sys.path.append(os.path.join(CHECKOUT, "configs"))
    try:
        from network import Network
    except ImportError as error:
        raise SystemExit("vef: %s/configs: %s" % (CHECKOUT, error))
    parser = argparse.ArgumentParser(prog="replay.py")
    parser.add_argument("trace")
    parser.add_argument("--placement", default="", help="placement file; without one rank r is on node r")
    parser.add_argument("--nodes", type=count, required=True, help="end nodes of the network")
    parser.add_argument("--routers", dest="num_cpus", type=count, help="of Mesh_XY and the like: a divisor of --nodes, which is the default")
    parser.add_argument("--clock", type=clock, default="1GHz", help="of the network: a flit a cycle")
    parser.add_argument("--packet", type=count, default=2048, help="bytes of a packet, at most; a multiple of a flit's")
    parser.add_argument("--buffers-per-vc", type=count, default=4, help="flits")
    Network.define_options(parser)
    parser.set_defaults(network="garnet", topology="CrossbarGarnet")
    options = parser.parse_args()
    options.num_cpus = options.num_cpus or options.nodes
    if options.link_width_bits < 8 or options.link_width_bits % 8 != 0 or options.packet % (options.link_width_bits // 8) != 0:
        parser.error("--packet must be a multiple of a flit's bytes, which are --link-width-bits / 8")

    m5.ticks.setGlobalFrequency("1ps")
    system = System(mem_mode="timing")
    system.voltage_domain = VoltageDomain()
    system.clk_domain = SrcClockDomain(clock=options.clock, voltage_domain=system.voltage_domain)
    system.ruby = RubySystem(num_of_sequencers=0)
    system.replay = VefReplay(trace=options.trace, placement=options.placement)
    system.nodes = [VefNode(version=node, replay=system.replay, ruby_system=system.ruby) for node in range(options.nodes)]
    network(system.ruby, system.nodes, options)

    root = Root(full_system=False, system=system)
    m5.instantiate()
    exit_event = m5.simulate()
    print(exit_event.getCause(), file=sys.stderr if exit_event.getCode() else sys.stdout)
    sys.exit(exit_event.getCode())


if __name__ in ("__main__", "__m5_main__"):
    main()
