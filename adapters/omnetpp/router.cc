// The router of the example networks: stores packets whole and forwards them along shortest routes.

#include <cstdint>
#include <deque>
#include <vector>

#include <omnetpp.h>

#include "packet.h"

using namespace omnetpp;

class Router : public cSimpleModule {
public:
    ~Router() override
    {
        for (Port &port : ports_) cancelAndDelete(port.sent);
    }

protected:
    void initialize() override
    {
        for (int port = 0; port < gateSize("port"); port++) {
            Port &added = ports_.emplace_back();
            added.out = gate("port$o", port);
            added.sent->setContextPointer(&added);
        }
        find_routes();
    }

    void handleMessage(cMessage *event) override
    {
        if (event->isSelfMessage()) {
            Port &port = *static_cast<Port *>(event->getContextPointer());
            if (!port.queue.isEmpty()) send(port, port.queue.pop());
            return;
        }
        auto *packet = check_and_cast<VefPacket *>(event);
        Port &port = ports_[static_cast<std::size_t>(route_.at(packet->destination))];
        if (port.sent->isScheduled()) port.queue.insert(packet);
        else send(port, packet);
    }

private:
    struct Port {
        cGate *out = nullptr;
        cMessage *sent = new cMessage("sent"); // to itself: the channel is free again
        cPacketQueue queue;
    };

    void send(Port &port, cPacket *packet)
    {
        cSimpleModule::send(packet, port.out);
        scheduleAt(port.out->getTransmissionChannel()->getTransmissionFinishTime(), port.sent);
    }

    /** The port for each end node: of those that lead to a router nearer to the destination's, number (destination mod their count). */
    void find_routes()
    {
        cTopology routers;
        routers.extractByNedTypeName({getNedTypeName()});
        cTopology::Node *here = routers.getNodeFor(this);
        cModule *replay = getParentModule()->getSubmodule("replay");
        const int nodes = replay->gateSize("node");
        for (int node = 0; node < nodes; node++) {
            cGate *home = replay->gate("node$o", node)->getPathEndGate();
            if (home->getOwnerModule() == this) {
                route_.push_back(home->getIndex());
                continue;
            }
            routers.calculateUnweightedSingleShortestPathsTo(routers.getNodeFor(home->getOwnerModule()));
            std::vector<int> nearer;
            for (int link = 0; link < here->getNumOutLinks(); link++) {
                const cTopology::LinkOut *out = here->getLinkOut(link);
                if (out->getRemoteNode()->getDistanceToTarget() < here->getDistanceToTarget()) nearer.push_back(out->getLocalGate()->getIndex());
            }
            if (nearer.empty()) throw cRuntimeError("no route to node %d", node);
            route_.push_back(nearer[static_cast<std::size_t>(node) % nearer.size()]);
        }
    }

    std::deque<Port> ports_; // a deque: addresses stay
    std::vector<int> route_; // by destination: a port
};

Define_Module(Router);
