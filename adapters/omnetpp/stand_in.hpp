// A stand-in for OMNeT++ in the test of the module: the names of its interface that replay.cc uses, and behind them a network without contention.
// A node sends a byte a nanosecond, and a packet has arrived whole LATENCY after its last byte was sent. Written for the test, from the use of the names alone.
#ifndef VEF_OMNETPP_STAND_IN_HPP
#define VEF_OMNETPP_STAND_IN_HPP

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#define Define_Module(type) static const bool registered_##type = omnetpp::registered([]() -> omnetpp::cSimpleModule * { return new type; })

namespace omnetpp {

constexpr std::int64_t LATENCY = 10'000, BIT = 125; // picoseconds

enum SimTimeUnit { SIMTIME_PS = -12 };

class SimTime {
public:
    static int getScaleExp() { return SIMTIME_PS; }
    static SimTime fromRaw(std::int64_t raw)
    {
        SimTime time;
        time.raw_ = raw;
        return time;
    }
    std::int64_t raw() const { return raw_; }

private:
    std::int64_t raw_ = 0;
};
using simtime_t = SimTime;

class cGate;

class cMessage {
public:
    explicit cMessage(const char *, short = 0) {}
    virtual ~cMessage() = default;
    virtual cMessage *dup() const { return new cMessage(*this); }
    bool isSelfMessage() const { return arrival == nullptr; }
    bool isScheduled() const { return scheduled; }
    void setContextPointer(void *context) { context_ = context; }
    void *getContextPointer() const { return context_; }
    cGate *getArrivalGate() const { return arrival; }

    bool scheduled = false;
    cGate *arrival = nullptr;

private:
    void *context_ = nullptr;
};

class cPacket : public cMessage {
public:
    cPacket(const char *name, short kind, std::int64_t bits) : cMessage(name, kind), bits_(bits) {}
    std::int64_t getBitLength() const { return bits_; }

private:
    std::int64_t bits_;
};

class cRuntimeError : public std::runtime_error {
public:
    template <typename... Arguments>
    explicit cRuntimeError(const char *format, Arguments... arguments) : std::runtime_error(text(format, arguments...))
    {
    }
    template <typename... Arguments>
    cRuntimeError(const cMessage *, const char *format, Arguments... arguments) : std::runtime_error(text(format, arguments...))
    {
    }

private:
    static std::string text(const char *format, ...)
    {
        char text[1000];
        va_list arguments;
        va_start(arguments, format);
        std::vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        return text;
    }
};

template <typename T>
T check_and_cast(cMessage *message)
{
    if (const auto cast = dynamic_cast<T>(message)) return cast;
    throw cRuntimeError("a message of another class");
}

class cChannel {
public:
    SimTime getTransmissionFinishTime() const { return SimTime::fromRaw(free_at); }
    std::int64_t free_at = 0;
};

class cGate {
public:
    explicit cGate(int index) : index_(index) {}
    int getIndex() const { return index_; }
    cChannel *getTransmissionChannel() { return &channel_; }

private:
    int index_;
    cChannel channel_;
};

class cPar {
public:
    explicit cPar(const std::string &text) : text_(text) {}
    const char *stringValue() const { return text_.c_str(); }
    std::int64_t intValue() const { return std::stol(text_); }

private:
    std::string text_;
};

/** The queue of events, by time and then by order. */
struct Simulation {
    std::multimap<std::int64_t, cMessage *> events;
    std::map<std::string, std::string> parameters{{"nodes", "64"}, {"placement", ""}, {"packet", "2048"}};
    std::int64_t now = 0;
    bool over = false;
};
inline Simulation simulation;
inline SimTime simTime() { return SimTime::fromRaw(simulation.now); }

std::int64_t destination_of(cPacket *packet); // by who defines packets

class cSimpleModule {
public:
    cSimpleModule()
    {
        for (int node = 0; node < std::stoi(simulation.parameters.at("nodes")); node++) gates_.push_back(std::make_unique<cGate>(node));
    }
    virtual ~cSimpleModule() = default;
    virtual void initialize() {}
    virtual void handleMessage(cMessage *) {}
    virtual void finish() {}

protected:
    cPar par(const char *name) const { return cPar(simulation.parameters.at(name)); }
    cGate *gate(const char *, int index) { return gates_.at(static_cast<std::size_t>(index)).get(); }
    int gateSize(const char *) const { return static_cast<int>(gates_.size()); }
    void recordScalar(const char *, double, const char *) {}
    void endSimulation() { simulation.over = true; }

    void scheduleAt(SimTime at, cMessage *message)
    {
        if (message->scheduled || at.raw() < simulation.now) throw cRuntimeError("scheduled twice, or in the past");
        message->scheduled = true;
        simulation.events.emplace(at.raw(), message);
    }
    void rescheduleAt(SimTime at, cMessage *message)
    {
        cancelEvent(message);
        scheduleAt(at, message);
    }
    cMessage *cancelEvent(cMessage *message)
    {
        for (auto event = simulation.events.begin(); message->scheduled; ++event)
            if (event->second == message) {
                simulation.events.erase(event);
                message->scheduled = false;
                break;
            }
        return message;
    }
    void cancelAndDelete(cMessage *message) { delete cancelEvent(message); }

    void send(cPacket *packet, cGate *from)
    {
        cChannel *channel = from->getTransmissionChannel();
        if (channel->free_at > simulation.now) throw cRuntimeError("the channel is busy");
        channel->free_at = simulation.now + packet->getBitLength() * BIT;
        packet->arrival = gate("", static_cast<int>(destination_of(packet)));
        simulation.events.emplace(channel->free_at + LATENCY, packet);
    }

private:
    std::vector<std::unique_ptr<cGate>> gates_;
};

using Create = cSimpleModule *(*)();
inline Create registered_module;
inline bool registered(Create create) { return registered_module = create, true; }

} // namespace omnetpp

/** Arguments of the form NAME=VALUE: nodes, and parameters of the module. */
int main(int argc, char **argv)
try {
    using omnetpp::simulation;
    for (int at = 1; at < argc; at++) {
        const std::string argument = argv[at];
        const auto equals = argument.find('=');
        simulation.parameters[argument.substr(0, equals)] = argument.substr(equals + 1);
    }
    std::unique_ptr<omnetpp::cSimpleModule> module(omnetpp::registered_module());
    module->initialize();
    while (!simulation.events.empty() && !simulation.over) {
        const auto [at, message] = *simulation.events.begin();
        simulation.events.erase(simulation.events.begin());
        simulation.now = at;
        message->scheduled = false;
        module->handleMessage(message);
    }
    module->finish();
} catch (const omnetpp::cRuntimeError &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}

#endif
