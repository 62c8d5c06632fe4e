/* A simulator as one written for VEF-TraceLib: no field and no call that the older library did not have, the configuration on the stack as it
 * comes, answers ignored. Its network delivers whatever was injected by the end of the same cycle. */
#include <stdio.h>
#include <string.h>

#include "TraceManager.h"

static msg_t arrived[1024];

int main(int argc, char *const argv[])
{
    conf_t my_conf;
    if (argc != 2) return 2;
    my_conf.simNodes = 4;
    my_conf.number_of_traces = 1;
    my_conf.mapping_mode = 0;
    strncpy(my_conf.filename, argv[1], sizeof(my_conf.filename) - 1);
    my_conf.filename[sizeof(my_conf.filename) - 1] = '\0';
    my_conf.use_simulator_clock_instead_of_factorTime = 0;
    init_MultipleTraceManager(&my_conf);

    long sim_clock = 0, received = 0;
    while (!isTraceComplete()) {
        int count = 0;
        while (areMsgstoGet() && count < 1024) getMsgTrace(&arrived[count++]);
        received += count;
        while (count > 0) {
            count--;
            ReceiveTraceMsg(arrived[count].dst, arrived[count].id);
        }
        clock_tictac();
        sim_clock++;
    }
    printf("%ld messages, %ld cycles\n", received, sim_clock);
    return 0;
}
