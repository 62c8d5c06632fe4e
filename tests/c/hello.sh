#!/bin/bash
# With the preload library in the environment of everything: a launcher with ranks, python and grep, pipes and
# here-documents. $1 is the launcher with its options, $2 an MPI program.
set -e
$1 -n 2 "$2" | grep done
python3 - <<'PYTHON'
import os, subprocess
assert subprocess.run(["true"]).returncode == 0
pid = os.fork()
if pid == 0:
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
print("python is well")
PYTHON
echo needle | grep -c needle
