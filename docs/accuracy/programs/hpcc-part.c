/* HPL or PTRANS of HPCC alone, from HPCC's own sources (this main in the place of src/hpcc.c):
 *   hpcc-part hpl|ptrans [TIMES]      reads hpccinf.txt, writes hpccoutf.txt as hpcc does */
#include <hpcc.h>

int main(int argc, char **argv)
{
    HPCC_Params params;
    MPI_Init(&argc, &argv);
    if (argc < 2 || HPCC_Init(&params))
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int times = argc > 2 ? atoi(argv[2]) : 1; times > 0; times--)
        if (strcmp(argv[1], "hpl") == 0)
            HPL_main(argc, argv, &params.HPLrdata, &params.Failure);
        else
            PTRANS(&params);
    HPCC_Finalize(&params);
    MPI_Finalize();
    return params.Failure;
}
