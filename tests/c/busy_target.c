/* One-sided requests to a target that computes, with 4 ranks: rank 0 fetches from rank 3, which computes for 100 ms in the meantime, by the clock of the
 * processor; a line `waited MILLISECONDS` tells how long the origin waits. Then all put, get and exchange by atomics, each with the rank behind. Rank 0 prints a line `ORIGIN TARGET THERE BACK` for each pair: bytes of payload to the target and back. Phase pcontrol_4 has the puts,
 * atomics and gets of one epoch: 3 716 bytes of each rank. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 100000, RANKS = 4 };

static char memory[SIZE], own[SIZE];
static long moved[RANKS][RANKS][2], all[RANKS][RANKS][2];
static int rank;

static void count(int target, long there, long back)
{
    moved[rank][target][0] += there;
    moved[rank][target][1] += back;
}

static void compute(double seconds)
{
    clock_t begin = clock();
    while (clock() - begin < seconds * CLOCKS_PER_SEC)
        ;
}

int main(int argc, char **argv)
{
    MPI_Win win;
    MPI_Request request;
    MPI_Group world, next, last;
    long one = 1, before;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int to = (rank + 1) % RANKS, from = (rank + RANKS - 1) % RANKS;
    MPI_Win_create(memory, SIZE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    if (rank == 0) {
        MPI_Send(NULL, 0, MPI_CHAR, 3, 1, MPI_COMM_WORLD);
        /* Rank 3 has left its call by then. */
        usleep(20000);
        double begin = MPI_Wtime();
        MPI_Win_lock(MPI_LOCK_SHARED, 3, 0, win);
        MPI_Get(own, 50000, MPI_CHAR, 3, 0, 50000, MPI_CHAR, win);
        MPI_Win_unlock(3, win);
        printf("waited %.0f\n", 1000 * (MPI_Wtime() - begin));
        count(3, 0, 50000);
    } else if (rank == 3) {
        MPI_Recv(NULL, 0, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        compute(0.1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol(4);
    MPI_Win_lock_all(0, win);
    MPI_Put(own, 3000, MPI_CHAR, to, 8, 3000, MPI_CHAR, win);
    count(to, 3000, 0);
    MPI_Win_flush(to, win);
    MPI_Fetch_and_op(&one, &before, MPI_LONG, to, 0, MPI_SUM, win);
    count(to, 8, 8);
    MPI_Rget(own, 700, MPI_CHAR, from, 0, 700, MPI_CHAR, win, &request);
    count(from, 0, 700);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(win);
    MPI_Pcontrol(-4);
    MPI_Win_fence(0, win);
    MPI_Put(own, 40, MPI_CHAR, to, 0, 40, MPI_CHAR, win);
    MPI_Get(own, 60, MPI_CHAR, from, 50, 60, MPI_CHAR, win);
    count(to, 40, 0);
    count(from, 0, 60);
    MPI_Win_fence(0, win);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &to, &next);
    MPI_Group_incl(world, 1, &from, &last);
    MPI_Win_post(last, 0, win);
    MPI_Win_start(next, 0, win);
    MPI_Put(own, 500, MPI_CHAR, to, 0, 500, MPI_CHAR, win);
    count(to, 500, 0);
    MPI_Win_complete(win);
    MPI_Win_wait(win);
    MPI_Win_free(&win);
    MPI_Reduce(moved, all, RANKS * RANKS * 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < RANKS * RANKS; i++) {
        long *of = all[i / RANKS][i % RANKS];
        if (of[0] + of[1] > 0) printf("%d %d %ld %ld\n", i / RANKS, i % RANKS, of[0], of[1]);
    }
    MPI_Group_free(&world);
    MPI_Group_free(&next);
    MPI_Group_free(&last);
    MPI_Finalize();
    return 0;
}
