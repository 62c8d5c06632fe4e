#!/bin/sh
# Builds record.c with an MPI and runs it, with more processes than processors where need be.
#
#   record.sh openmpi|mpich RANKS [LARGEST_VECTOR [LARGEST_BLOCK [pairs]]]
#   record.sh openmpi|mpich RANKS creations
#   record.sh openmpi|mpich RANKS between FIRST [pairs]
#   record.sh mpich RANKS phases
#   record.sh mpich RANKS windows
#   record.sh openmpi RANKS windows COMPONENT
#
# tests/data was made by `record.sh MPI RANKS 600000` for 2 to 17 ranks, `record.sh MPI RANKS 2200000 600000` for 18, 20 and 24, and
# `record.sh MPI RANKS 2200000 150000` for 31, 32, 33, 48, 63 and 64; MPI-creations.txt by `record.sh MPI RANKS creations` for 2, 5 and 8, and
# MPI-between.txt by `record.sh MPI RANKS between FIRST | sed "s/^/FIRST /"` for 2 and 1, 5 and 2, 6 and 5, 9 and 4;
# mpich-windows.txt by `record.sh mpich RANKS windows` and openmpi-COMPONENT-windows.txt by `record.sh openmpi RANKS windows COMPONENT`, for 2, 5 and 8.
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
    if [ "${1-}" = windows ]; then
        # Keys of memory are as long as the transport needs: those of TCP.
        export OMPI_MCA_osc="$2" UCX_TLS=tcp,self OMPI_MCA_opal_common_ucx_tls=any OMPI_MCA_opal_common_ucx_devices=any
    fi
    # As root it runs only if told so.
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    mpirun.openmpi --oversubscribe --mca mpi_yield_when_idle 1 -n "$ranks" "$work/record" "$@"
    ;;
mpich)
    # The static library's own calls can be replaced; it needs the libraries that the shared one is linked with.
    wrap=
    for function in PMPI_Isend MPIC_Send MPIC_Isend MPIC_Issend MPIC_Ssend MPIC_Sendrecv MPIC_Sendrecv_replace ucp_worker_progress ucp_am_send_nb ucp_put_nbi ucp_get_nbi ucp_ep_flush ucp_worker_flush_nb; do
        wrap="$wrap -Wl,--wrap=$function"
    done
    shared=$(mpicc.mpich -print-file-name=libmpich.so)
    libraries=$(ldd "$shared" | awk '$3 ~ /^\// && $1 !~ /^libc\.so/ { print $3 }')
    # shellcheck disable=SC2086
    mpicc.mpich -O1 "$source" -o "$work/record" $wrap -Wl,-Bstatic -lmpich -Wl,-Bdynamic $libraries
    # MPICH 4.0.2 does not end over TCP; keys of shared memory are as long.
    if [ "${1-}" = windows ]; then export UCX_TLS=sm,self; fi
    # As if every rank had a node of its own.
    MPIR_CVAR_NOLOCAL=1 mpirun.mpich -n "$ranks" "$work/record" "$@"
    ;;
*)
    sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
