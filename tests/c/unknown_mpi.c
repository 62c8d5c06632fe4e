/* A library that says it is MPI: of a kind that nobody knows, or, with ABI_MAJOR, with that version of the standard ABI. */
#include <string.h>

#define BOTH(name, arguments, ...) int name arguments __VA_ARGS__ int P##name arguments __VA_ARGS__
BOTH(MPI_Init, (int *count, char ***words), { (void)count, (void)words; return 0; })
BOTH(MPI_Finalize, (void), { return 0; })
BOTH(MPI_Comm_rank, (void *comm, int *rank), { (void)comm; *rank = 0; return 0; })
BOTH(MPI_Comm_size, (void *comm, int *size), { (void)comm; *size = 1; return 0; })
BOTH(MPI_Barrier, (void *comm), { (void)comm; return 0; })
BOTH(MPI_Get_library_version, (char *text, int *length), { strcpy(text, "Some MPI 7.1"); *length = 12; return 0; })
#ifdef ABI_MAJOR
BOTH(MPI_Abi_get_version, (int *major, int *minor), { *major = ABI_MAJOR; *minor = 3; return 0; })
#endif
