// A trace on SimGrid: one actor drives everything, messages are SimGrid's own communications between hosts of a star.
//
//     simgrid-replay TRACE
//
// SimGrid counts seconds in a double: they are rounded to picoseconds, and time that was told never goes back.
#include <vef_replay.hpp>

#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

namespace {

constexpr double PICOSECOND = 1e-12;
constexpr double LATENCY = 1e-6;              // s
constexpr double BANDWIDTH = 1.25e9;          // bytes/s

std::vector<sg4::Host *> star(std::uint32_t nodes)
{
    auto *zone = sg4::create_star_zone("star");
    std::vector<sg4::Host *> hosts;
    for (std::uint32_t node = 0; node < nodes; node++) {
        const std::string name = "node" + std::to_string(node);
        hosts.push_back(zone->create_host(name, "1Gf"));
        const auto *link = zone->create_split_duplex_link(name, BANDWIDTH)->set_latency(LATENCY / 2)->seal();
        zone->add_route(hosts.back()->get_netpoint(), nullptr, nullptr, nullptr, {{link, sg4::LinkInRoute::Direction::UP}}, true);
    }
    zone->seal();
    return hosts;
}

void drive(vef::Replay &replay, const std::vector<sg4::Host *> &hosts)
{
    std::vector<sg4::CommPtr> under_way;
    std::vector<std::uint64_t> ids;
    std::uint64_t now = 0;
    for (;;) {
        while (auto message = replay.pop_ready(now)) {
            // An empty communication never ends in SimGrid 3.32.
            const auto bytes = std::max<std::uint64_t>(message->bytes, 1);
            under_way.push_back(sg4::Comm::sendto_async(hosts[message->src_node], hosts[message->dst_node], bytes));
            ids.push_back(message->id);
        }
        // Wait for an arrival, but not beyond the next message.
        const auto next = replay.next_ready();
        if (next && *next <= now) continue;
        const double until = next ? static_cast<double>(*next - now) * PICOSECOND : -1;
        if (under_way.empty()) {
            if (!next) return;
            sg4::this_actor::sleep_for(until);
            now = *next;
            continue;
        }
        const auto arrived = sg4::Comm::wait_any_for(under_way, until);
        const auto clock = static_cast<std::uint64_t>(std::llround(sg4::Engine::get_clock() / PICOSECOND));
        now = std::max(now, next ? std::min(clock, *next) : clock);
        if (arrived < 0) {
            now = *next;
        } else {
            if (!replay.delivered(ids[arrived], now)) return; // an error in the trace: stuck() tells it
            std::swap(under_way[arrived], under_way.back());
            std::swap(ids[arrived], ids.back());
            under_way.pop_back();
            ids.pop_back();
        }
    }
}

} // namespace

int main(int argc, char **argv)
{
    sg4::Engine engine(&argc, argv);
    if (argc != 2) return std::fprintf(stderr, "usage: %s TRACE\n", argv[0]), 2;
    vef::Builder builder;
    const std::uint32_t ranks = builder.job(argv[1]).ranks(); // rank r is on node r
    vef::Replay replay = builder.build();
    if (!replay) return std::fprintf(stderr, "%s\n", builder.error()), 1;

    const auto hosts = star(ranks);
    sg4::Actor::create("driver", hosts.at(0), [&] { drive(replay, hosts); });
    engine.run();
    if (const char *why = replay.stuck()) return std::fprintf(stderr, "%s\n", why), 1;
    const vef::Stats stats = replay.stats();
    std::printf("%ju messages, %ju bytes, run time %.6f ms\n", std::uintmax_t{stats.messages},
                std::uintmax_t{stats.bytes}, static_cast<double>(stats.finish) / 1e9);
}
