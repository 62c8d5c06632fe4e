/* A simulator that goes cycle by cycle, written for VEF-TraceLib's calls: of this project it knows TraceManager.h alone.
 *
 *     cycle_loop TRACE [picoseconds a cycle]
 *
 * Its network: every node has one link, into which messages come one after the other, LATENCY cycles after they were sent
 * and at BYTES_A_CYCLE.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "TraceManager.h"

enum { NODES = 64, LATENCY = 10, BYTES_A_CYCLE = 125 };

struct arrival {
    struct arrival *next;
    msg_t message;
    uint64_t cycle;
};

/* Messages on their way to a node, in the order in which they will arrive. */
static struct {
    struct arrival *first, **last;
    uint64_t busy_until;
} links[NODES];

static void inject(const msg_t *message, uint64_t now)
{
    struct arrival *arrival = malloc(sizeof *arrival);
    if (!arrival) exit(1);
    uint64_t begin = now + LATENCY;
    if (begin < links[message->dst].busy_until) begin = links[message->dst].busy_until;
    arrival->next = NULL;
    arrival->message = *message;
    arrival->cycle = begin + (message->length + BYTES_A_CYCLE - 1) / BYTES_A_CYCLE;
    links[message->dst].busy_until = arrival->cycle;
    *links[message->dst].last = arrival;
    links[message->dst].last = &arrival->next;
}

/* Reports the messages that arrive in this cycle. */
static void receive(uint64_t now)
{
    for (int node = 0; node < NODES; node++)
        while (links[node].first && links[node].first->cycle <= now) {
            struct arrival *arrival = links[node].first;
            links[node].first = arrival->next;
            if (!arrival->next) links[node].last = &links[node].first;
            ReceiveTraceMsg(arrival->message.dst, arrival->message.id);
            free(arrival);
        }
}

/* The cycle of the next arrival, or UINT64_MAX. */
static uint64_t next_arrival(void)
{
    uint64_t next = UINT64_MAX;
    for (int node = 0; node < NODES; node++)
        if (links[node].first && links[node].first->cycle < next) next = links[node].first->cycle;
    return next;
}

int main(int argc, char **argv)
{
    if (argc < 2) return fprintf(stderr, "usage: %s TRACE [picoseconds a cycle]\n", argv[0]), 2;
    uint64_t cycle = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
    TraceManager_set_cycle(cycle);

    conf_t configuration;
    configuration.simNodes = NODES;
    configuration.number_of_traces = 1;
    configuration.mapping_mode = 0;
    configuration.use_simulator_clock_instead_of_factorTime = 0;
    snprintf(configuration.filename, sizeof configuration.filename, "%s", argv[1]);
    init_MultipleTraceManager(&configuration);

    for (int node = 0; node < NODES; node++) links[node].last = &links[node].first;
    uint64_t now = 0, messages = 0, bytes = 0;
    while (!isTraceComplete()) {
        msg_t message;
        while (areMsgstoGet()) {
            getMsgTrace(&message);
            inject(&message, now);
            messages++;
            bytes += message.length;
        }
        receive(now);
        clock_tictac();
        now++;
        /* Cycles in which nothing happens, neither in the network nor in the trace, are skipped. */
        uint64_t arrival = next_arrival(), idle = arrival > now ? arrival - now : 0;
        int64_t event = nextEvent();
        if (event < 0 && arrival == UINT64_MAX) continue;
        if (event >= 0 && (uint64_t)event < idle) idle = (uint64_t)event;
        clock_advance(idle);
        now += idle;
    }
    if (TraceManager_problem()) return 1;
    printf("%" PRIu64 " messages, %" PRIu64 " bytes, run time %.6f ms\n", messages, bytes, now * cycle / 1e9);
    TraceManager_end();
    return 0;
}
