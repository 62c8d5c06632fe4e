/* A preload library whose PMPI_Wtime is a bad clock, as VEF_TEST_CLOCK says: `coarse` (steps of 10 ms), `back` (every 100th reading is earlier);
 * vef_test_jump makes it wrong by so many seconds from then on. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double off;

void vef_test_jump(double by) { off += by; }

double PMPI_Wtime(void) {
    static const char *kind;
    static long readings;
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    double now = time.tv_sec + 1e-9 * time.tv_nsec + off;
    if (!kind) kind = getenv("VEF_TEST_CLOCK");
    if (!kind) kind = "";
    if (!strcmp(kind, "coarse")) return floor(now * 100) / 100;
    if (!strcmp(kind, "back")) return ++readings % 100 ? now : now - 1e-3;
    return now;
}
