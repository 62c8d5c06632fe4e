// BookSim2 driven by a trace: a traffic manager that takes its messages from vef_replay, and a main function that uses it in place of
// BookSim's own. BookSim's sources stay as they are.
//
// Messages become packets, as many as their bytes need. A message is delivered when the tail of its last packet has left the network. While
// the network is empty its cycles are not simulated: the clock of the trace is then ahead of that of BookSim.

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

#include <vef_replay.hpp>

#include "booksim.hpp"
#include "booksim_config.hpp"
#include "credit.hpp"
#include "globals.hpp"
#include "network.hpp"
#include "random_utils.hpp"
#include "routefunc.hpp"
#include "trafficmanager.hpp"

namespace {

/** BookSim's configuration, with what the trace needs. */
class Config : public BookSimConfig {
public:
    Config()
    {
        AddStrField("vef_trace", "");      // a trace, text or container
        AddStrField("vef_placement", "");  // a placement file; without one rank r is on node r
        _int_map["vef_cycle"] = 1000;      // picoseconds a cycle
        _int_map["vef_flit"] = 16;         // bytes a flit
        _int_map["vef_packet"] = 16;       // flits a packet, at most
    }
};

/** Injects the messages of a replay, and reports their delivery. */
class TraceTraffic : public TrafficManager {
public:
    TraceTraffic(const Config &config, const std::vector<Network *> &network, vef::Replay replay)
        : TrafficManager(config, network),
          replay_(std::move(replay)),
          cycle_(config.GetInt("vef_cycle")),
          flit_bytes_(config.GetInt("vef_flit")),
          packet_flits_(config.GetInt("vef_packet"))
    {
    }

    /** Runs to the end of the trace; whether it was reached. */
    bool replay()
    {
        _sim_state = running;
        for (;;) {
            while (auto message = replay_.pop_ready(now())) inject(*message);
            if (left_.empty() && !skip_idle_cycles()) break;
            if (left_.empty()) continue;
            _Step();
            for (std::uint64_t id : arrived_)
                if (!replay_.delivered(id, now())) return failed(replay_.error());
            arrived_.clear();
        }
        const char *why = replay_.stuck();
        return why ? failed(why) : true;
    }

    vef::Replay &trace() { return replay_; }

    /** Cycles that were simulated. */
    int cycles() const { return _time; }

protected:
    /** The random traffic of the base class: none. */
    int _IssuePacket(int, int) override { return 0; }

    void _RetireFlit(Flit *flit, int node) override
    {
        const bool is_last = flit->tail;
        const int packet = flit->pid;
        TrafficManager::_RetireFlit(flit, node); // frees it
        if (!is_last) return;
        const auto message = of_packet_.find(packet);
        const auto left = left_.find(message->second);
        of_packet_.erase(message);
        if (--left->second > 0) return;
        arrived_.push_back(left->first);
        left_.erase(left);
    }

private:
    /** The moment at which the next cycle begins, in picoseconds. */
    std::uint64_t now() const { return (skipped_ + static_cast<std::uint64_t>(_time)) * cycle_; }

    /** The network is empty: goes on in the cycle of the next message. False if there is none. */
    bool skip_idle_cycles()
    {
        // Credits are on their way when the last flit has arrived.
        while (Credit::OutStanding() != 0) _Step();
        const auto next = replay_.next_ready();
        if (!next) return false;
        if (*next > now()) skipped_ += (*next - now() + cycle_ - 1) / cycle_;
        return true;
    }

    void inject(const vef::Message &message)
    {
        const std::uint64_t flits = std::max<std::uint64_t>(1, (message.bytes + flit_bytes_ - 1) / flit_bytes_);
        left_[message.id] = (flits + packet_flits_ - 1) / packet_flits_;
        for (std::uint64_t left = flits; left > 0;) {
            const std::uint64_t size = std::min<std::uint64_t>(left, packet_flits_);
            of_packet_[_cur_pid] = message.id;
            packet(static_cast<int>(message.src_node), static_cast<int>(message.dst_node), static_cast<int>(size));
            left -= size;
        }
    }

    /** A packet into the queue of its source, as the base class makes them. */
    void packet(int source, int destination, int size)
    {
        const int id = _cur_pid++, subnet = RandomInt(_subnets - 1);
        for (int at = 0; at < size; at++) {
            Flit *flit = Flit::New();
            flit->id = _cur_id++;
            flit->pid = id;
            flit->src = source;
            flit->dest = at == 0 ? destination : -1;
            flit->head = at == 0;
            flit->tail = at == size - 1;
            flit->type = Flit::ANY_TYPE;
            flit->subnetwork = subnet;
            flit->ctime = _time;
            flit->record = true;
            flit->cl = 0;
            flit->vc = -1;
            flit->pri = _pri_type == age_based ? std::numeric_limits<int>::max() - _time : 0;
            flit->watch = false;
            _total_in_flight_flits[0].insert({flit->id, flit});
            _measured_in_flight_flits[0].insert({flit->id, flit});
            _partial_packets[source][0].push_back(flit);
        }
    }

    static bool failed(const char *why) { return std::cerr << "vef: " << why << std::endl, false; }

    vef::Replay replay_;
    std::uint64_t cycle_, flit_bytes_, packet_flits_;
    /** Cycles of an empty network. */
    std::uint64_t skipped_ = 0;
    /** The message of each packet, and how many packets of each message are under way. */
    std::unordered_map<int, std::uint64_t> of_packet_;
    std::unordered_map<std::uint64_t, std::uint64_t> left_;
    std::vector<std::uint64_t> arrived_;
};

/** The replay that the configuration asks for; empty after an error. */
vef::Replay replay_of(const Config &config)
{
    vef::Builder builder;
    builder.job(config.GetStr("vef_trace").c_str());
    const std::string placement = config.GetStr("vef_placement");
    if (!placement.empty()) builder.placement(placement.c_str());
    const auto nodes = builder.nodes_needed();
    vef::Replay replay = builder.build();
    if (!replay) {
        std::cerr << "vef: " << builder.error() << std::endl;
    } else if (nodes > static_cast<std::uint64_t>(gNodes)) {
        std::cerr << "vef: the trace needs " << nodes << " nodes, the network has " << gNodes << std::endl;
        return vef::Replay();
    }
    return replay;
}

} // namespace

// What BookSim's main.cpp defines for the rest of BookSim.
TrafficManager *trafficManager = nullptr;
bool gPrintActivity, gTrace;
int gK, gN, gC, gNodes;
std::ostream *gWatchOut = nullptr;

int GetSimTime() { return trafficManager->getTime(); }
Stats *GetStats(const std::string &name) { return trafficManager->getStats(name); }

int main(int argc, char **argv)
{
    Config config;
    if (!ParseArgs(&config, argc, argv) || config.GetStr("vef_trace").empty()) {
        std::cerr << "usage: " << argv[0] << " CONFIG vef_trace=TRACE [NAME=VALUE...]" << std::endl;
        return 2;
    }
    for (const char *name : {"vef_cycle", "vef_flit", "vef_packet"})
        if (config.GetInt(name) < 1) return std::cerr << name << " must be at least 1" << std::endl, 2;
    if (config.GetInt("classes") != 1 || config.GetInt("use_read_write") != 0)
        return std::cerr << "vef: one class of messages without replies: classes = 1, use_read_write = 0" << std::endl, 2;
    InitializeRoutingMap(config);
    std::vector<Network *> network(static_cast<std::size_t>(config.GetInt("subnets")));
    for (std::size_t at = 0; at < network.size(); at++) network[at] = Network::New(config, "network_" + std::to_string(at));

    vef::Replay replay = replay_of(config);
    if (!replay) return 2;
    TraceTraffic traffic(config, network, std::move(replay));
    trafficManager = &traffic;
    const bool complete = traffic.replay();
    traffic.UpdateStats();
    traffic.DisplayStats();
    if (!complete) return 1;
    const vef::Stats stats = traffic.trace().stats();
    std::printf("%" PRIu64 " messages, %" PRIu64 " bytes, run time %.6f ms, %d cycles simulated\n", stats.messages, stats.bytes,
                static_cast<double>(stats.finish) / 1e9, traffic.cycles());
    for (Network *each : network) delete each;
    return 0;
}
