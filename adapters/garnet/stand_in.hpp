// A stand-in for gem5 in the test of the adapter: the names of gem5's interface that vef_garnet.cc uses, and behind them a network without
// contention. A cycle is a nanosecond, a node sends a flit a cycle, and a packet has arrived LATENCY after its last flit was sent. As in gem5, a
// packet is in a buffer for a cycle before the network, or the node, takes it. Written for the test, from the use of the names alone.
#ifndef VEF_GARNET_STAND_IN_HPP
#define VEF_GARNET_STAND_IN_HPP

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#define PARAMS(type) using Params = gem5::type##Params
#define fatal_if(condition, ...) \
    do { \
        if (condition) gem5::fatal(__VA_ARGS__); \
    } while (0)

namespace gem5
{

using Tick = std::uint64_t;
constexpr Tick CYCLE = 1'000, LATENCY = 10'000; // picoseconds

struct Event {
    std::function<void()> work;
    bool scheduled = false;
    Tick when = 0;
    std::uint64_t order = 0;
};

/** The queue of events, by time and then by order. */
struct Simulation {
    std::map<std::pair<Tick, std::uint64_t>, std::function<void()>> events;
    Tick now = 0;
    std::uint64_t order = 0;
    void at(Tick when, std::function<void()> work) { events.emplace(std::pair(when, order++), std::move(work)); }
};
inline Simulation simulation;

inline Tick curTick() { return simulation.now; }

struct EventFunctionWrapper : Event {
    EventFunctionWrapper(std::function<void()> what, const std::string &) { work = std::move(what); }
};

inline std::string text(const char *format) { return format; }

template <typename First, typename... Rest>
std::string text(const char *format, const First &first, const Rest &...rest)
{
    const std::string whole = format;
    const std::size_t at = whole.find('%');
    std::ostringstream out;
    out << whole.substr(0, at) << first << text(whole.substr(at + 2).c_str(), rest...);
    return out.str();
}

template <typename... Arguments>
[[noreturn]] void fatal(const char *format, const Arguments &...arguments)
{
    std::cerr << "fatal: " << text(format, arguments...) << std::endl;
    std::exit(1);
}

/** As with gem5, what is under way at this moment continues. */
inline void exitSimLoop(const std::string &message, int code = 0)
{
    simulation.at(curTick(), [message, code] {
        (code == 0 ? std::cout : std::cerr) << message << std::endl;
        std::exit(code);
    });
}

struct SimObjectParams {
    std::string name;
};

class SimObject
{
  public:
    explicit SimObject(const SimObjectParams &p) : name_(p.name) {}
    virtual ~SimObject() = default;
    virtual void startup() {}
    std::string name() const { return name_; }

  protected:
    void reschedule(Event &event, Tick when, bool always)
    {
        if (!always && !event.scheduled) fatal("not scheduled");
        if (when < curTick()) fatal("in the past");
        if (event.scheduled) simulation.events.erase({event.when, event.order});
        event.scheduled = true;
        event.when = when;
        event.order = simulation.order;
        simulation.at(when, [&event] {
            event.scheduled = false;
            event.work();
        });
    }

  private:
    std::string name_;
};

class Cycles
{
  public:
    explicit Cycles(std::uint64_t count) : count_(count) {}
    operator std::uint64_t() const { return count_; }

  private:
    std::uint64_t count_;
};

namespace ruby
{

using NodeID = std::uint32_t;
enum MachineType { MachineType_Directory };
enum MessageSizeType { MessageSizeType_Control, MessageSizeType_Data };

/** Machines of other types come first. */
inline NodeID MachineType_base_number(MachineType) { return 7; }

struct MachineID {
    MachineID(MachineType, NodeID node) : num(node) {}
    NodeID num;
};

class NetDest
{
  public:
    void add(MachineID machine) { to_.push_back(machine.num); }
    NodeID only() const { return to_.size() == 1 ? to_[0] : (fatal("not one destination"), 0); }

  private:
    std::vector<NodeID> to_;
};

class Message;
using MsgPtr = std::shared_ptr<Message>;

class Message
{
  public:
    explicit Message(Tick) {}
    virtual ~Message() = default;
    virtual MsgPtr clone() const = 0;
    virtual void print(std::ostream &out) const = 0;
    virtual const MessageSizeType &getMessageSize() const = 0;
    virtual MessageSizeType &getMessageSize() = 0;
    virtual const NetDest &getDestination() const = 0;
    virtual NetDest &getDestination() = 0;
};

class MessageBuffer
{
  public:
    bool getOrdered() const { return false; }
    bool isEmpty() const { return messages_.empty(); }
    bool isReady(Tick now) const { return !messages_.empty() && messages_.begin()->first <= now; }
    const MsgPtr &peekMsgPtr() const { return messages_.begin()->second; }
    void registerDequeueCallback(std::function<void()> callback) { callback_ = std::move(callback); }
    void setConsumer(std::function<void()> consumer) { consumer_ = std::move(consumer); }
    void enqueue(MsgPtr message, Tick now, Tick delta)
    {
        if (now < curTick() || now % CYCLE != 0 || delta == 0) fatal("no edge of the clock");
        messages_.emplace(now + delta, std::move(message));
        simulation.at(now + delta, consumer_);
    }
    void dequeue(Tick now)
    {
        if (!isReady(now)) fatal("nothing to dequeue");
        messages_.erase(messages_.begin());
        if (callback_) callback_();
    }

  private:
    std::multimap<Tick, MsgPtr> messages_;
    std::function<void()> callback_, consumer_;
};

class Network
{
  public:
    Network(std::uint64_t packet, std::uint64_t flit) : packet_(packet), flit_(flit) {}
    std::uint64_t MessageSizeType_to_int(MessageSizeType size) const { return size == MessageSizeType_Data ? packet_ : flit_; }
    void setFromNetQueue(NodeID number, MessageBuffer *buffer) { node(number).in = buffer; }
    void setToNetQueue(NodeID number, bool, int virtual_network, const std::string &type, MessageBuffer *buffer)
    {
        if (virtual_network != 2 || type != "response") fatal("not the virtual network for data");
        Interface &from = node(number);
        from.out = buffer;
        buffer->setConsumer([this, number] { take(node(number)); });
    }

  private:
    struct Interface {
        MessageBuffer *in = nullptr, *out = nullptr;
        Tick free = 0;
    };

    Interface &node(NodeID number) { return interfaces_[number]; }

    /** The next packet, if one is there, and the one before has been sent. */
    void take(Interface &from)
    {
        const Tick now = curTick();
        if (!from.out->isReady(now)) return;
        if (from.free > now) return simulation.at(from.free, [this, &from] { take(from); });
        const MsgPtr message = from.out->peekMsgPtr()->clone();
        from.free = now + CYCLE * ((MessageSizeType_to_int(message->getMessageSize()) + flit_ - 1) / flit_);
        MessageBuffer *const to = node(MachineType_base_number(MachineType_Directory) + message->getDestination().only()).in;
        const Tick arrival = from.free + LATENCY;
        simulation.at(arrival, [to, message, arrival] { to->enqueue(message, arrival, CYCLE); });
        from.out->dequeue(now);
    }

    std::uint64_t packet_, flit_;
    std::map<NodeID, Interface> interfaces_;
};

struct Directory_ControllerParams : SimObjectParams {
    NodeID version;
    MessageBuffer *responseToDir;
};

class Directory_Controller : public SimObject
{
  public:
    explicit Directory_Controller(const Directory_ControllerParams &p) : SimObject(p), m_version(p.version), responseToDir_(p.responseToDir) {}
    void initNetworkPtr(Network *network) { m_net_ptr = network; }
    virtual void initNetQueues()
    {
        m_net_ptr->setFromNetQueue(MachineType_base_number(MachineType_Directory) + m_version, responseToDir_);
        responseToDir_->setConsumer([this] { wakeup(); });
    }
    virtual void wakeup() { fatal("a directory that consumes"); }

  protected:
    Tick clockEdge() const { return (curTick() + CYCLE - 1) / CYCLE * CYCLE; }
    Tick cyclesToTicks(Cycles cycles) const { return cycles * CYCLE; }

    const NodeID m_version;
    Network *m_net_ptr = nullptr;

  private:
    MessageBuffer *responseToDir_;
};

class VefReplay;

} // namespace ruby

struct VefReplayParams : SimObjectParams {
    std::string trace, placement;
};

struct VefNodeParams : ruby::Directory_ControllerParams {
    ruby::VefReplay *replay;
    ruby::MessageBuffer *toNetwork;
};

/** A configuration of arguments NAME=VALUE, run to its end. */
template <typename Replay, typename Node>
int simulate(int argc, char **argv)
{
    std::map<std::string, std::string> given{{"nodes", "64"}, {"packet", "64"}, {"flit", "16"}};
    for (int at = 1; at < argc; at++) {
        const std::string argument = argv[at];
        const std::size_t equals = argument.find('=');
        given[argument.substr(0, equals)] = argument.substr(equals + 1);
    }
    VefReplayParams of_replay;
    of_replay.name = "replay";
    of_replay.trace = given["trace"];
    of_replay.placement = given["placement"];
    Replay replay(of_replay);
    std::vector<std::unique_ptr<Node>> nodes;
    std::vector<ruby::MessageBuffer> buffers(2 * std::stoul(given["nodes"]));
    for (std::size_t at = 0; at < buffers.size() / 2; at++) {
        VefNodeParams of_node;
        of_node.name = "node" + std::to_string(at);
        of_node.version = static_cast<ruby::NodeID>(at);
        of_node.responseToDir = &buffers[2 * at];
        of_node.toNetwork = &buffers[2 * at + 1];
        of_node.replay = &replay;
        nodes.push_back(std::make_unique<Node>(of_node));
    }
    ruby::Network network(std::stoull(given["packet"]), std::stoull(given["flit"]));
    for (auto &node : nodes) {
        node->initNetworkPtr(&network);
        node->initNetQueues();
    }
    replay.startup();
    while (!simulation.events.empty()) {
        const auto next = simulation.events.begin();
        simulation.now = next->first.first;
        const std::function<void()> work = std::move(next->second);
        simulation.events.erase(next);
        work();
    }
    fatal("no event is left, and the replay has not ended");
}

} // namespace gem5

#endif
