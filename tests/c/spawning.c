/* Spawns two worlds, of two ranks and of one, each of which has a barrier of its own. */
#include <mpi.h>

int main(int argc, char **argv)
{
    MPI_Comm parent, children;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Comm_disconnect(&parent);
    } else {
        for (int ranks = 2; ranks > 0; ranks--) {
            MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, ranks, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
            MPI_Comm_disconnect(&children);
        }
    }
    MPI_Finalize();
    return 0;
}
