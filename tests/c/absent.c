/* Which names are there: by weak references (of a program that is linked, and of a module that another program opens) and by
 * dlsym. Under a preload library it must print the same. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

static const char *names[] = { "MPI_Get_version", "MPI_Send", "MPI_Send_c", "MPI_Type_contiguous_c", "MPI_Session_init",
    "MPI_Isendrecv", "MPI_Allreduce_init", "MPIX_Allreduce_init", "MPI_Psend_init", "MPI_Info_get_string", "MPI_Abi_get_version" };
#define COUNT (sizeof names / sizeof *names)

#ifdef OPENER
/* Without an MPI, and then with the module and its MPI. */
int main(int argc, char **argv)
{
    void *self = dlopen(NULL, RTLD_LAZY);
    printf("%d\n", dlsym(self, "MPI_Get_version") != NULL);
    void *module = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!module) { puts(dlerror()); return 1; }
    for (unsigned i = 0; i < COUNT; i++) printf("%s %d\n", names[i], dlsym(module, names[i]) != NULL);
    ((void (*)(void))dlsym(module, "weak_references"))();
    return 0;
}
#else
#define WEAK(name) extern int name(void) __attribute__((weak));
WEAK(MPI_Get_version) WEAK(MPI_Send) WEAK(MPI_Send_c) WEAK(MPI_Type_contiguous_c) WEAK(MPI_Session_init) WEAK(MPI_Isendrecv)
WEAK(MPI_Allreduce_init) WEAK(MPIX_Allreduce_init) WEAK(MPI_Psend_init) WEAK(MPI_Info_get_string) WEAK(MPI_Abi_get_version)

extern int MPI_Initialized(int *);

void weak_references(void)
{
    int flag;
    int (*volatile weak[])(void) = { MPI_Get_version, MPI_Send, MPI_Send_c, MPI_Type_contiguous_c, MPI_Session_init, MPI_Isendrecv,
                           MPI_Allreduce_init, MPIX_Allreduce_init, MPI_Psend_init, MPI_Info_get_string, MPI_Abi_get_version };
    for (unsigned i = 0; i < COUNT; i++) printf("%s %d\n", names[i], weak[i] != NULL);
    MPI_Initialized(&flag);
    printf("initialised %d\n", flag);
}

#ifndef MODULE
extern int MPI_Init(int *, char ***), MPI_Finalize(void);

int main(void)
{
    weak_references();
    /* Some programs take it for granted that there is a reason. */
    for (unsigned i = 0; i < COUNT; i++) printf("%s %d\n", names[i], dlsym(RTLD_DEFAULT, names[i]) ? 2 : dlerror() != NULL);
    MPI_Init(NULL, NULL);
    MPI_Finalize();
    return 0;
}
#endif
#endif
