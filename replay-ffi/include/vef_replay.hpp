/* vef_replay.hpp: vef_replay.h for C++17. Header only; nothing here throws.
 *
 * Builder and Replay own what they stand for and can be moved, not copied. Each call is one of vef_replay.h, whose text says what it does
 * and which rules hold; those here only give it types. A call that fails answers false or nothing, and error() says why.
 */
#ifndef VEF_REPLAY_HPP
#define VEF_REPLAY_HPP

#include "vef_replay.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace vef {

using Message = vef_message;
using Stats = vef_stats;

/** A replay in progress; made by Builder::build. One that is empty (failed, or moved from) refuses every call. */
class Replay {
public:
    Replay() = default;

    /** Takes over a handle of the C interface. */
    explicit Replay(vef_replay *handle) noexcept : handle_(handle) {}

    /** Whether there is a replay. */
    explicit operator bool() const noexcept { return handle_ != nullptr; }

    /** When to ask for messages next; nothing: not without a delivery, or an error in the trace has ended it. */
    std::optional<std::uint64_t> next_ready() noexcept
    {
        std::uint64_t at;
        return vef_replay_next_ready(get(), &at) > 0 ? std::optional(at) : std::nullopt;
    }

    /** The next message that is ready at `now`. */
    std::optional<Message> pop_ready(std::uint64_t now) noexcept
    {
        Message message;
        return vef_replay_pop_ready(get(), now, &message) > 0 ? std::optional(message) : std::nullopt;
    }

    /** Takes up to `room` messages that are ready at `now`; answers how many. */
    std::size_t pop_ready(std::uint64_t now, Message *messages, std::size_t room) noexcept
    {
        return count(vef_replay_pop_ready_batch(get(), now, messages, room));
    }

    /** Calls `inject(const Message &)` for every message that is ready at `now`; one that answers false ends it. Answers how many were handed
     * out. `inject` may call this object, but for hand_out; an exception that leaves it ends the program. */
    template <typename Inject>
    std::size_t hand_out(std::uint64_t now, Inject &&inject) noexcept
    {
        using Callable = std::remove_reference_t<Inject>;
        const auto call = [](void *user, const Message *message) noexcept -> int {
            auto &inject = *static_cast<Callable *>(user);
            if constexpr (std::is_void_v<std::invoke_result_t<Callable &, const Message &>>) {
                inject(*message);
                return 0;
            } else {
                return inject(*message) ? 0 : 1;
            }
        };
        void *user = const_cast<void *>(static_cast<const void *>(std::addressof(inject)));
        return count(vef_replay_hand_out(get(), now, call, user));
    }

    /** Reports that a message has left its source at `at`. */
    bool sent(std::uint64_t id, std::uint64_t at) noexcept { return vef_replay_sent(get(), id, at) == VEF_OK; }

    /** Reports that a message has arrived, whole, at `at`. */
    bool delivered(std::uint64_t id, std::uint64_t at) noexcept { return vef_replay_delivered(get(), id, at) == VEF_OK; }

    /** Reports that messages have arrived at `at`; answers how many were taken note of. */
    std::size_t delivered(const std::uint64_t *ids, std::size_t number, std::uint64_t at) noexcept
    {
        return count(vef_replay_delivered_batch(get(), ids, number, at));
    }

    /** Whether every record is replayed and every message delivered. */
    bool is_complete() noexcept { return vef_replay_is_complete(get()) > 0; }

    /** Why nothing happens any more, or null; valid until asked again. */
    const char *stuck() noexcept { return vef_replay_stuck(get()); }

    /** What was done so far. */
    Stats stats() noexcept
    {
        Stats stats{};
        vef_replay_stats(get(), &stats);
        return stats;
    }

    /** What the last failed call said; valid until the next call. */
    const char *error() noexcept { return vef_replay_error(get()); }

    /** The handle, for the rest of vef_replay.h; still owned by this object. */
    vef_replay *get() const noexcept { return handle_.get(); }

private:
    struct Free {
        void operator()(vef_replay *handle) const noexcept { vef_replay_free(handle); }
    };

    static std::size_t count(std::ptrdiff_t answer) noexcept { return answer > 0 ? static_cast<std::size_t>(answer) : 0; }

    std::unique_ptr<vef_replay, Free> handle_;
};

/** Describes a replay. The calls can be chained; the first that fails is what build() then fails with. */
class Builder {
public:
    Builder() noexcept : handle_(vef_builder_new()) {}

    /** Adds a trace; those that follow and concern a job mean this one. */
    Builder &job(const char *trace) noexcept
    {
        const int number = vef_builder_add_job(get(), trace);
        job_ = number < 0 ? job_ : static_cast<std::uint32_t>(number);
        return *this;
    }

    /** Number of ranks of the job; 0 after a failure. */
    std::uint32_t ranks() noexcept
    {
        std::uint32_t ranks = 0;
        vef_builder_ranks(get(), job_, &ranks);
        return ranks;
    }

    /** The job's rank r is on end node `nodes[r]`. */
    Builder &nodes(const std::uint32_t *nodes, std::size_t count) noexcept
    {
        vef_builder_nodes(get(), job_, nodes, count);
        return *this;
    }

    /** Places the job by a file. */
    Builder &placement(const char *file) noexcept
    {
        vef_builder_placement(get(), job_, file);
        return *this;
    }

    /** Which codes stand for which collectives in the job's text trace: a table's path. */
    Builder &op_codes(const char *table) noexcept
    {
        vef_builder_op_codes(get(), job_, table);
        return *this;
    }

    /** When the job starts, in picoseconds. */
    Builder &start(std::uint64_t start) noexcept
    {
        vef_builder_start(get(), job_, start);
        return *this;
    }

    /** By what the job's computing times are multiplied. */
    Builder &time_factor(double factor) noexcept
    {
        vef_builder_time_factor(get(), job_, factor);
        return *this;
    }

    /** Sends are complete when the simulator takes them. */
    Builder &sends_eager() noexcept
    {
        vef_builder_sends_eager(get());
        return *this;
    }

    /** Sends are complete when they are reported sent. */
    Builder &sends_when_sent() noexcept
    {
        vef_builder_sends_when_sent(get());
        return *this;
    }

    /** Sends of more than `above` bytes are complete when they are delivered. */
    Builder &sends_rendezvous(std::uint64_t above) noexcept
    {
        vef_builder_sends_rendezvous(get(), above);
        return *this;
    }

    /** The library carries messages within a node itself. */
    Builder &same_node_link(std::uint64_t latency, std::uint64_t bits_per_second) noexcept
    {
        vef_builder_same_node_link(get(), latency, bits_per_second);
        return *this;
    }

    /** Which algorithm plays which collective. */
    Builder &algorithms(const char *table) noexcept
    {
        vef_builder_algorithms(get(), table);
        return *this;
    }

    /** Starts all jobs; an empty Replay if something was wrong. */
    Replay build() noexcept
    {
        vef_replay *replay = nullptr;
        vef_builder_build(get(), &replay);
        return Replay(replay);
    }

    /** What the last failed call said; valid until the next call. */
    const char *error() noexcept { return vef_builder_error(get()); }

    /** The handle, for the rest of vef_replay.h; still owned by this object. */
    vef_builder *get() const noexcept { return handle_.get(); }

private:
    struct Free {
        void operator()(vef_builder *handle) const noexcept { vef_builder_free(handle); }
    };

    std::unique_ptr<vef_builder, Free> handle_;
    std::uint32_t job_ = 0;
};

} // namespace vef

#endif
