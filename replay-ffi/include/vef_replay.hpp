/* vef_replay.hpp: vef_replay.h for C++17. Header only; nothing here throws but std::vector, where one is returned.
 *
 * Builder, Replay and Engine own what they stand for and can be moved, not copied. Each call is one of vef_replay.h, whose text says what it does
 * and which rules hold; those here only give it types. A call that fails returns false or nothing, and error() tells why.
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
#include <vector>

namespace vef {

using Message = vef_message;
using Description = vef_description;
using Progress = vef_progress;
using Tally = vef_tally;
using Times = vef_times;
using Collective = vef_collective;
using LeftOut = vef_left_out;
using Member = vef_member;
using Stats = vef_stats;
using Next = vef_next;
using Event = vef_event;
using Parcel = vef_parcel;

/** A replay in progress; made by Builder::build. One that is empty (failed, or moved from) refuses every call. */
class Replay {
public:
    Replay() = default;

    /** Takes over a handle of the C interface. */
    explicit Replay(vef_replay *handle) noexcept : handle_(handle) {}

    /** Whether there is a replay. */
    explicit operator bool() const noexcept { return handle_ != nullptr; }

    /** When to ask for messages next; nothing: not without a delivery, or an error in the trace has ended it. */
    [[nodiscard]] std::optional<std::uint64_t> next_ready() noexcept
    {
        std::uint64_t at;
        return vef_replay_next_ready(get(), &at) > 0 ? std::optional(at) : std::nullopt;
    }

    /** The next message that is ready at `now`. */
    [[nodiscard]] std::optional<Message> pop_ready(std::uint64_t now) noexcept
    {
        Message message;
        return vef_replay_pop_ready(get(), now, &message, sizeof(vef_message)) > 0 ? std::optional(message) : std::nullopt;
    }

    /** Takes up to `room` messages that are ready at `now`; returns how many. */
    [[nodiscard]] std::size_t pop_ready(std::uint64_t now, Message *messages, std::size_t room) noexcept
    {
        return count(vef_replay_pop_ready_batch(get(), now, messages, room, sizeof(vef_message)));
    }

    /** Calls `inject(const Message &)` for every message that is ready at `now`; one that returns false ends it. Returns how many were handed
     * out. `inject` may call this object, but for hand_out; an exception that leaves it ends the program. */
    template <typename Inject>
    std::size_t hand_out(std::uint64_t now, Inject &&inject) noexcept
    {
        using Callable = std::remove_reference_t<Inject>;
        const auto call = [](void *user, const Message *message) noexcept -> int {
            auto &callable = *static_cast<Callable *>(user);
            if constexpr (std::is_void_v<std::invoke_result_t<Callable &, const Message &>>) {
                callable(*message);
                return 0;
            } else {
                return callable(*message) ? 0 : 1;
            }
        };
        void *user = const_cast<void *>(static_cast<const void *>(std::addressof(inject)));
        return count(vef_replay_hand_out(get(), now, call, user));
    }

    /** Reports that a message has left its source at `at`. */
    [[nodiscard]] bool sent(std::uint64_t id, std::uint64_t at) noexcept { return vef_replay_sent(get(), id, at) == VEF_OK; }

    /** Reports that a message has arrived, whole, at `at`. */
    [[nodiscard]] bool delivered(std::uint64_t id, std::uint64_t at) noexcept { return vef_replay_delivered(get(), id, at) == VEF_OK; }

    /** Reports that messages have arrived at `at`; returns how many were accepted. */
    [[nodiscard]] std::size_t delivered(const std::uint64_t *ids, std::size_t number, std::uint64_t at) noexcept
    {
        return count(vef_replay_delivered_batch(get(), ids, number, at));
    }

    /** Everything that the trace says of a message that is under way; its texts are valid until the next call of describe. */
    [[nodiscard]] std::optional<Description> describe(std::uint64_t id) noexcept
    {
        Description description;
        const int status = vef_replay_describe(get(), id, &description, sizeof(Description));
        return status == VEF_OK ? std::optional(description) : std::nullopt;
    }

    /** Whether every record is replayed and every message delivered. */
    [[nodiscard]] bool is_complete() noexcept { return vef_replay_is_complete(get()) > 0; }

    /** Why nothing happens any more, or null; valid until asked again. */
    [[nodiscard]] const char *stuck() noexcept { return vef_replay_stuck(get()); }

    /** What was done so far. */
    [[nodiscard]] Stats stats() noexcept
    {
        Stats stats{};
        vef_replay_stats(get(), &stats, sizeof(vef_stats));
        return stats;
    }

    /** The next collective that is an event at `now`. */
    [[nodiscard]] std::optional<Collective> pop_collective(std::uint64_t now) noexcept
    {
        Collective collective;
        const int popped = vef_replay_pop_collective(get(), now, &collective, sizeof(Collective));
        return popped > 0 ? std::optional(collective) : std::nullopt;
    }

    /** Begins again, as it was when it was built; ids of messages are void. */
    [[nodiscard]] bool reset() noexcept { return vef_replay_reset(get()) == VEF_OK; }

    /** The state, from which restore() goes on in a replay of the same traces, placement and options; empty after a failure. */
    [[nodiscard]] std::vector<unsigned char> save()
    {
        const std::ptrdiff_t size = vef_replay_save(get(), nullptr, 0);
        std::vector<unsigned char> state(size > 0 ? static_cast<std::size_t>(size) : 0);
        if (size > 0) vef_replay_save(get(), state.data(), state.size());
        return state;
    }

    /** Goes on from a state that was saved; false, and nothing happens, if it is of another replay or damaged. */
    [[nodiscard]] bool restore(const std::vector<unsigned char> &state) noexcept
    {
        return vef_replay_restore(get(), state.data(), state.size()) == VEF_OK;
    }

    /** What the replay of a part of a job's run has left out so far. */
    [[nodiscard]] LeftOut left_out(std::uint32_t job) noexcept
    {
        LeftOut left_out{};
        vef_replay_left_out(get(), job, &left_out, sizeof(LeftOut));
        return left_out;
    }

    /** The members of a collective that is an event, by their ranks of the communicator; none of any other. */
    [[nodiscard]] std::vector<Member> members(std::uint32_t job, std::uint64_t id)
    {
        const std::ptrdiff_t ranks = vef_replay_members(get(), job, id, nullptr, 0, sizeof(Member));
        std::vector<Member> members(ranks > 0 ? static_cast<std::size_t>(ranks) : 0);
        vef_replay_members(get(), job, id, members.data(), members.size(), sizeof(Member));
        return members;
    }

    /** Reports that a member of a collective that is an event is complete at `at`. */
    [[nodiscard]] bool complete_member(std::uint32_t job, std::uint64_t id, std::uint32_t member, std::uint64_t at) noexcept
    {
        return vef_replay_complete_member(get(), job, id, member, at) == VEF_OK;
    }

    /** How many messages of a kind have started (vef_kind_name); nothing if there is no such kind. */
    [[nodiscard]] std::optional<Tally> tally(std::uint32_t kind) noexcept
    {
        Tally tally;
        return vef_replay_tally(get(), kind, &tally, sizeof(Tally)) == VEF_OK ? std::optional(tally) : std::nullopt;
    }

    /** How far the ranks of a job have come, by rank; nothing of a job that does not exist. */
    [[nodiscard]] std::vector<Progress> progress(std::uint32_t job)
    {
        const std::ptrdiff_t ranks = vef_replay_progress(get(), job, nullptr, 0, sizeof(Progress));
        std::vector<Progress> progress(ranks > 0 ? static_cast<std::size_t>(ranks) : 0);
        vef_replay_progress(get(), job, progress.data(), progress.size(), sizeof(Progress));
        return progress;
    }

    /** The times of the ranks of a job by state, by rank, after Builder::keep_times; otherwise nothing. */
    [[nodiscard]] std::vector<Times> times(std::uint32_t job)
    {
        const std::ptrdiff_t ranks = vef_replay_times(get(), job, nullptr, 0, sizeof(Times));
        std::vector<Times> times(ranks > 0 ? static_cast<std::size_t>(ranks) : 0);
        vef_replay_times(get(), job, times.data(), times.size(), sizeof(Times));
        return times;
    }

    /** What the last failed call said; valid until the next call. */
    [[nodiscard]] const char *error() noexcept { return vef_replay_error(get()); }

    /** The handle, for the rest of vef_replay.h; still owned by this object. */
    vef_replay *get() const noexcept { return handle_.get(); }

private:
    struct Free {
        void operator()(vef_replay *handle) const noexcept { vef_replay_free(handle); }
    };

    static std::size_t count(std::ptrdiff_t result) noexcept { return result > 0 ? static_cast<std::size_t>(result) : 0; }

    std::unique_ptr<vef_replay, Free> handle_;
};

/** A replay, or a partition of one, for simulators with an event queue; made by Builder::engine or Builder::partitions. One that is empty
 * (failed, or moved from) refuses every call. */
class Engine {
public:
    Engine() = default;

    /** Takes over a handle of the C interface. */
    explicit Engine(vef_engine *handle) noexcept : handle_(handle) {}

    /** Whether there is an engine. */
    explicit operator bool() const noexcept { return handle_ != nullptr; }

    /** Starts all ranks. */
    [[nodiscard]] bool begin() noexcept { return vef_engine_begin(get()) == VEF_OK; }

    /** Reports that a message has arrived, whole, at `at`. */
    [[nodiscard]] bool delivered(std::uint64_t id, std::uint64_t at) noexcept
    {
        return vef_engine_delivered(get(), id, at) == VEF_OK;
    }

    /** Reports that a message has left its source at `at`. */
    [[nodiscard]] bool sent(std::uint64_t id, std::uint64_t at) noexcept
    {
        return vef_engine_sent(get(), id, at) == VEF_OK;
    }

    /** Wakes a rank at `at`. */
    [[nodiscard]] bool wake(std::uint64_t id, std::uint64_t at) noexcept
    {
        return vef_engine_wake(get(), id, at) == VEF_OK;
    }

    /** Reports several events; returns how many were accepted. */
    [[nodiscard]] std::size_t report(const Event *events, std::size_t number) noexcept
    {
        const std::ptrdiff_t accepted = vef_engine_report(get(), events, number);
        return accepted > 0 ? static_cast<std::size_t>(accepted) : 0;
    }

    /** Calls `take(const Next &)` for everything that has followed from calls since; what follows from calls within `take`, too. */
    template <typename Take>
    void follow(Take &&take)
    {
        Next next[64];
        std::ptrdiff_t number;
        while ((number = vef_engine_next(get(), next, 64, sizeof(Next))) > 0)
            for (std::ptrdiff_t each = 0; each < number; each++) take(static_cast<const Next &>(next[each]));
    }

    /** Everything that the trace says of a message that is under way; its texts are valid until the next call of describe. */
    [[nodiscard]] std::optional<Description> describe(std::uint64_t id) noexcept
    {
        Description description;
        const int status = vef_engine_describe(get(), id, &description, sizeof(Description));
        return status == VEF_OK ? std::optional(description) : std::nullopt;
    }

    /** Takes a message out for another partition: the parcel, and whether the send is to be completed here; nothing if it fails. */
    [[nodiscard]] std::optional<std::pair<Parcel, bool>> export_message(std::uint64_t id) noexcept
    {
        Parcel parcel;
        const int incomplete = vef_engine_export(get(), id, &parcel);
        return incomplete >= 0 ? std::optional(std::pair(parcel, incomplete > 0)) : std::nullopt;
    }

    /** Takes a message in from another partition: its id here. */
    [[nodiscard]] std::optional<std::uint64_t> import_message(const Parcel &parcel) noexcept
    {
        std::uint64_t id;
        return vef_engine_import(get(), &parcel, &id) == VEF_OK ? std::optional(id) : std::nullopt;
    }

    /** Whether every record is replayed and every message delivered. */
    [[nodiscard]] bool is_complete() noexcept { return vef_engine_is_complete(get()) > 0; }

    /** Why not everything is complete, or null; valid until asked again. */
    [[nodiscard]] const char *stuck() noexcept { return vef_engine_stuck(get()); }

    /** What was done so far. */
    [[nodiscard]] Stats stats() noexcept
    {
        Stats stats{};
        vef_engine_stats(get(), &stats, sizeof(Stats));
        return stats;
    }

    /** As it was before begin(); ids of messages are void, and what has followed is dropped. */
    [[nodiscard]] bool reset() noexcept { return vef_engine_reset(get()) == VEF_OK; }

    /** The state, from which restore() goes on in a replay of the same traces, placement and options; empty after a failure. */
    [[nodiscard]] std::vector<unsigned char> save()
    {
        const std::ptrdiff_t size = vef_engine_save(get(), nullptr, 0);
        std::vector<unsigned char> state(size > 0 ? static_cast<std::size_t>(size) : 0);
        if (size > 0) vef_engine_save(get(), state.data(), state.size());
        return state;
    }

    /** Goes on from a state that was saved; false, and nothing happens, if it is of another replay or damaged. */
    [[nodiscard]] bool restore(const std::vector<unsigned char> &state) noexcept
    {
        return vef_engine_restore(get(), state.data(), state.size()) == VEF_OK;
    }

    /** What the replay of a part of a job's run has left out so far. */
    [[nodiscard]] LeftOut left_out(std::uint32_t job) noexcept
    {
        LeftOut left_out{};
        vef_engine_left_out(get(), job, &left_out, sizeof(LeftOut));
        return left_out;
    }

    /** Whether all ranks of a job are done and none of its messages is under way. */
    [[nodiscard]] bool is_over(std::uint32_t job) noexcept { return vef_engine_is_over(get(), job) > 0; }

    /** Starts the ranks of a job again, at `start`; false, and nothing happens, unless the job is over. */
    [[nodiscard]] bool repeat(std::uint32_t job, std::uint64_t start) noexcept { return vef_engine_repeat(get(), job, start) > 0; }

    /** Opens another instance of one of the builder's jobs, on these nodes: its number, that of a job, or nothing and there is an error(). */
    [[nodiscard]] std::optional<std::uint32_t> open(std::uint32_t job, const std::vector<std::uint32_t> &nodes, std::uint64_t start) noexcept
    {
        const int opened = vef_engine_open(get(), job, nodes.data(), nodes.size(), start);
        return opened < 0 ? std::nullopt : std::optional<std::uint32_t>(static_cast<std::uint32_t>(opened));
    }

    /** Closes an instance: its number and memory are free for others; false, and nothing happens, unless it was opened and is over. */
    [[nodiscard]] bool close(std::uint32_t job) noexcept { return vef_engine_close(get(), job) > 0; }

    /** The members of a collective that is an event, by their ranks of the communicator; none of any other. */
    [[nodiscard]] std::vector<Member> members(std::uint32_t job, std::uint64_t id)
    {
        const std::ptrdiff_t ranks = vef_engine_members(get(), job, id, nullptr, 0, sizeof(Member));
        std::vector<Member> members(ranks > 0 ? static_cast<std::size_t>(ranks) : 0);
        vef_engine_members(get(), job, id, members.data(), members.size(), sizeof(Member));
        return members;
    }

    /** Reports that a member of a collective that is an event is complete at `at`. */
    [[nodiscard]] bool complete_member(std::uint32_t job, std::uint64_t id, std::uint32_t member, std::uint64_t at) noexcept
    {
        return vef_engine_complete_member(get(), job, id, member, at) == VEF_OK;
    }

    /** How many messages of a kind have started (vef_kind_name); nothing if there is no such kind. */
    [[nodiscard]] std::optional<Tally> tally(std::uint32_t kind) noexcept
    {
        Tally tally;
        return vef_engine_tally(get(), kind, &tally, sizeof(Tally)) == VEF_OK ? std::optional(tally) : std::nullopt;
    }

    /** How far the ranks of a job have come, by rank; nothing of a job that does not exist. */
    [[nodiscard]] std::vector<Progress> progress(std::uint32_t job)
    {
        const std::ptrdiff_t ranks = vef_engine_progress(get(), job, nullptr, 0, sizeof(Progress));
        std::vector<Progress> progress(ranks > 0 ? static_cast<std::size_t>(ranks) : 0);
        vef_engine_progress(get(), job, progress.data(), progress.size(), sizeof(Progress));
        return progress;
    }

    /** The times of the ranks of a job by state, by rank, after Builder::keep_times; otherwise nothing. */
    [[nodiscard]] std::vector<Times> times(std::uint32_t job)
    {
        const std::ptrdiff_t ranks = vef_engine_times(get(), job, nullptr, 0, sizeof(Times));
        std::vector<Times> times(ranks > 0 ? static_cast<std::size_t>(ranks) : 0);
        vef_engine_times(get(), job, times.data(), times.size(), sizeof(Times));
        return times;
    }

    /** What the last failed call said; valid until the next call. */
    [[nodiscard]] const char *error() noexcept { return vef_engine_error(get()); }

    /** The handle, for the rest of vef_replay.h; still owned by this object. */
    [[nodiscard]] vef_engine *get() const noexcept { return handle_.get(); }

private:
    struct Free {
        void operator()(vef_engine *handle) const noexcept { vef_engine_free(handle); }
    };

    std::unique_ptr<vef_engine, Free> handle_;
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
    [[nodiscard]] std::uint32_t ranks() noexcept
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

    /** The job counts as over until Engine::repeat() starts it. */
    Builder &on_call() noexcept
    {
        vef_builder_on_call(get(), job_);
        return *this;
    }

    /** Leaves out the time before the end of each rank's `MPI_Init`, if the trace records it. */
    Builder &skip_start_up() noexcept
    {
        vef_builder_skip_start_up(get(), job_);
        return *this;
    }

    /** Counts the time before the end of each rank's `MPI_Init` as run, if the trace records it. */
    Builder &from_launch() noexcept
    {
        vef_builder_from_launch(get(), job_);
        return *this;
    }

    /** Computing time that each rank leaves out before its first record, in ticks of clock(). */
    Builder &skip(const std::uint64_t *ticks, std::size_t count) noexcept
    {
        vef_builder_skip(get(), job_, ticks, count);
        return *this;
    }

    /** Replays only a phase that the program has marked, `NAME` or `NAME:K`. */
    Builder &phase(const char *name) noexcept
    {
        vef_builder_phase(get(), job_, name);
        return *this;
    }

    /** Replays only iterations of the program's main loop, `FIRST`, `FIRST-LAST` or `FIRST-`. */
    Builder &iterations(const char *numbers) noexcept
    {
        vef_builder_iterations(get(), job_, numbers);
        return *this;
    }

    /** Replays only what was captured from `from` picoseconds on up to `to`, counted from the end of `MPI_Init`; UINT64_MAX is the end. */
    Builder &captured(std::uint64_t from, std::uint64_t to = UINT64_MAX) noexcept
    {
        vef_builder_captured(get(), job_, from, to);
        return *this;
    }

    /** Replaces the job's computing times by those that a function returns. */
    Builder &computing(vef_computing function, void *user) noexcept
    {
        vef_builder_computing(get(), job_, function, user);
        return *this;
    }

    /** By what the job's computing times are multiplied, by rank. */
    Builder &time_factors(const double *factors, std::size_t count) noexcept
    {
        vef_builder_time_factors(get(), job_, factors, count);
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

    /** Sends of more than `above` bytes are complete when they are reported sent. */
    Builder &sends_when_sent_above(std::uint64_t above) noexcept
    {
        vef_builder_sends_when_sent_above(get(), above);
        return *this;
    }

    /** Sends of more than `above` bytes are complete when they are delivered. */
    Builder &sends_rendezvous(std::uint64_t above) noexcept
    {
        vef_builder_sends_rendezvous(get(), above);
        return *this;
    }

    /** The same, and they are taken only when their receiver is in a call of MPI: it does not compute. */
    Builder &sends_rendezvous_in_calls(std::uint64_t above) noexcept
    {
        vef_builder_sends_rendezvous_in_calls(get(), above);
        return *this;
    }

    /** Messages within a node, which the library carries itself, take this time instead of that of a common server. */
    Builder &same_node_link(std::uint64_t latency, std::uint64_t bits_per_second) noexcept
    {
        vef_builder_same_node_link(get(), latency, bits_per_second);
        return *this;
    }

    /** The same with times of their own for a rank's messages to itself, and for those to another rank of the node. */
    Builder &same_node_memory(std::uint64_t itself_latency, std::uint64_t itself_bits_per_second, std::uint64_t shared_latency,
                              std::uint64_t shared_bits_per_second) noexcept
    {
        vef_builder_same_node_memory(get(), itself_latency, itself_bits_per_second, shared_latency, shared_bits_per_second);
        return *this;
    }

    /** The simulator receives messages within a node like all others. */
    Builder &same_node_network() noexcept
    {
        vef_builder_same_node_network(get());
        return *this;
    }

    /** Which algorithm plays which collective. */
    Builder &algorithms(const char *table) noexcept
    {
        vef_builder_algorithms(get(), table);
        return *this;
    }

    /** Which algorithm plays which collective of the job. */
    Builder &job_algorithms(const char *table) noexcept
    {
        vef_builder_job_algorithms(get(), job_, table);
        return *this;
    }

    /** Collectives of these kinds (bits) are events, once or for each member that enters; the next three restrict it. */
    Builder &collective_events(std::uint32_t kinds = UINT32_MAX, bool each_entry = false) noexcept
    {
        vef_builder_collective_events(get(), kinds, each_entry);
        return *this;
    }

    /** Those of communicators of so many members. */
    Builder &event_ranks(std::uint32_t least, std::uint32_t most) noexcept
    {
        vef_builder_event_ranks(get(), least, most);
        return *this;
    }

    /** Those of so many bytes. */
    Builder &event_bytes(std::uint64_t least, std::uint64_t most) noexcept
    {
        vef_builder_event_bytes(get(), least, most);
        return *this;
    }

    /** Those on these communicators. */
    Builder &event_communicators(const std::uint32_t *communicators, std::size_t count) noexcept
    {
        vef_builder_event_communicators(get(), communicators, count);
        return *this;
    }

    /** Keeps the time of each rank by state, for times(). */
    Builder &keep_times() noexcept
    {
        vef_builder_keep_times(get());
        return *this;
    }

    /** Number of end nodes that the placements of all jobs need; 0 after a failure. */
    [[nodiscard]] std::uint64_t nodes_needed() noexcept
    {
        std::uint64_t nodes = 0;
        vef_builder_nodes_needed(get(), &nodes);
        return nodes;
    }

    /** Number of records of the job: what Stats::records comes to; 0 after a failure. */
    [[nodiscard]] std::uint64_t records() noexcept
    {
        std::uint64_t records = 0;
        vef_builder_records(get(), job_, &records);
        return records;
    }

    /** How long a tick of the job's computing times lasts, in picoseconds; 0 after a failure. */
    [[nodiscard]] std::uint64_t clock() noexcept
    {
        std::uint64_t picoseconds = 0;
        vef_builder_clock(get(), job_, &picoseconds);
        return picoseconds;
    }

    /** Starts all jobs; an empty Replay if something was wrong. */
    [[nodiscard]] Replay build() noexcept
    {
        vef_replay *replay = nullptr;
        vef_builder_build(get(), &replay);
        return Replay(replay);
    }

    /** The engine of all jobs; an empty one if something was wrong. */
    [[nodiscard]] Engine engine() noexcept
    {
        vef_engine *engine = nullptr;
        vef_builder_engine(get(), &engine);
        return Engine(engine);
    }

    /** Engines that divide the work: node n is in partition `part_of[n]`. None if something was wrong. */
    [[nodiscard]] std::vector<Engine> partitions(const std::vector<std::uint32_t> &part_of, std::uint32_t parts)
    {
        std::vector<vef_engine *> handles(parts);
        std::vector<Engine> engines;
        if (vef_builder_partitions(get(), part_of.data(), part_of.size(), handles.data(), parts) == VEF_OK)
            for (vef_engine *handle : handles) engines.emplace_back(handle);
        return engines;
    }

    /** The nodes on which the job's ranks ran when its trace was captured; none if the trace does not tell. */
    [[nodiscard]] std::vector<std::uint32_t> captured_nodes()
    {
        const int ranks = vef_builder_captured_nodes(get(), job_, nullptr, 0);
        std::vector<std::uint32_t> nodes(ranks > 0 ? static_cast<std::size_t>(ranks) : 0);
        vef_builder_captured_nodes(get(), job_, nodes.data(), nodes.size());
        return nodes;
    }

    /** What the last failed call said; valid until the next call. */
    [[nodiscard]] const char *error() noexcept { return vef_builder_error(get()); }

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
