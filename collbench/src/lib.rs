//! Times real collectives, calibrates simulators, checks them: not begun, so there is nothing in here yet. What it will
//! stand on is there: `collectives` (the schedules) and `mpi-abi` (an MPI found at run time).
