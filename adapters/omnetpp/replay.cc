// OMNeT++ driven by a trace: a simple module whose gates are the end nodes of a replay.
//
// Messages become packets, as many as their bytes need, and are delivered when the last packet has come. A node sends its packets one after the other,
// at the rate of the channel at its gate.

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <unordered_map>

#include <omnetpp.h>

#include <vef_replay.hpp>

#include "packet.h"

using namespace omnetpp;

/** Injects the messages of a replay, and reports their delivery. */
class Replay : public cSimpleModule {
public:
    ~Replay() override
    {
        cancelAndDelete(wake_up_);
        for (Node &node : nodes_) cancelAndDelete(node.sent);
    }

protected:
    void initialize() override
    {
        if (SimTime::getScaleExp() != SIMTIME_PS) throw cRuntimeError("a trace needs simtime-resolution = ps");
        packet_bytes_ = static_cast<std::uint64_t>(par("packet").intValue());
        if (packet_bytes_ < 1) throw cRuntimeError("packet must be at least 1 B");
        vef::Builder builder;
        builder.job(par("trace").stringValue());
        if (*par("placement").stringValue()) builder.placement(par("placement").stringValue());
        const std::uint64_t needed = builder.nodes_needed();
        replay_ = builder.build();
        if (!replay_) throw cRuntimeError("%s", builder.error());
        const int count = gateSize("node");
        if (needed > static_cast<std::uint64_t>(count)) throw cRuntimeError("the trace needs %" PRIu64 " nodes, gate node[] has %d", needed, count);
        for (int node = 0; node < count; node++) {
            cGate *out = gate("node$o", node);
            nodes_.push_back({out, out->getTransmissionChannel(), new cMessage("sent"), {}});
            nodes_.back().sent->setContextPointer(&nodes_.back());
        }
        proceed();
    }

    void handleMessage(cMessage *event) override
    {
        if (event != wake_up_ && event->isSelfMessage()) return send(*static_cast<Node *>(event->getContextPointer()));
        if (event != wake_up_) received(check_and_cast<VefPacket *>(event));
        proceed();
    }

    void finish() override
    {
        const vef::Stats stats = replay_.stats();
        std::printf("%" PRIu64 " messages, %" PRIu64 " bytes, run time %.6f ms\n", stats.messages, stats.bytes,
                    static_cast<double>(stats.finish) / 1e9);
        recordScalar("runtime", static_cast<double>(stats.finish) / 1e12, "s");
    }

private:
    /** A message that has not been sent whole. */
    struct Sending {
        std::uint64_t id, bytes;
        std::uint32_t to;
    };

    struct Node {
        cGate *out;
        cChannel *channel;
        cMessage *sent; // to itself: the channel is free again
        std::deque<Sending> queue;
    };

    static std::uint64_t now() { return static_cast<std::uint64_t>(simTime().raw()); }

    /** Takes what is ready, and sets the alarm for what comes next. */
    void proceed()
    {
        while (auto message = replay_.pop_ready(now())) {
            packets_left_[message->id] = std::max<std::uint64_t>(1, (message->bytes + packet_bytes_ - 1) / packet_bytes_);
            Node &node = nodes_[message->src_node];
            node.queue.push_back({message->id, message->bytes, message->dst_node});
            if (!node.sent->isScheduled()) send(node);
        }
        const auto next = replay_.next_ready();
        if (next) rescheduleAt(SimTime::fromRaw(static_cast<std::int64_t>(*next)), wake_up_);
        else cancelEvent(wake_up_);
        if (next || !packets_left_.empty()) return;
        if (const char *why = replay_.stuck()) throw cRuntimeError("%s", why);
        endSimulation();
    }

    /** Sends the next packet of a node whose channel is free. */
    void send(Node &node)
    {
        if (node.queue.empty()) return;
        Sending &message = node.queue.front();
        const std::uint64_t bytes = std::min(message.bytes, packet_bytes_);
        cSimpleModule::send(new VefPacket(message.id, message.to, bytes), node.out);
        scheduleAt(node.channel->getTransmissionFinishTime(), node.sent);
        message.bytes -= bytes;
        if (message.bytes == 0) node.queue.pop_front();
    }

    void received(VefPacket *packet)
    {
        const std::uint64_t message = packet->message;
        if (packet->getArrivalGate()->getIndex() != static_cast<int>(packet->destination)) throw cRuntimeError(packet, "a packet of another node");
        delete packet;
        const auto left = packets_left_.find(message);
        if (--left->second > 0) return;
        packets_left_.erase(left);
        if (!replay_.delivered(message, now())) throw cRuntimeError("%s", replay_.error());
    }

    vef::Replay replay_;
    std::deque<Node> nodes_; // a deque: addresses stay
    cMessage *wake_up_ = new cMessage("wake up");
    std::uint64_t packet_bytes_ = 0;
    std::unordered_map<std::uint64_t, std::uint64_t> packets_left_; // of each message under way
};

Define_Module(Replay);
