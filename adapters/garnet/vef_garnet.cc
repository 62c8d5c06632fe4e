// Packets of two sizes carry the messages: Garnet has no others. See vef_garnet.hh.

#include "vef_garnet.hh"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <ostream>
#include <string>

#include "base/logging.hh"
#include "mem/ruby/network/Network.hh"
#include "mem/ruby/slicc_interface/Message.hh"
#include "sim/cur_tick.hh"
#include "sim/sim_exit.hh"

namespace gem5
{

namespace ruby
{

namespace
{

/** The virtual network whose buffers are those for data. */
constexpr int VIRTUAL_NETWORK = 2;

/** A packet, as Ruby's networks carry it. */
class VefPacket : public Message
{
  public:
    VefPacket(Tick now, NodeID destination, MessageSizeType size, std::uint64_t message, std::uint64_t bytes)
        : Message(now), message_(message), bytes_(bytes), size_(size)
    {
        destination_.add(MachineID(MachineType_Directory, destination));
    }

    MsgPtr clone() const override { return std::make_shared<VefPacket>(*this); }
    void print(std::ostream &out) const override { out << "[" << bytes_ << " bytes of message " << message_ << "]"; }
    const MessageSizeType &getMessageSize() const override { return size_; }
    MessageSizeType &getMessageSize() override { return size_; }
    const NetDest &getDestination() const override { return destination_; }
    NetDest &getDestination() override { return destination_; }

    std::uint64_t message() const { return message_; }
    std::uint64_t bytes() const { return bytes_; }

  private:
    std::uint64_t message_, bytes_;
    MessageSizeType size_;
    NetDest destination_;
};

} // anonymous namespace

VefReplay::VefReplay(const Params &p)
    : SimObject(p), event_([this] { sendReady(); }, name() + ".event")
{
    vef::Builder builder;
    builder.job(p.trace.c_str());
    if (!p.placement.empty()) builder.placement(p.placement.c_str());
    nodesNeeded_ = builder.nodes_needed();
    replay_ = builder.build();
    fatal_if(!replay_, "vef: %s", builder.error());
}

void
VefReplay::connect(std::size_t number, VefNode *node)
{
    nodes_.resize(std::max(nodes_.size(), number + 1));
    nodes_[number] = node;
}

void
VefReplay::startup()
{
    fatal_if(nodesNeeded_ > nodes_.size(), "vef: the trace needs %d nodes, the network has %d", nodesNeeded_, nodes_.size());
    scheduleNext();
}

void
VefReplay::sendReady()
{
    while (const auto message = replay_.pop_ready(curTick())) {
        left_[message->id] = message->bytes;
        nodes_[message->src_node]->send(*message);
    }
    scheduleNext();
}

void
VefReplay::arrived(std::uint64_t message, std::uint64_t bytes)
{
    const auto left = left_.find(message);
    left->second -= bytes;
    if (left->second > 0) return;
    left_.erase(left);
    if (replay_.delivered(message, curTick())) scheduleNext();
    else exitSimLoop(std::string("vef: ") + replay_.error(), 1);
}

/** A delivery can bring the next message forward. */
void
VefReplay::scheduleNext()
{
    if (const auto next = replay_.next_ready()) reschedule(event_, std::max<Tick>(*next, curTick()), true);
    else if (left_.empty()) end();
}

void
VefReplay::end()
{
    if (over_) return;
    over_ = true;
    if (const char *why = replay_.stuck()) {
        exitSimLoop(std::string("vef: ") + why, 1);
        return;
    }
    const vef::Stats stats = replay_.stats();
    char result[128];
    std::snprintf(result, sizeof result, "%" PRIu64 " messages, %" PRIu64 " bytes, run time %.6f ms", stats.messages, stats.bytes,
                  static_cast<double>(stats.finish) / 1e9);
    exitSimLoop(result);
}

VefNode::VefNode(const Params &p)
    : Directory_Controller(p), replay_(p.replay), out_(p.toNetwork), in_(p.responseToDir)
{
    replay_->connect(m_version, this);
    out_->registerDequeueCallback([this] { sendPacket(); });
}

void
VefNode::initNetQueues()
{
    Directory_Controller::initNetQueues();
    const NodeID number = MachineType_base_number(MachineType_Directory) + m_version;
    m_net_ptr->setToNetQueue(number, out_->getOrdered(), VIRTUAL_NETWORK, "response", out_);
}

void
VefNode::wakeup()
{
    while (in_->isReady(clockEdge())) {
        const auto packet = std::dynamic_pointer_cast<VefPacket>(in_->peekMsgPtr());
        fatal_if(!packet, "vef: a message that no VefNode sent");
        in_->dequeue(clockEdge());
        replay_->arrived(packet->message(), packet->bytes());
    }
}

void
VefNode::send(const vef::Message &message)
{
    messages_.push_back(message);
    if (out_->isEmpty()) sendPacket();
}

void
VefNode::sendPacket()
{
    if (messages_.empty()) return;
    vef::Message &message = messages_.front();
    // A whole packet, or what is left flit by flit if this needs fewer.
    const std::uint64_t whole = m_net_ptr->MessageSizeType_to_int(MessageSizeType_Data);
    const std::uint64_t flit = m_net_ptr->MessageSizeType_to_int(MessageSizeType_Control);
    const bool is_whole = message.bytes > whole - flit;
    const std::uint64_t bytes = std::min(message.bytes, is_whole ? whole : flit);
    out_->enqueue(std::make_shared<VefPacket>(clockEdge(), message.dst_node, is_whole ? MessageSizeType_Data : MessageSizeType_Control, message.id, bytes),
                  clockEdge(), cyclesToTicks(Cycles(1)));
    message.bytes -= bytes;
    if (message.bytes == 0) messages_.pop_front();
}

} // namespace ruby
} // namespace gem5
