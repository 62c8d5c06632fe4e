/* vef_phase.h: marks phases of a program.
 *
 *     #include "vef_phase.h"
 *     vef_phase_begin("assembly");
 *     ...
 *     vef_phase_end("assembly");
 *
 * The functions are weak definitions in every file that includes this header; there is nothing to link (C libraries older than
 * glibc 2.34 require -ldl). Without the preload library they have no effect; with it, phases are recorded in the capture and
 * passed to all tools. Phases may be nested; the end of a phase also ends the phases inside it. Outside MPI_Init ...
 * MPI_Finalize the functions have no effect. mini_annotate_phase_start and mini_annotate_phase_end, the names of MinI, are
 * synonyms.
 *
 * Fortran: compile one C file that includes this header, and
 *
 *     call vef_phase_begin('assembly')
 *
 * A program that cannot use this header may call MPI_Pcontrol(n), n >= 3, at the begin and MPI_Pcontrol(-n) at the end of
 * phase pcontrol_n. */
#ifndef VEF_PHASE_H
#define VEF_PHASE_H

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A definition in the program precedes one in a preloaded library even if it is weak, so these definitions look the library's
 * function up. Handle 0 is RTLD_DEFAULT. */
#define VEF_PHASE_CALL(tracer, name)                                               \
    do {                                                                           \
        static void (*vef_found)(const char *);                                    \
        static int vef_looked;                                                     \
        if (!vef_looked) {                                                         \
            *(void **)&vef_found = dlsym((void *)0, tracer);                       \
            vef_looked = 1;                                                        \
        }                                                                          \
        if (vef_found)                                                             \
            vef_found(name);                                                       \
    } while (0)

#define VEF_PHASE_DEFINE(c_name, fortran_name, tracer)                             \
    __attribute__((weak)) void c_name(const char *name)                            \
    {                                                                              \
        VEF_PHASE_CALL(tracer, name);                                              \
    }                                                                              \
    __attribute__((weak)) void fortran_name(const char *name, size_t length)       \
    {                                                                              \
        char copy[256];                                                            \
        while (length > 0 && name[length - 1] == ' ')                              \
            length--;                                                              \
        length = length < sizeof copy ? length : sizeof copy - 1;                  \
        memcpy(copy, name, length);                                                \
        copy[length] = '\0';                                                       \
        c_name(copy);                                                              \
    }

VEF_PHASE_DEFINE(vef_phase_begin, vef_phase_begin_, "vef_tracer_phase_begin")
VEF_PHASE_DEFINE(vef_phase_end, vef_phase_end_, "vef_tracer_phase_end")
VEF_PHASE_DEFINE(mini_annotate_phase_start, mini_annotate_phase_start_, "vef_tracer_phase_begin")
VEF_PHASE_DEFINE(mini_annotate_phase_end, mini_annotate_phase_end_, "vef_tracer_phase_end")

#undef VEF_PHASE_DEFINE
#undef VEF_PHASE_CALL

#ifdef __cplusplus
}
#endif

#endif
