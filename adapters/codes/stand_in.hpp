// A stand-in for MPI, ROSS and CODES in the test of vef_codes.cpp: the names of their interfaces that it uses, for one process, and behind them a
// network without contention. A node sends a byte a nanosecond, and a message has arrived LATENCY after its last byte was sent. Written for the
// test, from the use of the names alone.
#ifndef VEF_CODES_STAND_IN_HPP
#define VEF_CODES_STAND_IN_HPP

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

// MPI

using MPI_Comm = int;
enum { MPI_COMM_WORLD, MPI_COMM_CODES, MPI_IN_PLACE_VALUE, MPI_UINT64_T, MPI_SUM, MPI_MAX };
#define MPI_IN_PLACE nullptr
inline int MPI_Allreduce(const void *, void *, int, int, int, MPI_Comm) { return 0; } // of one process
[[noreturn]] inline int MPI_Abort(MPI_Comm, int code) { std::exit(code); }

// ROSS: nanoseconds

using tw_stime = double;
using tw_lpid = std::uint64_t;
using tw_peid = unsigned long;
enum { NO_SYNCH, SEQUENTIAL, CONSERVATIVE, OPTIMISTIC };
struct tw_bf {};
struct tw_lp;

struct tw_lptype {
    void (*init)(void *, tw_lp *);
    void (*pre_run)(void *, tw_lp *);
    void (*event)(void *, tw_bf *, void *, tw_lp *);
    void (*revent)(void *, tw_bf *, void *, tw_lp *);
    void (*commit)(void *, tw_bf *, void *, tw_lp *);
    void (*final)(void *, tw_lp *);
    tw_peid (*map)(tw_lpid);
    std::size_t state_sz;
};

struct tw_lp {
    tw_lpid gid;
    std::vector<unsigned char> state;
    tw_stime idle; // when the link of the node is free
};

struct tw_event {
    tw_lpid to;
    tw_stime at;
    std::vector<unsigned char> data;
};

struct tw_optdef {
    const char *name;
    char *value;
};
#define TWOPT_GROUP(help) {nullptr, nullptr}
#define TWOPT_CHAR(name, value, help) {name, value}
#define TWOPT_END() {nullptr, nullptr}

inline constexpr tw_stime LATENCY = 10;
inline constexpr std::size_t EVENT_BYTES = 128;
inline tw_stime g_tw_ts_end, g_tw_lookahead = 0.005;
inline tw_peid g_tw_mynode;
inline unsigned g_tw_synchronization_protocol;

/** All that there is of a simulation. */
struct Simulation {
    std::vector<tw_lp> lps;
    const tw_lptype *type = nullptr;
    std::multimap<tw_stime, tw_event *> events;
    tw_stime now = 0;
};
inline Simulation simulation;

inline unsigned tw_nnodes() { return 1; }
inline void tw_opt_add(const tw_optdef *) {}
inline tw_stime tw_now(tw_lp *) { return simulation.now; }
inline tw_event *tw_event_new(tw_lpid to, tw_stime delay, tw_lp *) { return new tw_event{to, simulation.now + delay, std::vector<unsigned char>(EVENT_BYTES)}; }
inline void *tw_event_data(tw_event *event) { return event->data.data(); }
inline void tw_event_send(tw_event *event)
{
    if (event->at < g_tw_ts_end) simulation.events.emplace(event->at, event);
}

/** Reads --synch=N and the options before `--`. */
inline void tw_init(int *count, char ***arguments)
{
    char **argv = *arguments;
    int at = 1;
    for (; at < *count && std::strcmp(argv[at], "--") != 0; at++)
        if (std::strncmp(argv[at], "--synch=", 8) == 0) g_tw_synchronization_protocol = static_cast<unsigned>(std::atoi(argv[at] + 8));
    argv[at < *count ? at : 0] = argv[0];
    *arguments = argv + at;
    *count -= at;
}

inline void tw_run()
{
    for (tw_lp &lp : simulation.lps) simulation.type->init(lp.state.data(), &lp);
    auto &events = simulation.events;
    while (!events.empty()) {
        tw_event *event = events.begin()->second;
        simulation.now = events.begin()->first;
        events.erase(events.begin());
        tw_lp &lp = simulation.lps.at(event->to);
        tw_bf bits;
        simulation.type->event(lp.state.data(), &bits, event->data.data(), &lp);
        delete event;
    }
    for (tw_lp &lp : simulation.lps) simulation.type->final(lp.state.data(), &lp);
}

inline void tw_end() {}

// CODES: a configuration is the number of nodes

constexpr tw_stime CODES_LATENCY_RANGE = 0.5;
using ConfigHandle = int;
inline ConfigHandle config;
using lp_io_handle = char *;

inline void codes_comm_update() {}
inline int configuration_load(const char *path, MPI_Comm, ConfigHandle *nodes) { return std::ifstream(path) >> *nodes ? 0 : 1; }
inline void lp_type_register(const char *, const tw_lptype *type) { simulation.type = type; }
inline tw_peid codes_mapping(tw_lpid) { return 0; }
inline void codes_mapping_setup()
{
    for (int node = 0; node < config; node++)
        simulation.lps.push_back({static_cast<tw_lpid>(node), std::vector<unsigned char>(simulation.type->state_sz), 0});
}
inline int codes_mapping_get_lp_count(const char *, int, const char *, const char *, int) { return config; }
inline tw_lpid codes_mapping_get_lpid_from_relative(int node, const char *, const char *, const char *, int) { return static_cast<tw_lpid>(node); }
inline int codes_mapping_get_lp_relative_id(tw_lpid gid, int, int) { return static_cast<int>(gid); }
inline int lp_io_prepare(const char *, int, lp_io_handle *, MPI_Comm) { return 0; }
inline int lp_io_flush(lp_io_handle, MPI_Comm) { return 0; }
inline void model_net_register() {}
inline int *model_net_configure(int *count)
{
    *count = 1;
    return static_cast<int *>(std::calloc(1, sizeof(int)));
}
inline void model_net_report_stats(int) {}
inline int model_net_event(int, const char *, tw_lpid to, std::uint64_t bytes, tw_stime delay, int size, const void *arrival, int, const void *, tw_lp *from)
{
    if (static_cast<std::size_t>(size) > EVENT_BYTES) std::abort();
    from->idle = std::max(from->idle, simulation.now + delay) + static_cast<tw_stime>(bytes);
    tw_event *event = tw_event_new(to, from->idle + LATENCY - simulation.now, from);
    std::memcpy(tw_event_data(event), arrival, static_cast<std::size_t>(size));
    tw_event_send(event);
    return 0;
}

#endif
