#!/bin/sh
# In place of ssh: `other_host.sh [options] HOST COMMAND…` runs COMMAND here as on another host, with a host name of its own and
# nothing of the caller's environment.
while [ $# -gt 0 ]; do
    case "$1" in
    -o | -l | -p) shift 2 ;;
    -*) shift ;;
    *) break ;;
    esac
done
host=$1
shift
[ "$(id -u)" = 0 ] || as_root=-r
exec unshare $as_root --uts -- env -i HOME="$HOME" PATH=/usr/bin:/bin OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
    sh -c 'hostname "$0"; exec sh -c "$1"' "$host" "$*"
