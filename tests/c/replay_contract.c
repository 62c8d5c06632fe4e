/* What vef_replay.h promises, asked from C: orders of calls, ownership, refused input, explanations. Writes its traces into the
 * current directory; ends with 0, or names the line that did not hold. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vef_replay.h"

#define CHECK(condition)                                                      \
    do {                                                                      \
        if (!(condition)) {                                                   \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);   \
            exit(1);                                                          \
        }                                                                     \
    } while (0)

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* 0 sends 100 bytes to 1 at 10 ns, 1 answers with 50 bytes 3 ns later. */
static const char PING_PONG[] = "VEF3 2 5 0 0 0 0 1000\n0 0 1 100 4 10 -1\n1 0 0 0 1 5 0\n2 1 1 0 0 7 -1\n3 1 0 50 6 3 0\n"
                                "4 0 0 0 2 1 3\n";

static vef_replay *open_trace(const char *name)
{
    vef_builder *builder = vef_builder_new();
    vef_replay *replay = NULL;
    vef_builder_add_job(builder, name);
    if (vef_builder_build(builder, &replay) != VEF_OK || !replay) {
        fprintf(stderr, "%s: %s\n", name, vef_builder_error(builder));
        exit(1);
    }
    vef_builder_free(builder);
    return replay;
}

/* Every message arrives when it is taken, as far as that goes; returns the last status. */
static int run(vef_replay *replay, vef_message *last)
{
    uint64_t now;
    int status;
    while ((status = vef_replay_next_ready(replay, &now)) > 0) {
        vef_message message;
        while ((status = vef_replay_pop_ready(replay, now, &message, sizeof(vef_message))) > 0) {
            if (last) *last = message;
            CHECK(vef_replay_delivered(replay, message.id, now) == VEF_OK);
        }
        if (status < 0) return status;
    }
    return status;
}

static void says(const char *text, const char *part)
{
    if (!text || !strstr(text, part)) {
        fprintf(stderr, "no \"%s\" in: %s\n", part, text ? text : "(null)");
        exit(1);
    }
}

static void a_run_by_hand(void)
{
    vef_replay *replay = open_trace("ping-pong.vef");
    vef_message message;
    uint64_t at = 7;
    CHECK(vef_replay_next_ready(replay, &at) == 1 && at == 10000);
    CHECK(vef_replay_pop_ready(replay, 9999, &message, sizeof(vef_message)) == 0);
    CHECK(vef_replay_pop_ready(replay, 10000, &message, sizeof(vef_message)) == 1);
    CHECK(message.bytes == 100 && message.src_node == 0 && message.dst_node == 1 && message.job == 0);
    CHECK(message.src_rank == 0 && message.dst_rank == 1 && message.ready == 10000 && message.kind == 0);
    CHECK(strcmp(vef_kind_name(message.kind), "point-to-point") == 0 && strcmp(vef_kind_name(7), "Barrier") == 0);
    CHECK(vef_kind_name(18) == NULL && vef_kind_name(17) != NULL);
    uint64_t first = message.id;
    vef_description what;
    CHECK(vef_replay_describe(replay, first, &what, sizeof what) == VEF_OK && what.record == 0 && what.trace_id == 0);
    CHECK(what.job == 0 && what.src_rank == 0 && what.dst_rank == 1 && what.src_node == 0 && what.dst_node == 1 && what.kind == 0);
    CHECK(what.communicator == UINT32_MAX && what.comm_src == UINT32_MAX && what.step == UINT32_MAX && what.root == UINT32_MAX);
    CHECK(!what.has_tag && !what.algorithm && !what.function && !what.phase);
    CHECK(vef_replay_describe(replay, first + 1, &what, sizeof what) == VEF_ERROR_ID);
    CHECK(vef_replay_describe(replay, first, NULL, sizeof what) == VEF_ERROR_NULL);
    CHECK(vef_replay_next_ready(replay, &at) == 0 && at == 10000);
    CHECK(!vef_replay_is_complete(replay));
    says(vef_replay_stuck(replay), "taken and not delivered: 1 message");

    /* Mistakes change nothing. */
    CHECK(vef_replay_delivered(replay, 0, 10000) == VEF_ERROR_ID);
    CHECK(vef_replay_delivered(replay, first + 1, 10000) == VEF_ERROR_ID);
    says(vef_replay_error(replay), "names no message on its way");
    CHECK(vef_replay_delivered(replay, first, 9000) == VEF_ERROR_TIME);
    says(vef_replay_error(replay), "time goes backwards: it is 10000 ps, the call is for 9000 ps");
    CHECK(vef_replay_pop_ready(replay, 9000, &message, sizeof(vef_message)) == VEF_ERROR_TIME);
    CHECK(vef_replay_sent(replay, first, 11000) == VEF_OK);
    CHECK(vef_replay_sent(replay, first, 11000) == VEF_ERROR_SENT_TWICE);
    CHECK(vef_replay_delivered(replay, first, 12000) == VEF_OK);
    CHECK(vef_replay_delivered(replay, first, 12000) == VEF_ERROR_ID);
    CHECK(vef_replay_sent(replay, first, 12000) == VEF_ERROR_ID);

    CHECK(vef_replay_next_ready(replay, &at) == 1 && at == 15000);
    vef_message batch[4];
    CHECK(vef_replay_pop_ready_batch(replay, at, batch, 0, sizeof(vef_message)) == 0);
    CHECK(vef_replay_pop_ready_batch(replay, at, batch, 4, sizeof(vef_message)) == 1 && batch[0].bytes == 50);
    uint64_t ids[3] = {batch[0].id, 5, batch[0].id};
    CHECK(vef_replay_delivered_batch(replay, ids, 3, 17000) == 1);
    CHECK(vef_replay_delivered_batch(replay, ids + 1, 2, 17000) == VEF_ERROR_ID);
    CHECK(vef_replay_delivered_batch(replay, NULL, 0, 17000) == 0);
    CHECK(vef_replay_next_ready(replay, &at) == 0);
    CHECK(vef_replay_is_complete(replay) == 1 && vef_replay_stuck(replay) == NULL);

    vef_stats stats;
    CHECK(vef_replay_stats(replay, &stats, sizeof(vef_stats)) == VEF_OK);
    CHECK(stats.messages == 2 && stats.bytes == 150 && stats.delivered == 2 && stats.live == 0 && stats.marks == 3);
    CHECK(stats.clock == 17000 && stats.last_delivery == 17000 && stats.finish == 18000);
    vef_tally tally;
    CHECK(vef_replay_tally(replay, 0, &tally, sizeof(vef_tally)) == VEF_OK && tally.messages == 2 && tally.bytes == 150);
    CHECK(vef_replay_tally(replay, 18, &tally, sizeof(vef_tally)) == VEF_ERROR_ARGUMENT);
    vef_progress tasks[3];
    CHECK(vef_replay_progress(replay, 0, NULL, 0, sizeof(vef_progress)) == 2);
    CHECK(vef_replay_progress(replay, 0, tasks, 3, sizeof(vef_progress)) == 2);
    CHECK(tasks[0].records == 3 && tasks[0].finished == 18000 && tasks[1].records == 2 && tasks[1].node == 1);
    CHECK(vef_replay_progress(replay, 1, tasks, 3, sizeof(vef_progress)) == VEF_ERROR_ARGUMENT);
    vef_replay_free(replay);
}

static void builders(void)
{
    vef_builder *builder = vef_builder_new();
    vef_replay *replay = NULL;
    uint32_t ranks = 0, nodes[2] = {5, 9}, more[3] = {1, 2, 3};
    CHECK(strcmp(vef_builder_error(builder), "") == 0);
    CHECK(vef_builder_add_job(builder, "ping-pong.vef") == 0 && vef_builder_add_job(builder, "ping-pong.vef") == 1);
    CHECK(vef_builder_ranks(builder, 1, &ranks) == VEF_OK && ranks == 2);
    CHECK(vef_builder_nodes(builder, 0, nodes, 2) == VEF_OK && vef_builder_nodes(builder, 1, more, 3) == VEF_OK);
    /* A text does not record the end of MPI_Init. */
    CHECK(vef_builder_skip_start_up(builder, 1) == VEF_OK);
    CHECK(vef_builder_start(builder, 1, 1000000) == VEF_OK && vef_builder_time_factor(builder, 1, 0.5) == VEF_OK);
    CHECK(vef_builder_sends_when_sent(builder) == VEF_OK && vef_builder_sends_rendezvous(builder, 64) == VEF_OK);
    CHECK(vef_builder_sends_rendezvous_in_calls(builder, 64) == VEF_OK);
    CHECK(vef_builder_sends_eager(builder) == VEF_OK && vef_builder_algorithms(builder, "mpich") == VEF_OK);
    CHECK(vef_builder_build(builder, &replay) == VEF_OK);
    nodes[0] = more[0] = 77; /* were copied */
    CHECK(vef_builder_build(builder, &replay) == VEF_ERROR_STATE);
    CHECK(vef_builder_add_job(builder, "ping-pong.vef") == VEF_ERROR_STATE);
    says(vef_builder_error(builder), "has been built");
    vef_builder_free(builder);
    uint64_t at;
    vef_message message;
    CHECK(vef_replay_next_ready(replay, &at) == 1 && at == 10000);
    CHECK(vef_replay_pop_ready(replay, at, &message, sizeof(vef_message)) == 1 && message.src_node == 5 && message.dst_node == 9);
    CHECK(vef_replay_next_ready(replay, &at) == 1 && at == 1005000);
    CHECK(vef_replay_pop_ready(replay, at, &message, sizeof(vef_message)) == 1 && message.job == 1 && message.src_node == 1);
    vef_replay_free(replay);

    /* The first failure is what the builder fails with from then on. */
    builder = vef_builder_new();
    CHECK(vef_builder_add_job(builder, "absent.vef") == VEF_ERROR_TRACE);
    CHECK(vef_builder_start(builder, 0, 5) == VEF_ERROR_TRACE);
    CHECK(vef_builder_build(builder, &replay) == VEF_ERROR_TRACE);
    says(vef_builder_error(builder), "absent.vef");
    vef_builder_free(builder);

#define REFUSED(call, status, part)                                            \
    do {                                                                       \
        builder = vef_builder_new();                                           \
        CHECK(vef_builder_add_job(builder, "ping-pong.vef") == 0);             \
        int answer = call;                                                     \
        if (answer == VEF_OK) answer = vef_builder_build(builder, &replay);    \
        CHECK(answer == status);                                               \
        says(vef_builder_error(builder), part);                                \
        vef_builder_free(builder);                                             \
    } while (0)
    REFUSED(vef_builder_nodes(builder, 0, nodes, 1), VEF_ERROR_PLACEMENT, "2 tasks, its placement has nodes for 1");
    REFUSED(vef_builder_nodes(builder, 3, nodes, 2), VEF_ERROR_ARGUMENT, "there is no job 3");
    REFUSED(vef_builder_nodes(builder, 0, NULL, 2), VEF_ERROR_NULL, "nodes is null");
    REFUSED(vef_builder_nodes(builder, 0, nodes, (size_t)-1), VEF_ERROR_ARGUMENT, "elements");
    REFUSED(vef_builder_placement(builder, 0, "wrong.txt"), VEF_ERROR_PLACEMENT, "wrong.txt:2: ");
    REFUSED(vef_builder_placement(builder, 0, "one.txt"), VEF_ERROR_PLACEMENT, "nodes for 1");
    REFUSED(vef_builder_op_codes(builder, 0, "wrong.txt"), VEF_ERROR_TRACE, "wrong.txt:");
    REFUSED(vef_builder_op_codes(builder, 0, NULL), VEF_ERROR_NULL, "table is null");
    REFUSED(vef_builder_op_codes(builder, 3, "codes.txt"), VEF_ERROR_ARGUMENT, "there is no job 3");
    REFUSED(vef_builder_time_factor(builder, 0, -1.0), VEF_ERROR_ARGUMENT, "not a number from 0");
    REFUSED(vef_builder_time_factor(builder, 0, -1.0 / 0.0), VEF_ERROR_ARGUMENT, "not a number from 0");
    REFUSED(vef_builder_same_node_link(builder, 1, 0), VEF_ERROR_ARGUMENT, "bandwidth of 0");
    REFUSED(vef_builder_algorithms(builder, "wrong.txt"), VEF_ERROR_ALGORITHMS, "wrong.txt");
    REFUSED(vef_builder_algorithms(builder, "nowhere"), VEF_ERROR_ALGORITHMS, "neither default");
    REFUSED(vef_builder_add_job(builder, "cut.vef"), VEF_ERROR_TRACE, "cut.vef");
    REFUSED(vef_builder_add_job(builder, "empty.vef"), VEF_ERROR_TRACE, "empty.vef");
    REFUSED(vef_builder_start(builder, 0, UINT64_MAX), VEF_ERROR_TRACE, "end of time");

    builder = vef_builder_new();
    CHECK(vef_builder_add_job(builder, "coded.vef") == 0 && vef_builder_op_codes(builder, 0, "codes.txt") == VEF_OK);
    CHECK(vef_builder_build(builder, &replay) == VEF_OK);
    vef_builder_free(builder);
    CHECK(run(replay, NULL) == VEF_OK && vef_replay_is_complete(replay) == 1);
    vef_replay_free(replay);

    builder = vef_builder_new();
    CHECK(vef_builder_build(builder, &replay) == VEF_ERROR_STATE);
    says(vef_builder_error(builder), "no trace");
    vef_builder_free(builder);

    builder = vef_builder_new();
    CHECK(vef_builder_add_job(builder, "ping-pong.vef") == 0 && vef_builder_placement(builder, 0, "two.txt") == VEF_OK);
    CHECK(vef_builder_same_node_link(builder, 1000, 8000000000) == VEF_OK);
    CHECK(vef_builder_build(builder, &replay) == VEF_OK);
    CHECK(run(replay, NULL) == 0 && vef_replay_is_complete(replay) == 1);
    vef_stats stats;
    CHECK(vef_replay_stats(replay, &stats, sizeof(vef_stats)) == VEF_OK && stats.inside_messages == 2 && stats.inside_bytes == 150);
    vef_builder_free(builder);
    vef_replay_free(replay);
}

/* The computing of rank 0 is a tick longer than captured. */
static uint64_t longer(void *user, uint32_t rank, uint64_t record, uint64_t captured)
{
    (void)record;
    ++*(int *)user;
    return captured + (rank == 0);
}

/* What is said of a job, and what is told of its ranks. */
static void a_job_in_detail(void)
{
    static const double factors[2] = {2.0, 1.0}, wrong[2] = {1.0, -1.0};
    static const uint64_t skipped[1] = {4};
    vef_builder *builder = vef_builder_new();
    vef_replay *replay = NULL;
    vef_stats stats;
    vef_times times[2];
    uint64_t number = 0, at;
    int calls = 0;
    CHECK(vef_builder_add_job(builder, "ping-pong.vef") == 0);
    CHECK(vef_builder_records(builder, 0, &number) == VEF_OK && number == 5);
    CHECK(vef_builder_clock(builder, 0, &number) == VEF_OK && number == 1000);
    CHECK(vef_builder_nodes_needed(builder, &number) == VEF_OK && number == 2);
    CHECK(vef_builder_skip(builder, 0, skipped, 1) == VEF_OK && vef_builder_computing(builder, 0, longer, &calls) == VEF_OK);
    CHECK(vef_builder_time_factors(builder, 0, factors, 2) == VEF_OK && vef_builder_from_launch(builder, 0) == VEF_OK);
    CHECK(vef_builder_job_algorithms(builder, 0, "mpich") == VEF_OK && vef_builder_sends_when_sent_above(builder, 99) == VEF_OK);
    CHECK(vef_builder_same_node_memory(builder, 1, 8, 1, 8) == VEF_OK && vef_builder_keep_times(builder) == VEF_OK);
    CHECK(vef_builder_build(builder, &replay) == VEF_OK);
    vef_builder_free(builder);
    /* 10 + 1 - 4 ticks, twice as long. */
    CHECK(vef_replay_next_ready(replay, &at) == 1 && at == 14000);
    CHECK(run(replay, NULL) == VEF_OK && vef_replay_is_complete(replay) == 1 && calls == 5);
    memset(&stats, 7, sizeof stats);
    /* As large as in the first version. */
    CHECK(vef_replay_stats(replay, &stats, 112) == VEF_OK && stats.finish == 30000 && stats.records > 5);
    CHECK(vef_replay_stats(replay, &stats, 104) == VEF_ERROR_ARGUMENT);
    CHECK(vef_replay_stats(replay, &stats, sizeof stats) == VEF_OK && stats.records == 5 && stats.split_evenly == 0);
    CHECK(vef_replay_times(replay, 0, NULL, 0, sizeof *times) == 2 && vef_replay_times(replay, 1, times, 2, sizeof *times) == VEF_ERROR_ARGUMENT);
    CHECK(vef_replay_times(replay, 0, times, 2, sizeof *times) == 2);
    CHECK(times[0].computing == 30000 && times[0].send == 0 && times[0].reception == 0 && times[0].collective == 0);
    CHECK(times[1].computing == 10000 && times[1].send == 0 && times[1].reception == 7000 && times[1].collective == 0);
    vef_replay_free(replay);

    replay = open_trace("ping-pong.vef");
    CHECK(vef_replay_times(replay, 0, times, 2, sizeof *times) == VEF_ERROR_STATE);
    vef_replay_free(replay);
    builder = vef_builder_new();
    CHECK(vef_builder_add_job(builder, "ping-pong.vef") == 0 && vef_builder_time_factors(builder, 0, wrong, 2) == VEF_ERROR_ARGUMENT);
    vef_builder_free(builder);
    builder = vef_builder_new();
    CHECK(vef_builder_add_job(builder, "ping-pong.vef") == 0 && vef_builder_phase(builder, 0, "solve") == VEF_ERROR_ARGUMENT);
    CHECK(vef_builder_iterations(builder, 0, "1") == VEF_ERROR_ARGUMENT); /* as the call before */
    vef_builder_free(builder);
    builder = vef_builder_new();
    CHECK(vef_builder_add_job(builder, "ping-pong.vef") == 0 && vef_builder_iterations(builder, 0, "3-2") == VEF_ERROR_ARGUMENT);
    vef_builder_free(builder);
}

/* A Bcast of two ranks that the simulator carries out itself. */
static void a_collective_as_an_event(void)
{
    static const uint32_t communicators[1] = {0};
    vef_builder *builder = vef_builder_new();
    vef_replay *replay = NULL;
    vef_engine *engine = NULL;
    vef_collective event;
    vef_member members[2];
    vef_message message;
    vef_next next;
    uint64_t at;
    CHECK(vef_builder_add_job(builder, "coded.vef") == 0 && vef_builder_op_codes(builder, 0, "codes.txt") == VEF_OK);
    CHECK(vef_builder_collective_events(builder, 1u << 1, 0) == VEF_OK && vef_builder_event_ranks(builder, 2, 2) == VEF_OK);
    CHECK(vef_builder_event_bytes(builder, 0, UINT64_MAX) == VEF_OK && vef_builder_event_communicators(builder, communicators, 1) == VEF_OK);
    CHECK(vef_builder_build(builder, &replay) == VEF_OK);
    vef_builder_free(builder);
    CHECK(vef_replay_next_ready(replay, &at) == 1 && at == 1000);
    CHECK(vef_replay_pop_collective(replay, 999, &event, sizeof event) == 0 && vef_replay_pop_ready(replay, at, &message, sizeof message) == 0);
    CHECK(vef_replay_pop_collective(replay, at, &event, sizeof event) == 1 && vef_replay_pop_collective(replay, at, &event, sizeof event) == 0);
    CHECK(event.id == 0 && event.at == 1000 && event.job == 0 && event.communicator == 0 && event.kind == 1 && event.ranks == 2);
    CHECK(event.member == UINT32_MAX && event.sends == 8 && event.receives == 8);
    CHECK(vef_replay_members(replay, 0, 0, NULL, 0, sizeof *members) == 2 && vef_replay_members(replay, 0, 0, members, 2, sizeof *members) == 2);
    CHECK(members[0].entered == 1000 && members[1].entered == 1000 && members[0].sends + members[1].sends == 8 && members[1].node == 1);
    CHECK(vef_replay_members(replay, 0, 9, members, 2, sizeof *members) == VEF_ERROR_ARGUMENT);
    says(vef_replay_stuck(replay), "simulator's to complete");
    CHECK(vef_replay_complete_member(replay, 0, 0, 2, 5000) == VEF_ERROR_ARGUMENT && vef_replay_complete_member(replay, 0, 0, 1, 5000) == VEF_OK);
    CHECK(vef_replay_complete_member(replay, 0, 0, 1, 5000) == VEF_ERROR_ARGUMENT && vef_replay_complete_member(replay, 0, 0, 0, 4000) == VEF_ERROR_TIME);
    CHECK(vef_replay_complete_member(replay, 0, 0, 0, 6000) == VEF_OK && vef_replay_is_complete(replay) == 1);
    vef_replay_free(replay);

    builder = vef_builder_new();
    CHECK(vef_builder_add_job(builder, "coded.vef") == 0 && vef_builder_op_codes(builder, 0, "codes.txt") == VEF_OK);
    CHECK(vef_builder_collective_events(builder, UINT32_MAX, 1) == VEF_OK && vef_builder_engine(builder, &engine) == VEF_OK);
    vef_builder_free(builder);
    CHECK(vef_engine_begin(engine) == VEF_OK);
    for (uint32_t member = 0; member < 2; member++) {
        CHECK(vef_engine_next(engine, &next, 1, sizeof next) == 1 && next.what == VEF_NEXT_COLLECTIVE && next.at == 1000);
        CHECK(next.src_rank == member && next.bytes == 2 && next.kind == 1 && vef_engine_members(engine, next.job, next.id, members, 2, sizeof *members) == 2);
        CHECK(vef_engine_complete_member(engine, next.job, next.id, member, next.at) == VEF_OK);
    }
    CHECK(vef_engine_is_complete(engine) == 1);
    vef_engine_free(engine);
}

/* From its beginning again, and from a state that was saved, in the same replay and in another one. */
static void again_and_saved(void)
{
    vef_replay *replay = open_trace("ping-pong.vef"), *other = open_trace("ping-pong.vef"), *foreign = open_trace("burst.vef");
    vef_message message, answer;
    vef_stats stats;
    vef_left_out left_out;
    unsigned char state[4096];
    CHECK(vef_replay_pop_ready(replay, 10000, &message, sizeof message) == 1);
    ptrdiff_t size = vef_replay_save(replay, NULL, 0);
    CHECK(size > 0 && size < (ptrdiff_t)sizeof state && vef_replay_save(replay, NULL, sizeof state) == VEF_ERROR_NULL);
    memset(state, 7, sizeof state);
    CHECK(vef_replay_save(replay, state, (size_t)size - 1) == size && state[0] == 7 && vef_replay_save(replay, state, sizeof state) == size);
    /* The message of the one is under way in the other. */
    CHECK(vef_replay_delivered(other, message.id, 20000) == VEF_ERROR_ID && vef_replay_restore(other, state, (size_t)size) == VEF_OK);
    for (int turn = 0; turn < 2; turn++) {
        vef_replay *which = turn ? replay : other;
        if (turn) CHECK(run(replay, NULL) == VEF_OK && vef_replay_restore(replay, state, (size_t)size) == VEF_OK);
        CHECK(vef_replay_delivered(which, message.id, 20000) == VEF_OK && vef_replay_pop_ready(which, 23000, &answer, sizeof answer) == 1);
        CHECK(vef_replay_delivered(which, answer.id, 30000) == VEF_OK && vef_replay_is_complete(which) == 1);
        CHECK(vef_replay_stats(which, &stats, sizeof stats) == VEF_OK && stats.messages == 2 && stats.finish == 31000);
    }
    /* Other bytes, and those of another replay. */
    CHECK(vef_replay_restore(foreign, state, (size_t)size) == VEF_ERROR_ARGUMENT);
    says(vef_replay_error(foreign), "of another replay");
    CHECK(vef_replay_restore(replay, state, (size_t)size - 1) == VEF_ERROR_ARGUMENT && vef_replay_restore(replay, "VEF3 2", 6) == VEF_ERROR_ARGUMENT);
    says(vef_replay_error(replay), "not a checkpoint");
    CHECK(vef_replay_restore(replay, NULL, 0) == VEF_ERROR_ARGUMENT && vef_replay_restore(replay, NULL, 9) == VEF_ERROR_NULL);
    CHECK(vef_replay_is_complete(replay) == 1 && vef_replay_left_out(replay, 0, &left_out, sizeof left_out) == VEF_OK && left_out.receptions == 0);
    CHECK(vef_replay_left_out(replay, 0, NULL, sizeof left_out) == VEF_ERROR_NULL);

    CHECK(vef_replay_reset(replay) == VEF_OK && vef_replay_is_complete(replay) == 0 && vef_replay_delivered(replay, message.id, 0) == VEF_ERROR_ID);
    CHECK(run(replay, NULL) == VEF_OK && vef_replay_is_complete(replay) == 1);
    CHECK(vef_replay_reset(NULL) == VEF_ERROR_NULL && vef_replay_save(NULL, state, 9) == VEF_ERROR_NULL && vef_replay_restore(NULL, state, 9) == VEF_ERROR_NULL);
    vef_replay_free(replay);
    vef_replay_free(other);
    vef_replay_free(foreign);

    /* After an error in the trace only the beginning is left. */
    replay = open_trace("garbled.vef");
    CHECK(run(replay, NULL) == VEF_ERROR_TRACE && vef_replay_save(replay, state, sizeof state) == VEF_ERROR_TRACE);
    CHECK(vef_replay_reset(replay) == VEF_ERROR_TRACE); /* it is read whole for that */
    says(vef_replay_error(replay), "garbled.vef:4");
    vef_replay_free(replay);
    replay = open_trace("twice.vef");
    for (int turn = 0; turn < 2; turn++) CHECK(run(replay, NULL) == VEF_ERROR_TRACE && vef_replay_reset(replay) == VEF_OK);
    vef_replay_free(replay);
}

/* The same of an engine, and a job that runs again. */
static void an_engine_again(void)
{
    vef_builder *builder = vef_builder_new();
    vef_engine *engine = NULL;
    vef_next next;
    vef_stats stats;
    vef_times times[2];
    vef_left_out left_out;
    unsigned char state[4096];
    ptrdiff_t size;
    CHECK(vef_builder_add_job(builder, "ping-pong.vef") == 0 && vef_builder_keep_times(builder) == VEF_OK);
    CHECK(vef_builder_engine(builder, &engine) == VEF_OK);
    vef_builder_free(builder);
    CHECK(vef_engine_begin(engine) == VEF_OK && vef_engine_save(engine, NULL, 0) == VEF_ERROR_STATE);
    says(vef_engine_error(engine), "taken first");
    CHECK(vef_engine_next(engine, &next, 1, sizeof next) == 1);
    CHECK((size = vef_engine_save(engine, state, sizeof state)) > 0 && size <= (ptrdiff_t)sizeof state);
    for (int turn = 0; turn < 3; turn++) {
        if (turn == 1) CHECK(vef_engine_restore(engine, state, (size_t)size) == VEF_OK);
        if (turn == 2) CHECK(vef_engine_reset(engine) == VEF_OK && vef_engine_begin(engine) == VEF_OK);
        vef_next first = next, answer;
        if (turn == 2) CHECK(vef_engine_next(engine, &first, 1, sizeof first) == 1);
        CHECK(vef_engine_is_over(engine, 0) == 0 && vef_engine_repeat(engine, 0, 0) == 0);
        CHECK(vef_engine_delivered(engine, first.id, 20000) == VEF_OK && vef_engine_next(engine, &answer, 1, sizeof answer) == 1);
        CHECK(vef_engine_delivered(engine, answer.id, 30000) == VEF_OK && vef_engine_is_complete(engine) == 1);
        CHECK(vef_engine_stats(engine, &stats, sizeof stats) == VEF_OK && stats.messages == 2 && stats.finish == 31000);
        CHECK(vef_engine_times(engine, 0, times, 2, sizeof *times) == 2 && times[0].computing == 16000 && times[0].reception == 15000);
    }
    /* Once more, 1 us later. */
    CHECK(vef_engine_is_over(engine, 0) == 1 && vef_engine_repeat(engine, 0, 1000000) == 1 && vef_engine_is_over(engine, 0) == 0);
    CHECK(vef_engine_next(engine, &next, 1, sizeof next) == 1 && next.at == 1010000 && vef_engine_is_over(engine, 9) == 0);
    CHECK(vef_engine_left_out(engine, 0, &left_out, sizeof left_out) == VEF_OK && left_out.collective_parts == 0);
    CHECK(vef_engine_reset(NULL) == VEF_ERROR_NULL && vef_engine_restore(engine, state, 3) == VEF_ERROR_ARGUMENT);
    vef_engine_free(engine);

    builder = vef_builder_new();
    CHECK(vef_builder_add_job(builder, "ping-pong.vef") == 0 && vef_builder_captured(builder, 0, 0, UINT64_MAX) == VEF_ERROR_ARGUMENT);
    says(vef_builder_error(builder), "no captured times");
    vef_builder_free(builder);
}

/* A job on call of which instances come and go: 100 of them, two at a time. */
static void instances(void)
{
    static const uint32_t nodes[4] = {5, 9, 2, 3};
    vef_builder *builder = vef_builder_new();
    vef_engine *engine = NULL;
    vef_next next;
    vef_stats stats;
    uint64_t start = 0;
    uint64_t state_bytes = 0;
    int round, each, job[2];
    CHECK(vef_builder_add_job(builder, "ping-pong.vef") == 0 && vef_builder_on_call(builder, 0) >= 0);
    vef_builder_keep_times(builder);
    CHECK(vef_builder_engine(builder, &engine) == VEF_OK);
    vef_builder_free(builder);
    CHECK(vef_engine_open(engine, 0, nodes, 2, 0) == VEF_ERROR_STATE && vef_engine_open(NULL, 0, nodes, 2, 0) == VEF_ERROR_NULL);
    CHECK(vef_engine_begin(engine) == VEF_OK && vef_engine_is_complete(engine) == 1);
    CHECK(vef_engine_open(engine, 0, NULL, 2, 0) == VEF_ERROR_NULL && vef_engine_open(engine, 1, nodes, 2, 0) == VEF_ERROR_ARGUMENT);
    CHECK(vef_engine_open(engine, 0, nodes, 1, 0) == VEF_ERROR_ARGUMENT);
    says(vef_engine_error(engine), "it has 2 tasks, and nodes for 1 are given");
    CHECK(vef_engine_open(engine, 0, nodes, 2, UINT64_MAX) == VEF_ERROR_ARGUMENT);
    says(vef_engine_error(engine), "after the end of time");
    CHECK(vef_engine_close(engine, 0) == 0 && vef_engine_close(engine, 77) == 0);
    for (round = 0; round < 50; round++) {
        int messages = 0;
        job[0] = vef_engine_open(engine, 0, nodes, 2, start);
        job[1] = vef_engine_open(engine, 0, nodes + 2, 2, start);
        CHECK(job[0] == 1 && job[1] == 2 && vef_engine_close(engine, 1) == 0);
        CHECK(vef_engine_open(engine, 0, nodes, 2, UINT64_MAX) == VEF_ERROR_ARGUMENT && vef_engine_is_over(engine, 3) == 0);
        CHECK(vef_engine_save(engine, &state_bytes, sizeof state_bytes) == VEF_ERROR_STATE);
        while (vef_engine_next(engine, &next, 1, sizeof next) == 1) {
            if (next.what == VEF_NEXT_WAKE) {
                CHECK(vef_engine_wake(engine, next.id, next.at) == VEF_OK);
                continue;
            }
            messages++;
            CHECK(next.src_node == nodes[2 * (next.job - 1) + next.src_rank]);
            CHECK(vef_engine_delivered(engine, next.id, next.at + 1000) == VEF_OK);
        }
        CHECK(messages == 4);
        for (each = 0; each < 2; each++) CHECK(vef_engine_is_over(engine, (uint32_t)job[each]) == 1 && vef_engine_close(engine, (uint32_t)job[each]) == 1);
        CHECK(vef_engine_stats(engine, &stats, sizeof stats) == VEF_OK && stats.messages == 4 * ((uint64_t)round + 1) && stats.finish > start);
        start = stats.finish;
    }
    CHECK(vef_engine_is_complete(engine) == 1 && vef_engine_stuck(engine) == NULL && vef_engine_close(engine, 1) == 0);
    vef_engine_free(engine);
}

static void null_pointers(void)
{
    vef_replay *replay = open_trace("ping-pong.vef");
    vef_builder *builder = vef_builder_new();
    uint64_t at;
    vef_message message;
    CHECK(vef_builder_add_job(NULL, "ping-pong.vef") == VEF_ERROR_NULL && vef_builder_build(NULL, &replay) == VEF_ERROR_NULL);
    CHECK(vef_replay_next_ready(NULL, &at) == VEF_ERROR_NULL && vef_replay_next_ready(replay, NULL) == VEF_ERROR_NULL);
    CHECK(vef_replay_pop_ready(NULL, 0, &message, sizeof(vef_message)) == VEF_ERROR_NULL && vef_replay_pop_ready(replay, 0, NULL, sizeof(vef_message)) == VEF_ERROR_NULL);
    CHECK(vef_replay_pop_ready_batch(replay, 0, NULL, 3, sizeof(vef_message)) == VEF_ERROR_NULL);
    CHECK(vef_replay_delivered_batch(replay, NULL, 3, 0) == VEF_ERROR_NULL);
    CHECK(vef_replay_hand_out(replay, 0, NULL, NULL) == VEF_ERROR_NULL && vef_replay_stats(replay, NULL, sizeof(vef_stats)) == VEF_ERROR_NULL);
    CHECK(vef_replay_progress(replay, 0, NULL, 1, sizeof(vef_progress)) == VEF_ERROR_NULL && vef_replay_tally(replay, 0, NULL, sizeof(vef_tally)) == VEF_ERROR_NULL);
    CHECK(vef_replay_is_complete(NULL) == VEF_ERROR_NULL && strcmp(vef_replay_stuck(NULL), "a null pointer") == 0);
    CHECK(vef_builder_ranks(builder, 0, NULL) == VEF_ERROR_NULL && vef_builder_build(builder, NULL) == VEF_ERROR_NULL);
    says(vef_replay_error(NULL), "null");
    says(vef_builder_error(NULL), "null");
    /* A handle of the other kind. */
    CHECK(vef_replay_next_ready((vef_replay *)builder, &at) == VEF_ERROR_HANDLE);
    CHECK(vef_builder_start((vef_builder *)replay, 0, 0) == VEF_ERROR_HANDLE);
    vef_replay_free((vef_replay *)builder);
    says(vef_status_text(VEF_ERROR_HANDLE), "handle");
    CHECK(vef_replay_version() == VEF_REPLAY_VERSION);
    vef_builder_free(builder);
    vef_replay_free(replay);
    vef_replay_free(NULL);
    vef_builder_free(NULL);
}

static void wrong_traces(void)
{
    /* A line in the middle that is none: the error comes when it is reached, and stays. */
    vef_replay *replay = open_trace("garbled.vef");
    CHECK(run(replay, NULL) == VEF_ERROR_TRACE);
    says(vef_replay_error(replay), "garbled.vef:4");
    uint64_t at;
    vef_message message;
    CHECK(vef_replay_next_ready(replay, &at) == VEF_ERROR_TRACE && vef_replay_pop_ready(replay, 1 << 20, &message, sizeof(vef_message)) == VEF_ERROR_TRACE);
    CHECK(vef_replay_delivered(replay, 1, 1 << 20) == VEF_ERROR_TRACE);
    says(vef_replay_error(replay), "garbled.vef:4");
    says(vef_replay_stuck(replay), "garbled.vef:4");
    CHECK(!vef_replay_is_complete(replay));
    vef_replay_free(replay);

    replay = open_trace("cyclic.vef");
    CHECK(run(replay, NULL) == 0 && !vef_replay_is_complete(replay));
    says(vef_replay_stuck(replay), "in a circle: task 0 waits for task 1 waits for task 0");
    vef_replay_free(replay);

    replay = open_trace("missing.vef");
    CHECK(run(replay, NULL) == 0 && !vef_replay_is_complete(replay));
    says(vef_replay_stuck(replay), "message 9, which is not in the trace");
    vef_replay_free(replay);

    /* One id for two messages. */
    replay = open_trace("twice.vef");
    CHECK(run(replay, NULL) == VEF_ERROR_TRACE);
    says(vef_replay_error(replay), "id 0 was used before");
    vef_replay_free(replay);
}

struct simulation {
    vef_replay *replay;
    uint64_t now, later;
    int depth, calls, stop_at, free_at;
};

static int inject(void *user, const vef_message *message)
{
    struct simulation *simulation = user;
    CHECK(simulation->depth++ == 0);
    simulation->calls++;
    CHECK(vef_replay_hand_out(simulation->replay, simulation->now, inject, user) == VEF_ERROR_REENTRANT);
    CHECK(vef_replay_delivered(simulation->replay, message->id, simulation->now + simulation->later) == VEF_OK);
    uint64_t at;
    CHECK(vef_replay_next_ready(simulation->replay, &at) >= 0);
    if (simulation->calls == simulation->free_at) vef_replay_free(simulation->replay);
    simulation->depth--;
    return simulation->calls == simulation->stop_at;
}

static void callbacks(void)
{
    struct simulation simulation = {open_trace("burst.vef"), 0, 0, 0, 0, 0, 0};
    /* All at one moment: each message is delivered in the callback, and the next handed out when that has returned. */
    CHECK(vef_replay_hand_out(simulation.replay, 0, inject, &simulation) == 4);
    CHECK(simulation.calls == 4 && vef_replay_is_complete(simulation.replay) == 1);
    CHECK(vef_replay_hand_out(simulation.replay, 0, inject, &simulation) == 0);
    vef_replay_free(simulation.replay);

    simulation = (struct simulation){open_trace("burst.vef"), 0, 0, 0, 0, 3, 0};
    CHECK(vef_replay_hand_out(simulation.replay, 0, inject, &simulation) == 3);
    CHECK(vef_replay_hand_out(simulation.replay, 0, inject, &simulation) == 1);
    vef_replay_free(simulation.replay);

    /* Deliveries at a later moment take the loop with them. */
    simulation = (struct simulation){open_trace("burst.vef"), 0, 5, 0, 0, 0, 0};
    CHECK(vef_replay_hand_out(simulation.replay, 0, inject, &simulation) == 4);
    CHECK(vef_replay_hand_out(simulation.replay, 4, inject, &simulation) == VEF_ERROR_TIME);
    vef_replay_free(simulation.replay);

    /* Freed in the callback: it lasts until the loop ends. */
    simulation = (struct simulation){open_trace("burst.vef"), 0, 0, 0, 0, 0, 2};
    CHECK(vef_replay_hand_out(simulation.replay, 0, inject, &simulation) == 4);
}

/* Two replays of one process, step by step in turn, know nothing of each other. */
static void two_at_once(void)
{
    vef_replay *replays[2] = {open_trace("ping-pong.vef"), open_trace("ping-pong.vef")};
    vef_message messages[2];
    for (int each = 0; each < 2; each++) CHECK(vef_replay_pop_ready(replays[each], 10000 + each, &messages[each], sizeof(vef_message)) == 1);
    CHECK(vef_replay_delivered(replays[0], messages[0].id, 20000) == VEF_OK);
    CHECK(vef_replay_delivered(replays[1], messages[1].id, 11000) == VEF_OK);
    vef_message last;
    for (int each = 0; each < 2; each++) {
        CHECK(run(replays[each], &last) == 0 && last.bytes == 50 && vef_replay_is_complete(replays[each]) == 1);
        vef_replay_free(replays[each]);
    }
}

/* What follows from calls comes with its moments; sizes, events and ids that cannot be are refused. */
static void an_engine_by_hand(void)
{
    vef_builder *builder = vef_builder_new();
    vef_engine *engine = NULL;
    vef_next next[4];
    vef_event event = {20000, 0, VEF_EVENT_DELIVERED}, strange = {20000, 0, 9};
    vef_stats stats;
    vef_description what;
    vef_progress tasks[2];
    struct { vef_next next; uint64_t later; } larger[2];
    vef_builder_add_job(builder, "ping-pong.vef");
    CHECK(vef_builder_captured_nodes(builder, 0, NULL, 0) == 0);
    CHECK(vef_builder_engine(builder, &engine) == VEF_OK && engine);
    CHECK(vef_builder_engine(builder, &engine) == VEF_ERROR_STATE);
    vef_builder_free(builder);
    CHECK(vef_engine_next(engine, next, 4, sizeof *next) == 0 && vef_engine_is_complete(engine) == 0);
    CHECK(vef_engine_begin(engine) == VEF_OK && vef_engine_begin(engine) == VEF_ERROR_STATE);
    CHECK(vef_engine_next(engine, next, 4, sizeof *next - 16) == VEF_ERROR_ARGUMENT);
    memset(larger, 1, sizeof larger);
    CHECK(vef_engine_next(engine, &larger[0].next, 2, sizeof *larger) == 1 && larger[0].later == 0 && larger[1].later != 0);
    next[0] = larger[0].next;
    CHECK(vef_engine_describe(engine, next[0].id, &what, sizeof what) == VEF_OK && what.record == 0 && what.dst_rank == 1);
    CHECK(vef_engine_describe(engine, 12345, &what, sizeof what) == VEF_ERROR_ID);
    CHECK(next[0].what == VEF_NEXT_MESSAGE && next[0].at == 10000 && next[0].bytes == 100 && next[0].dst_rank == 1);
    says(vef_engine_stuck(engine), "taken and not delivered: ");
    CHECK(vef_engine_delivered(engine, 12345, 20000) == VEF_ERROR_ID && vef_engine_wake(engine, 0, 20000) == VEF_ERROR_ARGUMENT);
    CHECK(vef_engine_report(engine, &strange, 1) == VEF_ERROR_ARGUMENT);
    event.id = next[0].id;
    CHECK(vef_engine_report(engine, &event, 1) == 1 && vef_engine_report(engine, &event, 1) == VEF_ERROR_ID);
    CHECK(vef_engine_next(engine, next, 4, sizeof *next) == 1 && next[0].at == 23000 && next[0].bytes == 50);
    CHECK(vef_engine_sent(engine, next[0].id, 23000) == VEF_OK && vef_engine_sent(engine, next[0].id, 23000) == VEF_ERROR_SENT_TWICE);
    CHECK(vef_engine_delivered(engine, next[0].id, 30000) == VEF_OK && vef_engine_next(engine, next, 4, sizeof *next) == 0);
    CHECK(vef_engine_is_complete(engine) == 1 && vef_engine_stuck(engine) == NULL);
    CHECK(vef_engine_stats(engine, &stats, sizeof stats) == VEF_OK && stats.messages == 2 && stats.finish == 31000);
    CHECK(vef_engine_progress(engine, 0, tasks, 2, sizeof *tasks) == 2 && tasks[0].finished == 31000);
    CHECK(vef_engine_begin(NULL) == VEF_ERROR_NULL && strcmp(vef_engine_stuck(NULL), "a null pointer") == 0);
    vef_engine_free(engine);
}

/* The same trace by two engines: its messages go from one to the other. */
static void two_partitions(void)
{
    static const uint32_t part_of[2] = {0, 1};
    vef_builder *builder = vef_builder_new();
    vef_engine *engines[2] = {NULL, NULL};
    vef_next next;
    vef_parcel parcel;
    uint64_t id;
    vef_builder_add_job(builder, "ping-pong.vef");
    CHECK(vef_builder_partitions(builder, part_of, 2, engines, 2) == VEF_OK);
    vef_builder_free(builder);
    CHECK(vef_engine_begin(engines[0]) == VEF_OK && vef_engine_begin(engines[1]) == VEF_OK);
    CHECK(vef_engine_next(engines[1], &next, 1, sizeof next) == 0);
    CHECK(vef_engine_next(engines[0], &next, 1, sizeof next) == 1 && next.at == 10000);
    CHECK(vef_engine_delivered(engines[0], next.id, 20000) == VEF_ERROR_ARGUMENT);
    says(vef_engine_error(engines[0]), "another partition");
    CHECK(vef_engine_export(engines[0], next.id, &parcel) == 0 && vef_engine_export(engines[0], next.id, &parcel) == VEF_ERROR_ID);
    CHECK(vef_engine_import(engines[0], &parcel, &id) == VEF_ERROR_ARGUMENT);
    CHECK(vef_engine_import(engines[1], &parcel, &id) == VEF_OK && vef_engine_delivered(engines[1], id, 20000) == VEF_OK);
    CHECK(vef_engine_next(engines[1], &next, 1, sizeof next) == 1 && next.at == 23000 && next.bytes == 50);
    CHECK(vef_engine_export(engines[1], next.id, &parcel) == 0 && vef_engine_is_complete(engines[1]) == 1);
    CHECK(vef_engine_import(engines[0], &parcel, &id) == VEF_OK && vef_engine_delivered(engines[0], id, 30000) == VEF_OK);
    CHECK(vef_engine_is_complete(engines[0]) == 1);
    vef_engine_free(engines[0]);
    vef_engine_free(engines[1]);
}

int main(void)
{
    write_file("ping-pong.vef", PING_PONG);
    write_file("cut.vef", "VEF3 2 5 0 0 0");
    write_file("empty.vef", "");
    write_file("wrong.txt", "0\none two\n");
    write_file("one.txt", "0\n");
    write_file("codes.txt", "77 Bcast\n");
    write_file("coded.vef", "VEF3 2 0 1 1 2 0 1000\nC0 0 1\nG0 C0 77 0 8 0 0 1 -1\nG0 C0 77 1 0 8 0 1 -1\n");
    write_file("two.txt", "3\n3\n");
    write_file("garbled.vef", "VEF3 2 4 0 0 0 0 1000\n0 0 1 100 4 10 -1\n3 1 0 50 6 3 0\n2 0 1 1oo 4 10 -1\n");
    write_file("cyclic.vef", "VEF3 2 2 0 0 0 0 1\n0 0 1 1 6 0 1\n1 1 0 1 6 0 0\n");
    write_file("missing.vef", "VEF3 2 2 0 0 0 0 1\n0 0 1 1 6 0 9\n1 1 0 1 4 0 -1\n");
    write_file("twice.vef", "VEF3 2 2 0 0 0 0 1\n0 0 1 1 4 0 -1\n0 1 0 1 4 0 -1\n");
    write_file("burst.vef", "VEF3 2 4 0 0 0 0 1\n0 0 1 1 4 0 -1\n1 0 1 1 4 0 -1\n2 1 0 1 6 0 0\n3 1 0 1 6 0 1\n");
    a_run_by_hand();
    builders();
    a_job_in_detail();
    a_collective_as_an_event();
    again_and_saved();
    an_engine_again();
    instances();
    null_pointers();
    wrong_traces();
    callbacks();
    two_at_once();
    an_engine_by_hand();
    two_partitions();
    puts("the contract holds");
    return 0;
}
