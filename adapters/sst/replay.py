"""A trace on a network of merlin:

    sst --add-lib-path=DIR replay.py -- TRACE --topology torus:4x4

where DIR has the libvef.so of `build`. ReplayJob is for configurations of your own: import it, or copy it.
"""
import argparse
import re

try:
    import sst
    from sst.merlin.base import Job, NetworkInterface, System
    from sst.merlin.interface import LinkControl
    from sst.merlin.topology import topoDragonFly, topoFatTree, topoMesh, topoSingle, topoTorus
except ImportError as error:
    raise SystemExit("vef: %s: this is a configuration for the program sst, with merlin" % error)

# Shapes that merlin's classes take: numbers from 1, divided by these.
SHAPES = {"switch": "N", "mesh": "N(xN)*", "torus": "N(xN)*", "fattree": "(N,N:)*N", "dragonfly": "NxNxNxN"}


class ReplayJob(Job):
    """The nodes of a replay: the interfaces of one component. Other arguments are parameters of vef.replay."""

    def __init__(self, job_id, size, **parameters):
        Job.__init__(self, job_id, size)
        self._declareClassVariables(["component"])
        self.component = sst.Component("vef%d" % job_id, "vef.replay")
        self.component.addParams(parameters)

    def getName(self):
        return "ReplayJob"

    def build(self, node, keys, link=None):
        number = self._nid_map[node]
        return NetworkInterface._instanceNetworkInterfaceBackCompat(
            self.network_interface, self.component, "network", number, self.job_id, self.size, number, True, link)


def topology(text):
    """switch:N, mesh:AxB, torus:AxBxC, fattree:DOWN,UP:DOWN… or dragonfly:HOSTSxROUTERSxLINKSxGROUPS
    (hosts of a router, routers of a group, links between two groups)."""
    kind, _, shape = text.partition(":")
    if not re.fullmatch(SHAPES.get(kind, "(?!)").replace("N", "[1-9][0-9]*"), shape, re.ASCII):
        raise SystemExit("vef: --topology %s: it is %s" % (text, " ".join(topology.__doc__.split())))
    if kind == "switch":
        network = topoSingle()
        network.num_ports = int(shape)
    elif kind in ("mesh", "torus"):
        network = topoMesh() if kind == "mesh" else topoTorus()
        network.setShape(shape, "x".join("1" for _ in shape.split("x")), 1)
    elif kind == "fattree":
        network = topoFatTree()
        network.shape = shape
    else:
        network = topoDragonFly()
        network.hosts_per_router, network.routers_per_group, network.intergroup_links, network.num_groups = map(int, shape.split("x"))
    return network


def main():
    options = argparse.ArgumentParser(prog="replay.py")
    options.add_argument("trace")
    options.add_argument("--topology", default="torus:4x4", help=topology.__doc__)
    options.add_argument("--placement", default="", help="placement file; without one rank r is on node r")
    options.add_argument("--bandwidth", default="100Gb/s", help="of links, and of routers' crossbars")
    options.add_argument("--latency", default="25ns", help="of links")
    options.add_argument("--flit", default="64B")
    options.add_argument("--packet", default="2KiB")
    options.add_argument("--buffer", default="16KiB", help="of each input and output")
    given = options.parse_args()

    network = topology(given.topology)
    network.link_latency = given.latency
    router = network.router
    router.link_bw = router.xbar_bw = given.bandwidth
    router.flit_size = given.flit
    router.input_buf_size = router.output_buf_size = given.buffer
    router.xbar_arb = "merlin.xbar_arb_lru"

    interface = LinkControl()
    interface.link_bw = given.bandwidth
    interface.input_buf_size = interface.output_buf_size = given.buffer

    job = ReplayJob(0, network.getNumNodes(), trace=given.trace, placement=given.placement, packet=given.packet)
    job.network_interface = interface
    system = System()
    system.setTopology(network)
    system.allocateNodes(job, "linear")
    system.build()


if __name__ == "__main__":
    main()
