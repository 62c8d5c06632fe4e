/* What `cargo run --release -p vef-benches --example replay -- run FILE N` does, through the C interface: every message is delivered
 * when it is handed out. Prints seconds on the processor, opening left out, and millions of messages a second, for each way of calling.
 *
 *     cc -O2 -o replay benches/c/replay.c -IPREFIX/include -LPREFIX/lib -lvef_replay -Wl,-rpath,PREFIX/lib
 *     ./replay FILE [REPETITIONS]
 *
 * VEF_BENCH_WAY=NAME runs one way alone.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
        while (vef_replay_pop_ready(replay, now, &message, sizeof(vef_message)) > 0) vef_replay_delivered(replay, message.id, now);
}

static void in_batches(vef_replay *replay)
{
    uint64_t now, ids[ROOM];
    vef_message messages[ROOM];
    while (vef_replay_next_ready(replay, &now) > 0) {
        ptrdiff_t count;
        do {
            count = vef_replay_pop_ready_batch(replay, now, messages, ROOM, sizeof(vef_message));
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

enum { EVENTS = 1 << 16 };

/* Events by time, a binary heap: the simulator's queue. */
struct queue {
    vef_event heap[EVENTS + 1]; /* from 1 on */
    size_t count;
};

static int put(struct queue *queue, vef_event event)
{
    if (queue->count == EVENTS) return 0;
    size_t at = ++queue->count;
    for (; at > 1 && event.at < queue->heap[at / 2].at; at /= 2) queue->heap[at] = queue->heap[at / 2];
    queue->heap[at] = event;
    return 1;
}

static vef_event take(struct queue *queue)
{
    vef_event first = queue->heap[1], last = queue->heap[queue->count--];
    size_t at = 1, child;
    for (; (child = 2 * at) <= queue->count; at = child) {
        if (child < queue->count && queue->heap[child + 1].at < queue->heap[child].at) child++;
        if (last.at <= queue->heap[child].at) break;
        queue->heap[at] = queue->heap[child];
    }
    queue->heap[at] = last;
    return first;
}

static vef_event event_of(const vef_next *next)
{
    vef_event event = {0};
    event.at = next->at;
    event.id = next->id;
    event.what = next->what == VEF_NEXT_WAKE ? VEF_EVENT_WAKE : VEF_EVENT_DELIVERED;
    return event;
}

/* By an engine, the events in the order in which they come: all that a task needs whose messages all come from one other. */
static int pushed(vef_engine *engine)
{
    enum { WAITING = 1 << 12 }; /* in the cache; a ring has one event a rank */
    static vef_event events[WAITING];
    vef_next next[ROOM];
    size_t first = 0, last = 0;
    ptrdiff_t number;
    if (vef_engine_begin(engine) != VEF_OK) return 0;
    for (;;) {
        while ((number = vef_engine_next(engine, next, ROOM, sizeof(vef_next))) > 0)
            for (ptrdiff_t each = 0; each < number; each++) {
                if (last - first == WAITING) return 0;
                events[last++ % WAITING] = event_of(&next[each]);
            }
        if (first == last) return vef_engine_is_complete(engine) > 0;
        size_t some = last - first, at = first % WAITING;
        if (some > ROOM) some = ROOM;
        if (some > WAITING - at) some = WAITING - at;
        if (vef_engine_report(engine, events + at, some) != (ptrdiff_t)some) return 0;
        first += some;
    }
}

/* By an engine, the events by time, which is what any trace needs. Those of one moment are reported together. */
static int pushed_by_time(vef_engine *engine)
{
    static struct queue queue;
    vef_next next[ROOM];
    vef_event events[ROOM];
    ptrdiff_t number;
    queue.count = 0;
    if (vef_engine_begin(engine) != VEF_OK) return 0;
    for (;;) {
        while ((number = vef_engine_next(engine, next, ROOM, sizeof(vef_next))) > 0)
            for (ptrdiff_t each = 0; each < number; each++)
                if (!put(&queue, event_of(&next[each]))) return 0;
        if (queue.count == 0) return vef_engine_is_complete(engine) > 0;
        size_t some = 0;
        do events[some++] = take(&queue);
        while (some < ROOM && queue.count > 0 && queue.heap[1].at == events[0].at);
        if (vef_engine_report(engine, events, some) != (ptrdiff_t)some) return 0;
    }
}

static vef_builder *describe(const char *trace)
{
    vef_builder *builder = vef_builder_new();
    vef_builder_add_job(builder, trace);
    return builder;
}

static void tell(const char *way, uint64_t messages, double seconds)
{
    printf("%-14s %llu messages, %.3f s on the processor, %.2f M messages/s\n", way, (unsigned long long)messages, seconds,
           (double)messages / seconds / 1e6);
}

static int is_wanted(const char *way)
{
    const char *only = getenv("VEF_BENCH_WAY");
    return !only || strcmp(only, way) == 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(vef_replay *);
    } ways[] = {{"one by one", one_by_one}, {"in batches", in_batches}, {"called back", called_back}};
    static const struct {
        const char *name;
        int (*run)(vef_engine *);
    } pushes[] = {{"pushed", pushed}, {"pushed by time", pushed_by_time}};
    if (argc < 2) return fprintf(stderr, "usage: %s FILE [REPETITIONS]\n", argv[0]), 2;
    int repetitions = argc > 2 ? atoi(argv[2]) : 1;
    for (int repetition = 0; repetition < repetitions; repetition++) {
        vef_builder *builder;
        vef_stats stats;
        for (size_t way = 0; way < sizeof pushes / sizeof *pushes; way++) {
            vef_engine *engine = NULL;
            if (!is_wanted(pushes[way].name)) continue;
            builder = describe(argv[1]);
            if (vef_builder_engine(builder, &engine) != VEF_OK) return fprintf(stderr, "%s\n", vef_builder_error(builder)), 1;
            vef_builder_free(builder);
            double began = processor_seconds();
            int complete = pushes[way].run(engine);
            double took = processor_seconds() - began;
            vef_engine_stats(engine, &stats, sizeof(vef_stats));
            if (complete) tell(pushes[way].name, stats.messages, took);
            else if (way == 0) fprintf(stderr, "pushed: not for this trace: %s\n", vef_engine_error(engine));
            else return fprintf(stderr, "%s\n", vef_engine_stuck(engine)), 1;
            vef_engine_free(engine);
        }
        for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
            vef_replay *replay = NULL;
            if (!is_wanted(ways[way].name)) continue;
            builder = describe(argv[1]);
            if (vef_builder_build(builder, &replay) != VEF_OK) return fprintf(stderr, "%s\n", vef_builder_error(builder)), 1;
            vef_builder_free(builder);
            double begin = processor_seconds();
            ways[way].run(replay);
            double seconds = processor_seconds() - begin;
            vef_replay_stats(replay, &stats, sizeof(vef_stats));
            if (!vef_replay_is_complete(replay)) return fprintf(stderr, "%s\n", vef_replay_stuck(replay)), 1;
            vef_replay_free(replay);
            tell(ways[way].name, stats.messages, seconds);
        }
    }
    return 0;
}
