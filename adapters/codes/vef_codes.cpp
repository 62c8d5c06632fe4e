// CODES driven by a trace: an LP type "nw-lp" whose LPs are the end nodes of a replay, over any network of model-net, and the main function that
// runs it. A workload method of CODES cannot do this: it gives each rank a list of MPI calls that CODES matches, while a trace says what each
// message depends on, and the library plays collectives.
//
// Each process of ROSS has the engine of its own LPs (a partition of the replay). A message between processes carries its parcel in its event.

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <mpi.h>

#include <ross.h>

#include <codes/codes.h>
#include <codes/codes_mapping.h>
#include <codes/configuration.h>
#include <codes/lp-io.h>
#include <codes/lp-type-lookup.h>
#include <codes/model-net.h>

#include <vef_replay.hpp>

namespace {

constexpr char NODE[] = "nw-lp"; // as in the configurations of CODES's own programs

/** What the event of a node says. */
enum class What : std::uint32_t {
    START,    // a message of this node is to enter the network
    ARRIVED,  // a message has arrived
    IMPORTED, // a message of another process has arrived
    WAKE,     // the engine asked to be called
};

/** The event of a node. ROSS copies it, also between processes. */
struct Happening {
    What what;
    std::uint32_t to;  // node, of START
    std::uint64_t at;  // in ps
    std::uint64_t id;  // of the engine, but of IMPORTED
    std::uint64_t bytes;
    vef::Parcel parcel; // of IMPORTED
};

/** State of a node. */
struct Node {
    std::uint64_t start; // of the last message, in ps
    double entry;        // when it was given to the network, in ns
};

int network;                 // of model-net
std::vector<tw_lpid> nodes;  // the LP of each
vef::Engine engine;          // of the nodes of this process
std::vector<std::vector<vef::Next>> first; // of each node: what follows from the start

/** Ends the program, in all processes. */
[[noreturn]] void fail(int code, const char *why)
{
    std::fflush(stdout);
    std::fprintf(stderr, "vef: %s\n", why);
    MPI_Abort(MPI_COMM_WORLD, code);
    std::abort();
}

/** ROSS counts nanoseconds. */
double nanoseconds(std::uint64_t picoseconds) { return static_cast<double>(picoseconds) / 1e3; }

/** Schedules an event of the node `to`. No event of ROSS comes sooner than its lookahead; twice that, as sums are rounded. */
void post(tw_lpid to, const Happening &happening, tw_lp *lp)
{
    tw_event *event = tw_event_new(to, std::max(nanoseconds(happening.at) - tw_now(lp), 2 * g_tw_lookahead), lp);
    *static_cast<Happening *>(tw_event_data(event)) = happening;
    tw_event_send(event);
}

/** Gives a message of this node to the network. */
void inject(Node &node, const Happening &message, tw_lp *lp)
{
    // model-net delays each hand-over at random, by CODES_LATENCY_RANGE at most: messages of one moment keep their order.
    node.entry = message.at == node.start ? node.entry + CODES_LATENCY_RANGE : nanoseconds(message.at);
    node.start = message.at;
    const tw_lpid to = nodes[message.to];
    Happening arrival{What::ARRIVED, message.to, 0, message.id, message.bytes, {}};
    if (codes_mapping(to) != g_tw_mynode) {
        const auto exported = engine.export_message(message.id);
        if (!exported) fail(1, engine.error());
        arrival.what = What::IMPORTED;
        arrival.parcel = exported->first;
    }
    // Networks of model-net divide messages into packets: an empty one has one, too.
    model_net_event(network, "vef", to, std::max<std::uint64_t>(message.bytes, 1), std::max(node.entry - tw_now(lp), 0.0),
                    sizeof arrival, &arrival, 0, nullptr, lp);
}

/** Schedules what has followed from a call of the engine. */
void schedule(Node &node, const vef::Next &next, tw_lp *lp)
{
    Happening happening{What::START, next.dst_node, next.at, next.id, next.bytes, {}};
    if (next.what == VEF_NEXT_WAKE) {
        happening.what = What::WAKE;
        post(lp->gid, happening, lp);
    } else if (next.what == VEF_NEXT_INSIDE) {
        happening.what = What::ARRIVED;
        post(nodes[next.dst_node], happening, lp);
    } else if (nodes[next.src_node] != lp->gid) {
        post(nodes[next.src_node], happening, lp);
    } else {
        inject(node, happening, lp);
    }
}

/** The first LP of a process starts its engine, and each sends its own first messages. */
void start(void *state, tw_lp *lp)
{
    Node &node = *static_cast<Node *>(state);
    node.start = std::numeric_limits<std::uint64_t>::max();
    const auto here = static_cast<std::size_t>(codes_mapping_get_lp_relative_id(lp->gid, 0, 0));
    if (first.empty()) {
        first.resize(nodes.size());
        if (!engine.begin()) fail(1, engine.error());
        engine.follow([&](const vef::Next &next) { first[next.what == VEF_NEXT_WAKE ? here : next.src_node].push_back(next); });
    }
    for (const vef::Next &next : std::exchange(first[here], {})) schedule(node, next, lp);
}

void happen(void *state, tw_bf *, void *data, tw_lp *lp)
{
    Node &node = *static_cast<Node *>(state);
    Happening &happening = *static_cast<Happening *>(data);
    const std::uint64_t now = std::max(happening.at, static_cast<std::uint64_t>(std::llround(tw_now(lp) * 1e3)));
    bool accepted = true;
    switch (happening.what) {
    case What::START: inject(node, happening, lp); return;
    case What::IMPORTED: {
        const auto id = engine.import_message(happening.parcel);
        accepted = id && engine.delivered(*id, now);
        break;
    }
    case What::ARRIVED: accepted = engine.delivered(happening.id, now); break;
    case What::WAKE: accepted = engine.wake(happening.id, now); break;
    }
    if (!accepted) fail(1, engine.error());
    engine.follow([&](const vef::Next &next) { schedule(node, next, lp); });
}

void end(void *, tw_lp *) {}

tw_lptype node_type = {start, nullptr, happen, nullptr, nullptr, end, codes_mapping, sizeof(Node)};

/** The engine of the nodes of this process. */
void build(const char *trace, const char *placement)
{
    vef::Builder builder;
    builder.job(trace);
    if (placement) builder.placement(placement);
    const std::uint64_t needed = builder.nodes_needed();
    if (needed > nodes.size()) {
        char why[128];
        std::snprintf(why, sizeof why, "the trace needs %" PRIu64 " nodes, the configuration has %zu %s", needed, nodes.size(), NODE);
        fail(2, why);
    }
    std::vector<std::uint32_t> part_of;
    for (const tw_lpid node : nodes) part_of.push_back(static_cast<std::uint32_t>(codes_mapping(node)));
    std::vector<vef::Engine> engines = builder.partitions(part_of, static_cast<std::uint32_t>(tw_nnodes()));
    if (engines.empty()) fail(2, builder.error());
    engine = std::move(engines[g_tw_mynode]);
}

/** Prints the result; returns whether the replay is complete. */
bool report()
{
    const char *why = engine.stuck();
    if (why) std::fprintf(stderr, "vef: %s\n", why);
    const vef::Stats stats = engine.stats();
    std::uint64_t sums[] = {stats.messages, stats.bytes, why != nullptr};
    std::uint64_t finish = stats.finish;
    MPI_Allreduce(MPI_IN_PLACE, sums, 3, MPI_UINT64_T, MPI_SUM, MPI_COMM_CODES);
    MPI_Allreduce(MPI_IN_PLACE, &finish, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_CODES);
    if (g_tw_mynode == 0 && sums[2] == 0)
        std::printf("vef: %" PRIu64 " messages, %" PRIu64 " bytes, run time %.6f ms\n", sums[0], sums[1], static_cast<double>(finish) / 1e9);
    return sums[2] == 0;
}

char lp_io_dir[1 << 17]; // room for the longest argument of Linux, which ROSS copies here

const tw_optdef options[] = {TWOPT_GROUP("Replay of a trace: -- CONFIG TRACE [PLACEMENT]"),
                             TWOPT_CHAR("lp-io-dir", lp_io_dir, "directory to be made for the statistics of LPs"), TWOPT_END()};

} // namespace

int main(int argc, char **argv)
{
    g_tw_ts_end = 1e18; // no end but that of the trace
    tw_opt_add(options);
    tw_init(&argc, &argv);
    codes_comm_update();
    if (argc < 3 || argc > 4) fail(2, "usage: vef-codes [OPTION...] -- CONFIG TRACE [PLACEMENT]");
    if (g_tw_synchronization_protocol != SEQUENTIAL && g_tw_synchronization_protocol != CONSERVATIVE)
        fail(2, "--synch=1 (sequential) or --synch=2 (conservative): a replay cannot go back in time");

    if (configuration_load(argv[1], MPI_COMM_CODES, &config) != 0) fail(2, "the configuration cannot be read");
    model_net_register();
    lp_type_register(NODE, &node_type);
    codes_mapping_setup();
    int networks;
    const std::unique_ptr<int, decltype(&std::free)> ids(model_net_configure(&networks), &std::free);
    network = *ids;
    const int count = codes_mapping_get_lp_count(nullptr, 0, NODE, nullptr, 1);
    for (int node = 0; node < count; node++) nodes.push_back(codes_mapping_get_lpid_from_relative(node, nullptr, NODE, nullptr, 0));
    build(argv[2], argc > 3 ? argv[3] : nullptr);

    lp_io_handle statistics = nullptr;
    if (lp_io_dir[0] && lp_io_prepare(lp_io_dir, 0, &statistics, MPI_COMM_CODES) < 0) fail(2, "the directory of --lp-io-dir cannot be made");
    tw_run();
    model_net_report_stats(network);
    if (statistics && lp_io_flush(statistics, MPI_COMM_CODES) < 0) fail(2, "the statistics of LPs cannot be written");
    const bool complete = report();
    tw_end();
    return complete ? 0 : 1;
}
