/* vef_phase.h: a program names its phases.
 *
 *     #include "vef_phase.h"
 *     vef_phase_begin("assembly");
 *     ...
 *     vef_phase_end("assembly");
 *
 * The functions are defined here, weakly, in every file that includes this; there is nothing to link (C libraries older than
 * glibc 2.34 want -ldl). Without the preload library they do nothing; with it the phase goes into the capture and to every
 * tool. Phases may be nested; an end also ends those that were begun inside and not ended. Outside MPI_Init ...
 * MPI_Finalize they are nothing. The names of MinI, mini_annotate_phase_start and mini_annotate_phase_end, do the same.
 *
 * Fortran: compile one C file that includes this, and
 *
 *     call vef_phase_begin('assembly')
 *
 * A program that cannot use this may call MPI_Pcontrol(n), n >= 3, where phase pcontrol_n begins and MPI_Pcontrol(-n) where it
 * ends. */
#ifndef VEF_PHASE_H
#define VEF_PHASE_H

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A definition inside a program comes before that of a preloaded library, weak or not: so these look for it. Handle 0 is
 * RTLD_DEFAULT. */
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
