"""``python -m vef`` is the command ``vef`` of this package."""

import os
import sys

from .commands import find_program

if __name__ == "__main__":
    os.execv(find_program(), ["vef", *sys.argv[1:]])
