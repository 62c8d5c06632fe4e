/* HPL or PTRANS of HPCC alone, from HPCC's own sources (this main in the place of src/hpcc.c):
 *   hpcc-part hpl|ptrans      reads hpccinf.txt (the one beside this file), writes hpccoutf.txt as hpcc does
 *
 * apt-get source hpcc; cd hpcc-1.5.0; sed -i 's/MPI_Address/MPI_Get_address/; s/MPI_Type_struct/MPI_Type_create_struct/' hpl/src/comm/*.c
 * mpicc -w -O2 -DAdd_ -DF77_INTEGER=int -DStringSunStyle -Iinclude -Ihpl/include -IDGEMM -IFFT -IPTRANS -IRandomAccess -ISTREAM hpcc-part.c \
 *   $(find hpl/src hpl/testing src PTRANS DGEMM FFT RandomAccess STREAM -name '*.c' | grep -v 'src/hpcc.c\|zfft1d_mkl') -lblas -lm */
#include <hpcc.h>

int main(int argc, char **argv)
{
    HPCC_Params params;
    MPI_Init(&argc, &argv);
    if (argc < 2 || HPCC_Init(&params))
        MPI_Abort(MPI_COMM_WORLD, 2);
    if (strcmp(argv[1], "hpl") == 0)
        HPL_main(argc, argv, &params.HPLrdata, &params.Failure);
    else
        PTRANS(&params);
    HPCC_Finalize(&params);
    MPI_Finalize();
    return params.Failure;
}
