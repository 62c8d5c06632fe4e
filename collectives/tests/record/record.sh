#!/bin/sh
# Builds record.c with an MPI and runs it, with more processes than processors where need be.
#
#   record.sh openmpi|mpich RANKS [LARGEST_VECTOR [LARGEST_BLOCK [pairs]]]
#   record.sh openmpi|mpich RANKS creations
#   record.sh openmpi|mpich RANKS between FIRST [pairs]
#   record.sh mpich RANKS phases
#
# tests/data was made by `record.sh MPI RANKS 600000` for 2 to 17 ranks, `record.sh MPI RANKS 2200000 600000` for 18, 20 and 24, and
# `record.sh MPI RANKS 2200000 150000` for 31, 32, 33, 48, 63 and 64; MPI-creations.txt by `record.sh MPI RANKS creations` for 2, 5 and 8, and
# MPI-between.txt by `record.sh MPI RANKS between FIRST | sed "s/^/FIRST /"` for 2 and 1, 5 and 2, 6 and 5, 9 and 4.
set -eu

mpi=$1
ranks=$2
shift 2
source=$(dirname "$0")/record.c
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

case $mpi in
openmpi)
    mpicc.openmpi -O1 "$source" -o "$work/record"
    # As root it runs only if told so.
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    mpirun.openmpi --oversubscribe --mca mpi_yield_when_idle 1 -n "$ranks" "$work/record" "$@"
    ;;
mpich)
    # The static library's own calls can be replaced; it needs the libraries that the shared one is linked with.
    wrap=
    for function in PMPI_Isend MPIC_Send MPIC_Isend MPIC_Issend MPIC_Ssend MPIC_Sendrecv MPIC_Sendrecv_replace ucp_worker_progress; do
        wrap="$wrap -Wl,--wrap=$function"
    done
    shared=$(mpicc.mpich -print-file-name=libmpich.so)
    libraries=$(ldd "$shared" | awk '$3 ~ /^\// && $1 !~ /^libc\.so/ { print $3 }')
    # shellcheck disable=SC2086
    mpicc.mpich -O1 "$source" -o "$work/record" $wrap -Wl,-Bstatic -lmpich -Wl,-Bdynamic $libraries
    # As if every rank had a node of its own.
    MPIR_CVAR_NOLOCAL=1 mpirun.mpich -n "$ranks" "$work/record" "$@"
    ;;
*)
    sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
