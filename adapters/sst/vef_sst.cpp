// SST driven by a trace: a component whose network interfaces are the nodes of a replay. The network is any that offers
// SST::Interfaces::SimpleNetwork, such as all of merlin.
//
// Messages become packets, as many as their bytes need. Merlin hands a packet over when its head arrives; its tail follows at the bandwidth of the
// node's link. A message is delivered when the tails of all its packets have arrived.

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

#include <vef_replay.hpp>

#include <sst/core/component.h>
#include <sst/core/event.h>
#include <sst/core/interfaces/simpleNetwork.h>
#include <sst/core/link.h>
#include <sst/core/output.h>
#include <sst/core/params.h>
#include <sst/core/unitAlgebra.h>

namespace vef_sst {

using SST::Interfaces::SimpleNetwork;

/** Payload of a packet. */
class Packet : public SST::Event {
public:
    Packet() = default;
    explicit Packet(std::uint64_t of) : message(of) {}

    std::uint64_t message = 0; // id in the replay

    void serialize_order(SST::Core::Serialization::serializer &ser) override
    {
        Event::serialize_order(ser);
        SST_SER(message);
    }
    ImplementSerializable(vef_sst::Packet)
};

/** Injects the messages of a replay, and reports their delivery. One component is all nodes, so that the replay needs no synchronisation: the
 * routers can still be divided among SST's threads and ranks. */
class Replay : public SST::Component {
public:
    SST_ELI_REGISTER_COMPONENT(Replay, "vef", "replay", SST_ELI_ELEMENT_VERSION(0, 2, 0), "Replays an MPI trace (VEF)", COMPONENT_CATEGORY_NETWORK)

    SST_ELI_DOCUMENT_PARAMS(
        {"trace", "Trace, text or container", nullptr},
        {"placement", "Placement file; without one rank r is on node r", ""},
        {"packet", "Size of a packet, at most. Longer messages are several packets", "2KiB"})

    SST_ELI_DOCUMENT_SUBCOMPONENT_SLOTS({"network", "Interface of node N in slot N", "SST::Interfaces::SimpleNetwork"})

    Replay(SST::ComponentId_t id, SST::Params &params) : Component(id), out_("vef: ", 0, 0, SST::Output::STDOUT)
    {
        registerTimeBase("1ps");
        build(params);
        auto packet = params.find<SST::UnitAlgebra>("packet", "2KiB");
        if (packet.hasUnits("B")) packet *= SST::UnitAlgebra("8b/B");
        if (!packet.hasUnits("b") || packet.getRoundedValue() < 8) out_.fatal(CALL_INFO, 2, "packet must be at least 1 B\n");
        packet_bytes_ = static_cast<std::uint64_t>(packet.getRoundedValue()) / 8;
        self_ = configureSelfLink("self", "1ps", new SST::Event::Handler<Replay, &Replay::proceed>(this));
        registerAsPrimaryComponent();
        primaryComponentDoNotEndSim();
    }

    void init(unsigned int phase) override
    {
        for (Node &node : nodes_) node.network->init(phase);
    }

    void setup() override
    {
        for (Node &node : nodes_) {
            node.network->setup();
            node.ps_per_bit = 1e12 / node.network->getLinkBW().getDoubleValue();
            if (!node.network->spaceToSend(0, bits(packet_bytes_))) out_.fatal(CALL_INFO, 2, "packet is larger than output_buf_size of the interfaces\n");
        }
        proceed(nullptr);
    }

    void complete(unsigned int phase) override
    {
        for (Node &node : nodes_) node.network->complete(phase);
    }

    void finish() override
    {
        for (Node &node : nodes_) node.network->finish();
        const vef::Stats stats = replay_.stats();
        out_.output("%" PRIu64 " messages, %" PRIu64 " bytes, run time %.6f ms\n", stats.messages, stats.bytes,
                    static_cast<double>(stats.finish) / 1e9);
    }

private:
    /** A message that has not been sent whole. */
    struct Sending {
        std::uint64_t id, bytes;
        std::uint32_t to;
    };

    struct Node {
        SimpleNetwork *network;
        double ps_per_bit;
        std::deque<Sending> queue;
    };

    /** The replay and the interfaces of its nodes. */
    void build(SST::Params &params)
    {
        vef::Builder builder;
        builder.job(params.find<std::string>("trace").c_str());
        const auto placement = params.find<std::string>("placement");
        if (!placement.empty()) builder.placement(placement.c_str());
        const std::uint64_t needed = builder.nodes_needed();
        replay_ = builder.build();
        if (!replay_) out_.fatal(CALL_INFO, 2, "%s\n", builder.error());

        SST::SubComponentSlotInfo *slots = getSubComponentSlotInfo("network");
        const std::uint32_t count = slots ? static_cast<std::uint32_t>(slots->getMaxPopulatedSlotNumber() + 1) : 0;
        if (needed > count) out_.fatal(CALL_INFO, 2, "the trace needs %" PRIu64 " nodes, slot \"network\" has %" PRIu32 "\n", needed, count);
        for (std::uint32_t node = 0; node < count; node++) {
            auto *network = slots->create<SimpleNetwork>(node, SST::ComponentInfo::SHARE_NONE, 1); // 1 virtual network
            if (!network) out_.fatal(CALL_INFO, 2, "slot \"network\" has no interface for node %" PRIu32 "\n", node);
            network->setNotifyOnReceive(new SimpleNetwork::Handler<Replay, &Replay::received, std::uint32_t>(this, node));
            network->setNotifyOnSend(new SimpleNetwork::Handler<Replay, &Replay::send, std::uint32_t>(this, node));
            nodes_.push_back({network, 0, {}});
        }
    }

    /** A packet is whole, or (null) it is time for the next message. */
    void proceed(SST::Event *event)
    {
        const std::uint64_t now = getCurrentSimTime();
        if (auto *packet = static_cast<Packet *>(event)) {
            const auto left = packets_left_.find(packet->message);
            if (--left->second == 0) {
                packets_left_.erase(left);
                if (!replay_.delivered(packet->message, now)) out_.fatal(CALL_INFO, 1, "%s\n", replay_.error());
            }
            delete packet;
        }
        while (auto message = replay_.pop_ready(now)) {
            packets_left_[message->id] = std::max<std::uint64_t>(1, (message->bytes + packet_bytes_ - 1) / packet_bytes_);
            nodes_[message->src_node].queue.push_back({message->id, message->bytes, message->dst_node});
            send(0, message->src_node);
        }
        // Events of a self link cannot be recalled: one that comes too early or too late finds nothing to do.
        if (now >= alarm_) alarm_ = NEVER;
        const auto next = replay_.next_ready();
        if (next && *next < alarm_) {
            self_->send(*next - now, nullptr);
            alarm_ = *next;
        }
        if (next || !packets_left_.empty()) return;
        if (const char *why = replay_.stuck()) out_.fatal(CALL_INFO, 1, "%s\n", why);
        primaryComponentOKToEndSim();
    }

    /** Gives the interface of a node as many packets as it takes; the interface calls this again when it has sent one. */
    bool send(int, std::uint32_t from)
    {
        Node &node = nodes_[from];
        while (!node.queue.empty()) {
            Sending &message = node.queue.front();
            const std::uint64_t bytes = std::min(message.bytes, packet_bytes_);
            if (!node.network->spaceToSend(0, bits(bytes))) break;
            const auto to = nodes_[message.to].network->getEndpointID();
            node.network->send(new SimpleNetwork::Request(to, node.network->getEndpointID(), bits(bytes), true, true, new Packet(message.id)), 0);
            message.bytes -= bytes;
            if (message.bytes == 0) node.queue.pop_front();
        }
        return true; // keep the handler
    }

    /** The head of a packet has arrived. */
    bool received(int, std::uint32_t at)
    {
        Node &node = nodes_[at];
        while (SimpleNetwork::Request *request = node.network->recv(0)) {
            self_->send(static_cast<std::uint64_t>(std::llround(node.ps_per_bit * static_cast<double>(request->size_in_bits))), request->takePayload());
            delete request;
        }
        return true;
    }

    /** Size of a packet in the network: an empty message is a packet, too. */
    static int bits(std::uint64_t bytes) { return static_cast<int>(8 * std::max<std::uint64_t>(bytes, 1)); }

    static constexpr std::uint64_t NEVER = std::numeric_limits<std::uint64_t>::max();

    SST::Output out_;
    vef::Replay replay_;
    std::vector<Node> nodes_;
    SST::Link *self_;
    std::uint64_t packet_bytes_;
    std::uint64_t alarm_ = NEVER;                                    // of the earliest null event under way, in ps
    std::unordered_map<std::uint64_t, std::uint64_t> packets_left_;  // of each message under way
};

} // namespace vef_sst
