/* Random calls of vef_replay.h and TraceManager.h, mistaken ones among them, on the traces that are named: nothing may crash, hang or
 * leak, and no call may answer what its text does not allow. Only handles that were freed are left alone: the API promises
 * nothing of them.
 *
 *     replay_fuzz SEED CALLS TRACE…
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "TraceManager.h"
#include "vef_replay.h"

enum { HANDLES = 4, IDS = 64 };

static uint64_t state;
static char **traces;
static int trace_count;

static uint64_t draw(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return below ? state % below : state;
}

static void expect(int holds, const char *what, long answer)
{
    if (!holds) {
        fprintf(stderr, "%s answered %ld\n", what, answer);
        exit(1);
    }
}

/* Any status is allowed, but for a fault of the library and codes that are none. */
static int checked(const char *what, long answer, long most)
{
    expect(answer <= most && answer > VEF_ERROR_INTERNAL, what, answer);
    expect(strlen(vef_status_text((int)answer)) > 0, "vef_status_text", answer);
    return (int)answer;
}

static struct slot {
    vef_builder *builder;
    vef_replay *replay;
    uint64_t now, ids[IDS];
    int count;
} slots[HANDLES];

static uint64_t some_time(const struct slot *slot)
{
    switch (draw(8)) {
    case 0: return draw(slot->now + 1);
    case 1: return draw(1000) == 0 ? UINT64_MAX - draw(3) : slot->now;
    case 2: return slot->now + draw(1000000);
    default: return slot->now + draw(1000);
    }
}

static uint64_t some_id(const struct slot *slot)
{
    if (slot->count && draw(8)) return slot->ids[draw((uint64_t)slot->count)];
    return draw(2) ? draw(10) | draw(10) << 32 : state;
}

static void keep(struct slot *slot, uint64_t id)
{
    if (slot->count < IDS) slot->ids[slot->count++] = id;
    else slot->ids[draw(IDS)] = id;
}

static void moved(struct slot *slot, uint64_t at, long answer)
{
    if (answer >= 0 && at > slot->now) slot->now = at;
}

static int inject(void *user, const vef_message *message)
{
    struct slot *slot = user;
    keep(slot, message->id);
    uint64_t at = some_time(slot);
    switch (draw(6)) {
    case 0: expect(vef_replay_hand_out(slot->replay, at, inject, slot) == VEF_ERROR_REENTRANT, "hand_out within", 0); break;
    case 1: case 2: case 3: moved(slot, at, checked("delivered within", vef_replay_delivered(slot->replay, some_id(slot), at), 0)); break;
    case 4: moved(slot, at, checked("pop within", vef_replay_pop_ready(slot->replay, at, &(vef_message){0}, sizeof(vef_message)), 1)); break;
    default: break;
    }
    return draw(20) == 0;
}

static void build(struct slot *slot)
{
    uint32_t nodes[64], ranks, job = (uint32_t)draw(3);
    for (int node = 0; node < 64; node++) nodes[node] = (uint32_t)draw(draw(10) ? 8 : UINT32_MAX);
    static const double factors[2] = {0.5, 2.0};
    static const char *const tables[] = {"default", "openmpi", "mpich", "", "/", "absent.toml"};
    switch (draw(18)) {
    case 0: case 1: case 2: checked("add_job", vef_builder_add_job(slot->builder, traces[draw((uint64_t)trace_count)]), 1 << 20); break;
    case 3: checked("nodes", vef_builder_nodes(slot->builder, 0, nodes, draw(20) ? 64 : draw(64)), 0); break;
    case 4: checked("start", vef_builder_start(slot->builder, draw(20) ? 0 : job, draw(20) ? draw(1000000) : state), 0); break;
    case 5: checked("factor", vef_builder_time_factor(slot->builder, 0, draw(20) ? 0.001 * (double)draw(4000) : -1.0), 0); break;
    case 6: checked("link", vef_builder_same_node_link(slot->builder, draw(1000), draw(20) ? 1 + draw(1u << 30) : 0), 0); break;
    case 7: checked("when_sent", vef_builder_sends_when_sent(slot->builder), 0); break;
    case 8:
        if (draw(2)) checked("rendezvous", vef_builder_sends_rendezvous(slot->builder, draw(10000)), 0);
        else checked("in calls", vef_builder_sends_rendezvous_in_calls(slot->builder, draw(10000)), 0);
        break;
    case 9: checked("algorithms", vef_builder_algorithms(slot->builder, tables[draw(draw(10) ? 3 : 6)]), 0); break;
    case 10: if (draw(10) == 0) checked("placement", vef_builder_placement(slot->builder, job, draw(2) ? traces[0] : NULL), 0); break;
    case 11: if (checked("ranks", vef_builder_ranks(slot->builder, job, draw(50) ? &ranks : NULL), 0) == 0) expect(ranks > 0, "ranks", ranks); break;
    case 12: checked("keep_times", vef_builder_keep_times(slot->builder), 0); break;
    case 13: checked("factors", vef_builder_time_factors(slot->builder, job, factors, draw(3)), 0); break;
    case 14: checked("skip", vef_builder_skip(slot->builder, 0, &state, draw(2)), 0); break;
    case 15: checked("job_algorithms", vef_builder_job_algorithms(slot->builder, 0, tables[draw(draw(10) ? 3 : 6)]), 0); break;
    default: {
        vef_replay *replay = NULL;
        int answer = checked("build", vef_builder_build(slot->builder, &replay), 0);
        expect((answer == 0) == (replay != NULL), "build", answer);
        vef_builder_free(slot->builder);
        slot->builder = NULL;
        slot->replay = replay;
        slot->now = 0;
        slot->count = 0;
    }
    }
    if (slot->builder) expect(vef_builder_error(slot->builder) != NULL, "builder_error", 0);
}

static void play(struct slot *slot)
{
    vef_message messages[8];
    vef_progress progress[8];
    vef_stats stats;
    vef_tally tally;
    vef_times times[8];
    vef_description description;
    uint64_t at = some_time(slot), ids[8], room;
    long answer;
    switch (draw(20)) {
    case 0: case 1: case 2: case 3:
        if (checked("next_ready", vef_replay_next_ready(slot->replay, &at), 1) == 1 && draw(4)) {
            expect(at >= slot->now, "next_ready", 0);
            answer = checked("pop", vef_replay_pop_ready(slot->replay, at, messages, sizeof(vef_message)), 1);
            moved(slot, at, answer);
            if (answer == 1) keep(slot, messages[0].id);
        }
        break;
    case 4: case 5:
        room = draw(9);
        answer = checked("pop_batch", vef_replay_pop_ready_batch(slot->replay, at, messages, room, sizeof(vef_message)), (long)room);
        moved(slot, at, room ? answer : -1);
        for (long each = 0; each < answer; each++) keep(slot, messages[each].id);
        break;
    case 6: case 7: case 8: case 9: moved(slot, at, checked("delivered", vef_replay_delivered(slot->replay, some_id(slot), at), 0)); break;
    case 10: case 11:
        for (int each = 0; each < 8; each++) ids[each] = some_id(slot);
        room = draw(9);
        answer = checked("delivered_batch", vef_replay_delivered_batch(slot->replay, ids, room, at), (long)room);
        moved(slot, at, room ? answer : -1);
        break;
    case 12: moved(slot, at, checked("sent", vef_replay_sent(slot->replay, some_id(slot), at), 0)); break;
    case 13: case 14:
        answer = checked("hand_out", vef_replay_hand_out(slot->replay, at, inject, slot), 1 << 20);
        moved(slot, at, answer);
        break;
    case 15: if (draw(20) == 0) { const char *why = vef_replay_stuck(slot->replay); expect(!why || *why, "stuck", 0); } break;
    case 16: expect(checked("stats", vef_replay_stats(slot->replay, draw(50) ? &stats : NULL, sizeof(vef_stats)), 0) < 0 || stats.live <= stats.messages, "stats", 0); break;
    case 17: checked("progress", vef_replay_progress(slot->replay, (uint32_t)draw(3), progress, draw(9), sizeof(vef_progress)), 1 << 20); break;
    case 18:
        checked("describe", vef_replay_describe(slot->replay, some_id(slot), draw(50) ? &description : NULL, sizeof description), 0);
        checked("times", vef_replay_times(slot->replay, (uint32_t)draw(3), times, draw(9), sizeof(vef_times)), 1 << 20);
        checked("tally", vef_replay_tally(slot->replay, (uint32_t)draw(20), &tally, sizeof(vef_tally)), 0); break;
    default:
        checked("is_complete", vef_replay_is_complete(slot->replay), 1);
        expect(vef_replay_error(slot->replay) != NULL, "error", 0);
        if (draw(50) == 0) {
            vef_replay_free(slot->replay);
            slot->replay = NULL;
        }
    }
}

static void trace_manager(void)
{
    static msg_t messages[IDS];
    static int count;
    conf_t configuration;
    switch (draw(12)) {
    case 0:
        if (draw(30)) break;
        memset(&configuration, draw(40) ? 0 : 'x', sizeof configuration);
        configuration.simNodes = draw(20) ? 4 + (int)draw(60) : (int)draw(3) - 1;
        configuration.number_of_traces = draw(20) ? 1 : (int)draw(4) - 1;
        configuration.mapping_mode = (int)draw(draw(20) ? 2 : 4);
        if (draw(20)) strncpy(configuration.filename, traces[draw((uint64_t)trace_count)], sizeof configuration.filename - 1);
        init_MultipleTraceManager(draw(50) ? &configuration : NULL);
        count = 0;
        break;
    case 1: case 2: case 3:
        if (areMsgstoGet()) {
            msg_t *message = &messages[count < IDS ? count++ : (int)draw(IDS)];
            int answer = getMsgTrace(message);
            expect(answer == 1 || (answer == -1 && TraceManager_problem()), "getMsgTrace", answer);
        }
        break;
    case 4: case 5: case 6:
        if (count) {
            const msg_t *message = &messages[draw((uint64_t)count)];
            ReceiveTraceMsg(draw(30) ? message->dst : (int)draw(9), draw(30) ? message->id : draw(100));
        }
        break;
    case 7: getMsgTrace(draw(50) ? &messages[0] : NULL); break;
    case 8: { int answer = isTraceComplete(); expect(answer >= -1 && answer <= 1, "isTraceComplete", answer); } break;
    case 9: TraceManager_set_cycle(draw(20) ? draw(100000) : state); break;
    case 10: if (draw(200) == 0) { TraceManager_end(); count = 0; } else { const char *problem = TraceManager_problem(); expect(!problem || *problem, "problem", 0); } break;
    default: clock_tictac();
    }
}

int main(int argc, char **argv)
{
    if (argc < 4) return fprintf(stderr, "usage: %s SEED CALLS TRACE...\n", argv[0]), 2;
    state = strtoull(argv[1], NULL, 10) * 0x9e3779b97f4a7c15u + 1;
    uint64_t calls = strtoull(argv[2], NULL, 10);
    traces = argv + 3;
    trace_count = argc - 3;
    for (uint64_t call = 0; call < calls; call++) {
        struct slot *slot = &slots[draw(HANDLES)];
        if (draw(5) == 0) trace_manager();
        else if (slot->replay) play(slot);
        else if (slot->builder) build(slot);
        else slot->builder = vef_builder_new();
    }
    uint64_t ends = 0;
    for (int each = 0; each < HANDLES; each++) {
        ends += slots[each].replay != NULL;
        vef_replay_free(slots[each].replay);
        vef_builder_free(slots[each].builder);
    }
    TraceManager_end();
    printf("%llu calls, %llu replays open at the end\n", (unsigned long long)calls, (unsigned long long)ends);
    return 0;
}
