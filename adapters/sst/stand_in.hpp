// A stand-in for SST in the test of the component: the names of SST's interface that vef_sst.cpp uses, and behind them a network without contention.
// A node sends a byte a nanosecond, and as in merlin the head of a packet arrives, LATENCY later, with all of the packet. Written for the test, from
// the use of the names alone.
#ifndef VEF_SST_STAND_IN_HPP
#define VEF_SST_STAND_IN_HPP

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#define CALL_INFO __LINE__, __FILE__, __func__
#define COMPONENT_CATEGORY_NETWORK 0
#define SST_ELI_ELEMENT_VERSION(...) 0
#define SST_ELI_DOCUMENT_PARAMS(...)
#define SST_ELI_DOCUMENT_SUBCOMPONENT_SLOTS(...)
#define SST_ELI_REGISTER_COMPONENT(type, ...) \
    static SST::Component *create(SST::ComponentId_t id, SST::Params &params) { return new type(id, params); } \
    inline static const bool registered_ = SST::registered(&create);
#define SST_SER(member) (void)(member), (void)ser
#define ImplementSerializable(type)

namespace SST {

constexpr std::uint64_t LATENCY = 10'000, BYTE = 1'000; // picoseconds

using ComponentId_t = std::uint64_t;
using SimTime_t = std::uint64_t;

/** The queue of events, by time and then by order. */
struct Simulation {
    std::multimap<SimTime_t, std::function<void()>> events;
    SimTime_t now = 0;
    bool over = false;
    std::uint32_t nodes = 64;
    std::uint64_t buffer = 4096; // bytes
    void in(SimTime_t delay, std::function<void()> what) { events.emplace(now + delay, std::move(what)); }
};
inline Simulation simulation;

/** A number of bits, bytes, or one of these a second. */
class UnitAlgebra {
public:
    UnitAlgebra(const std::string &text)
    {
        char *rest;
        value_ = std::strtod(text.c_str(), &rest);
        for (const auto &[prefix, factor] : std::map<std::string, double>{{"Ki", 1024}, {"k", 1e3}, {"G", 1e9}})
            if (std::string(rest).rfind(prefix, 0) == 0) value_ *= factor, rest += prefix.size();
        units_ = rest;
    }
    UnitAlgebra &operator*=(const UnitAlgebra &other)
    {
        value_ *= other.value_;
        units_ = units_ == "B" && other.units_ == "b/B" ? "b" : "?";
        return *this;
    }
    bool hasUnits(const std::string &units) const { return units_ == units; }
    std::int64_t getRoundedValue() const { return static_cast<std::int64_t>(value_ + 0.5); }
    double getDoubleValue() const { return value_; }

private:
    double value_;
    std::string units_;
};

class Params {
public:
    std::map<std::string, std::string> values;
    template <typename T>
    T find(const std::string &name, const std::string &otherwise = "") const
    {
        const auto found = values.find(name);
        return T(found == values.end() ? otherwise : found->second);
    }
};

class Output {
public:
    enum output_location_t { STDOUT };
    Output(const std::string &prefix, std::uint32_t, std::uint32_t, output_location_t) : prefix_(prefix) {}
    void output(const char *format, ...) const
    {
        va_list arguments;
        va_start(arguments, format);
        std::vprintf(format, arguments);
        va_end(arguments);
    }
    [[noreturn]] void fatal(std::uint32_t, const char *, const char *, int code, const char *format, ...) const
    {
        va_list arguments;
        va_start(arguments, format);
        std::fprintf(stderr, "FATAL: %s", prefix_.c_str());
        std::vfprintf(stderr, format, arguments);
        va_end(arguments);
        std::exit(code);
    }

private:
    std::string prefix_;
};

namespace Core::Serialization {
struct serializer {};
} // namespace Core::Serialization

class Event {
public:
    virtual ~Event() = default;
    virtual void serialize_order(Core::Serialization::serializer &) {}
    using HandlerBase = std::function<void(Event *)>;
    template <typename T, auto method>
    struct Handler : HandlerBase {
        explicit Handler(T *object) : HandlerBase(std::bind(method, object, std::placeholders::_1)) {}
    };
};

class Link {
public:
    explicit Link(Event::HandlerBase *handler) : handler_(handler) {}
    void send(SimTime_t delay, Event *event)
    {
        simulation.in(delay, [this, event] { (*handler_)(event); });
    }

private:
    std::unique_ptr<Event::HandlerBase> handler_;
};

struct ComponentInfo {
    enum { SHARE_NONE };
};

namespace Interfaces {

/** An interface to the network, with room for packets that it has not sent. */
class SimpleNetwork {
public:
    using nid_t = std::int64_t;
    using HandlerBase = std::function<bool(int)>;
    template <typename T, auto method, typename Data>
    struct Handler : HandlerBase {
        Handler(T *object, Data data) : HandlerBase(std::bind(method, object, std::placeholders::_1, data)) {}
    };

    struct Request {
        nid_t dest, src;
        std::size_t size_in_bits;
        Request(nid_t to, nid_t from, std::size_t bits, bool, bool, Event *payload) : dest(to), src(from), size_in_bits(bits), payload_(payload) {}
        Event *takePayload() { return payload_; }

    private:
        Event *payload_;
    };

    explicit SimpleNetwork(nid_t id) : id_(id) { all().push_back(this); }
    void init(unsigned int) {}
    void setup() {}
    void complete(unsigned int) {}
    void finish() {}
    void setNotifyOnReceive(HandlerBase *handler) { on_receive_.reset(handler); }
    void setNotifyOnSend(HandlerBase *handler) { on_send_.reset(handler); }
    nid_t getEndpointID() const { return id_; }
    UnitAlgebra getLinkBW() const { return UnitAlgebra("8Gb/s"); }
    bool spaceToSend(int, int bits) const { return filled_ + static_cast<std::uint64_t>(bits) / 8 <= simulation.buffer; }
    bool send(Request *request, int network)
    {
        if (!spaceToSend(network, static_cast<int>(request->size_in_bits))) return false;
        filled_ += request->size_in_bits / 8;
        to_send_.push_back(request);
        if (!busy_) simulation.in(0, [this] { next(); });
        busy_ = true;
        return true;
    }
    Request *recv(int)
    {
        if (received_.empty()) return nullptr;
        Request *request = received_.front();
        received_.pop_front();
        return request;
    }

private:
    static std::vector<SimpleNetwork *> &all()
    {
        static std::vector<SimpleNetwork *> interfaces;
        return interfaces;
    }

    /** The link is free: sends the next packet, if there is one. */
    void next()
    {
        busy_ = !to_send_.empty();
        if (!busy_) return;
        Request *request = to_send_.front();
        to_send_.pop_front();
        const std::uint64_t bytes = request->size_in_bits / 8;
        filled_ -= bytes;
        SimpleNetwork *to = all().at(static_cast<std::size_t>(request->dest));
        simulation.in(LATENCY, [to, request] {
            to->received_.push_back(request);
            (*to->on_receive_)(0);
        });
        simulation.in(bytes * BYTE, [this] { next(); });
        (*on_send_)(0);
    }

    nid_t id_;
    std::uint64_t filled_ = 0; // bytes
    bool busy_ = false;
    std::deque<Request *> to_send_, received_;
    std::unique_ptr<HandlerBase> on_receive_, on_send_;
};

} // namespace Interfaces

struct SubComponentSlotInfo {
    int getMaxPopulatedSlotNumber() const { return static_cast<int>(simulation.nodes) - 1; }
    template <typename T>
    T *create(std::uint32_t slot, int, int) const
    {
        return new T(slot);
    }
};

class Component {
public:
    explicit Component(ComponentId_t) {}
    virtual ~Component() = default;
    virtual void init(unsigned int) {}
    virtual void setup() {}
    virtual void complete(unsigned int) {}
    virtual void finish() {}

protected:
    void registerTimeBase(const std::string &) {}
    SimTime_t getCurrentSimTime() const { return simulation.now; }
    Link *configureSelfLink(const std::string &, const std::string &, Event::HandlerBase *handler) { return new Link(handler); }
    SubComponentSlotInfo *getSubComponentSlotInfo(const std::string &) { return &slots_; }
    void registerAsPrimaryComponent() {}
    void primaryComponentDoNotEndSim() {}
    void primaryComponentOKToEndSim() { simulation.over = true; }

private:
    SubComponentSlotInfo slots_;
};

using Create = Component *(*)(ComponentId_t, Params &);
inline Create registered_component;
inline bool registered(Create create) { return registered_component = create, true; }

} // namespace SST

/** Arguments of the form NAME=VALUE: nodes, buffer (bytes), and parameters of the component. */
int main(int argc, char **argv)
{
    SST::Params params;
    for (int at = 1; at < argc; at++) {
        const std::string argument = argv[at];
        const auto equals = argument.find('=');
        params.values[argument.substr(0, equals)] = argument.substr(equals + 1);
    }
    if (params.values.count("nodes")) SST::simulation.nodes = static_cast<std::uint32_t>(std::stoul(params.values["nodes"]));
    if (params.values.count("buffer")) SST::simulation.buffer = std::stoul(params.values["buffer"]);
    std::unique_ptr<SST::Component> component(SST::registered_component(0, params));
    component->init(0);
    component->setup();
    auto &events = SST::simulation.events;
    while (!events.empty() && !SST::simulation.over) {
        const auto first = events.begin();
        SST::simulation.now = first->first;
        const auto event = std::move(first->second);
        events.erase(first);
        event();
    }
    component->complete(0);
    component->finish();
}

#endif
