"""The replay of a trace, and the nodes of a Ruby network that carry its messages."""
from m5.objects.Directory_Controller import Directory_Controller
from m5.objects.MessageBuffer import MessageBuffer
from m5.params import *
from m5.SimObject import SimObject


class VefReplay(SimObject):
    type = "VefReplay"
    cxx_header = "vef_garnet.hh"
    cxx_class = "gem5::ruby::VefReplay"

    trace = Param.String("the trace, text or container")
    placement = Param.String("", "a placement file; without one rank r is on node r")


class VefNode(Directory_Controller):
    type = "VefNode"
    cxx_header = "vef_garnet.hh"
    cxx_class = "gem5::ruby::VefNode"

    replay = Param.VefReplay("whose messages it sends and receives")
    toNetwork = Param.MessageBuffer(MessageBuffer(), "the next packet")

    # Virtual network 2 has buffers for data: it alone is used.
    requestToDir = MessageBuffer()
    forwardToDir = MessageBuffer()
    responseToDir = MessageBuffer()
    addr_ranges = []
