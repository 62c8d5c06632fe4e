// A network simulator in ninety lines: every node has a link out and a link in, each with a bandwidth and a queue, and between
// them lies a latency. Event by event; of this project it knows vef_replay.hpp alone.
//
//     toy TRACE
#include <vef_replay.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace {

constexpr std::uint64_t LATENCY = 1'000'000; // ps
constexpr std::uint64_t PS_A_BYTE = 800;     // 10 Gbit/s

/// Something that happens at a moment; of the same moment messages start last, by their order, and others as they became known.
struct Event {
    vef::Next next;
    std::uint64_t number;
    bool arrives; // the message of `next` arrives; otherwise it starts
    bool operator>(const Event &other) const
    {
        return key() > other.key();
    }
    std::tuple<std::uint64_t, bool, std::uint64_t, std::uint64_t> key() const
    {
        const bool starts = next.what == VEF_NEXT_MESSAGE && !arrives;
        return {next.at, starts, starts ? next.order : 0, number};
    }
};

class Network {
public:
    explicit Network(vef::Engine &engine) : engine_(engine) {}

    /// Runs to the end; whether every call was accepted.
    bool run()
    {
        bool good = engine_.begin();
        for (follow(); good && !events_.empty(); follow()) {
            Event event = events_.top();
            events_.pop();
            vef::Next &next = event.next;
            if (next.what == VEF_NEXT_WAKE) good = engine_.wake(next.id, next.at);
            else if (event.arrives || next.what == VEF_NEXT_INSIDE) good = engine_.delivered(next.id, next.at);
            else carry(next);
        }
        return good;
    }

private:
    /// What follows from the last call waits for its moment.
    void follow()
    {
        engine_.follow([this](const vef::Next &next) { events_.push({next, number_++, false}); });
    }

    /// A message enters the network.
    void carry(vef::Next next)
    {
        const std::uint64_t took = next.bytes * PS_A_BYTE;
        std::uint64_t &out = out_[next.src_node], &in = in_[next.dst_node];
        out = std::max(out, next.at) + took;
        in = std::max(in + took, out + LATENCY);
        next.at = in;
        events_.push({next, number_++, true});
    }

    vef::Engine &engine_;
    std::unordered_map<std::uint32_t, std::uint64_t> out_, in_; // by node: until when the link is busy
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    std::uint64_t number_ = 0;
};

} // namespace

int main(int argc, char **argv)
{
    if (argc != 2) return std::fprintf(stderr, "usage: %s TRACE\n", argv[0]), 2;
    vef::Builder builder;
    vef::Engine engine = builder.job(argv[1]).engine();
    if (!engine) return std::fprintf(stderr, "%s\n", builder.error()), 1;
    if (!Network(engine).run()) return std::fprintf(stderr, "%s\n", engine.error()), 1;
    if (const char *why = engine.stuck()) return std::fprintf(stderr, "%s\n", why), 1;
    const vef::Stats stats = engine.stats();
    std::printf("%ju messages, %ju bytes, run time %.6f ms\n", std::uintmax_t{stats.messages},
                std::uintmax_t{stats.bytes}, static_cast<double>(stats.finish) / 1e9);
}
