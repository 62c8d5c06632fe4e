// gem5 driven by a trace: VefReplay takes messages from vef_replay when they are ready, and a VefNode for each end node sends and receives them
// as packets over a network of Ruby, such as Garnet. gem5's sources stay as they are.
//
// A node is a controller, which is what Ruby's networks connect: the directory of the protocol Garnet_standalone, which consumes what arrives,
// and here sends, too. Its parts are MessageBuffers at the ports of the network, without sequencers, caches and addresses.
#ifndef VEF_GARNET_HH
#define VEF_GARNET_HH

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include <vef_replay.hpp>

#include "mem/ruby/network/MessageBuffer.hh"
#include "mem/ruby/protocol/Directory_Controller.hh"
#include "params/VefNode.hh"
#include "params/VefReplay.hh"
#include "sim/eventq.hh"
#include "sim/sim_object.hh"

namespace gem5
{

namespace ruby
{

class VefNode;

/** The replay: one for all nodes, because what a rank sends follows from what others have received. */
class VefReplay : public SimObject
{
  public:
    PARAMS(VefReplay);
    explicit VefReplay(const Params &p);

    /** The first event, when all nodes are known. */
    void startup() override;

    /** Makes `node` the end node with this number. */
    void connect(std::size_t number, VefNode *node);

    /** Bytes of a message have arrived with a packet; the last ones deliver it. */
    void arrived(std::uint64_t message, std::uint64_t bytes);

  private:
    void sendReady();
    void scheduleNext();
    void end();

    vef::Replay replay_;
    std::uint64_t nodesNeeded_;
    std::vector<VefNode *> nodes_;
    /** Bytes that have not arrived, of each message under way. */
    std::unordered_map<std::uint64_t, std::uint64_t> left_;
    EventFunctionWrapper event_;
    bool over_ = false;
};

/** An end node: its messages in the order in which they became ready, one packet after the other. */
class VefNode : public Directory_Controller
{
  public:
    PARAMS(VefNode);
    explicit VefNode(const Params &p);

    void initNetQueues() override;
    void wakeup() override;

    void send(const vef::Message &message);

  private:
    void sendPacket();

    VefReplay *const replay_;
    /** To the network: the next packet. Its dequeuing makes the one after it. */
    MessageBuffer *const out_;
    MessageBuffer *const in_;
    /** `bytes` of the first are what is not in packets yet. */
    std::deque<vef::Message> messages_;
};

} // namespace ruby
} // namespace gem5

#endif // VEF_GARNET_HH
