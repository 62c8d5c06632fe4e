/* What `cargo run --release -p vef-benches --example replay -- run FILE N` does, through the C interface: every message is delivered
 * when it is handed out. Prints seconds on the processor, opening left out, and millions of messages a second, for each way of calling.
 *
 *     cc -O2 -o replay benches/c/replay.c -IPREFIX/include -LPREFIX/lib -lvef_replay -Wl,-rpath,PREFIX/lib
 *     ./replay FILE [REPETITIONS]
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "vef_replay.h"

enum { ROOM = 64 };

static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void one_by_one(vef_replay *replay)
{
    uint64_t now;
    vef_message message;
    while (vef_replay_next_ready(replay, &now) > 0)
        while (vef_replay_pop_ready(replay, now, &message) > 0) vef_replay_delivered(replay, message.id, now);
}

static void in_batches(vef_replay *replay)
{
    uint64_t now, ids[ROOM];
    vef_message messages[ROOM];
    while (vef_replay_next_ready(replay, &now) > 0) {
        ptrdiff_t count;
        do {
            count = vef_replay_pop_ready_batch(replay, now, messages, ROOM);
            for (ptrdiff_t each = 0; each < count; each++) ids[each] = messages[each].id;
            if (count > 0) vef_replay_delivered_batch(replay, ids, (size_t)count, now);
        } while (count == ROOM);
    }
}

struct network {
    vef_replay *replay;
    uint64_t now;
};

static int inject(void *user, const vef_message *message)
{
    struct network *network = user;
    return vef_replay_delivered(network->replay, message->id, network->now);
}

static void called_back(vef_replay *replay)
{
    struct network network = {replay, 0};
    while (vef_replay_next_ready(replay, &network.now) > 0) vef_replay_hand_out(replay, network.now, inject, &network);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(vef_replay *);
    } ways[] = {{"one by one", one_by_one}, {"in batches", in_batches}, {"called back", called_back}};
    if (argc < 2) return fprintf(stderr, "usage: %s FILE [REPETITIONS]\n", argv[0]), 2;
    int repetitions = argc > 2 ? atoi(argv[2]) : 1;
    for (int repetition = 0; repetition < repetitions; repetition++)
        for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
            vef_builder *builder = vef_builder_new();
            vef_replay *replay = NULL;
            vef_builder_add_job(builder, argv[1]);
            if (vef_builder_build(builder, &replay) != VEF_OK) return fprintf(stderr, "%s\n", vef_builder_error(builder)), 1;
            vef_builder_free(builder);
            double begin = processor_seconds();
            ways[way].run(replay);
            double seconds = processor_seconds() - begin;
            vef_stats stats;
            vef_replay_stats(replay, &stats);
            if (!vef_replay_is_complete(replay)) return fprintf(stderr, "%s\n", vef_replay_stuck(replay)), 1;
            vef_replay_free(replay);
            printf("%-11s %llu messages, %.3f s on the processor, %.2f M messages/s\n", ways[way].name,
                   (unsigned long long)stats.messages, seconds, (double)stats.messages / seconds / 1e6);
        }
    return 0;
}
