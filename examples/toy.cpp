// A network simulator in sixty lines: every node has a link out and a link in, each with a bandwidth and a queue, and between
// them lies a latency. Event by event; of this project it knows vef_replay.hpp alone.
//
//     toy TRACE
#include <vef_replay.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <queue>
#include <unordered_map>
#include <vector>

namespace {

constexpr std::uint64_t LATENCY = 1'000'000; // ps
constexpr std::uint64_t PS_A_BYTE = 800;     // 10 Gbit/s

struct Arrival {
    std::uint64_t at, id;
    bool operator>(const Arrival &other) const { return at > other.at; }
};

class Network {
public:
    void inject(const vef::Message &message, std::uint64_t now)
    {
        const std::uint64_t took = message.bytes * PS_A_BYTE;
        std::uint64_t &out = out_[message.src_node], &in = in_[message.dst_node];
        out = std::max(out, now) + took;
        in = std::max(in + took, out + LATENCY);
        arrivals_.push({in, message.id});
    }

    bool idle() const { return arrivals_.empty(); }
    const Arrival &next() const { return arrivals_.top(); }
    void pop() { arrivals_.pop(); }

private:
    std::unordered_map<std::uint32_t, std::uint64_t> out_, in_; // by node: until when the link is busy
    std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
};

} // namespace

int main(int argc, char **argv)
{
    if (argc != 2) return std::fprintf(stderr, "usage: %s TRACE\n", argv[0]), 2;
    vef::Builder builder;
    vef::Replay replay = builder.job(argv[1]).build();
    if (!replay) return std::fprintf(stderr, "%s\n", builder.error()), 1;

    Network network;
    for (;;) {
        auto now = replay.next_ready();
        if (!network.idle() && (!now || network.next().at < *now)) now = network.next().at;
        if (!now) break;
        for (; !network.idle() && network.next().at == *now; network.pop()) replay.delivered(network.next().id, *now);
        while (auto message = replay.pop_ready(*now)) network.inject(*message, *now);
    }
    if (const char *why = replay.stuck()) return std::fprintf(stderr, "%s\n", why), 1;
    const vef::Stats stats = replay.stats();
    std::printf("%ju messages, %ju bytes, run time %.6f ms\n", std::uintmax_t{stats.messages},
                std::uintmax_t{stats.bytes}, static_cast<double>(stats.finish) / 1e9);
}
