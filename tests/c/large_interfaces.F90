! With 64-bit counts.
#define LARGE
#include "interfaces.F90"
