"""Runs the program mxgold as `python -m mxgold ...`."""

import os
import sys

from ._program import path

program = str(path())
os.execv(program, ["mxgold", *sys.argv[1:]])
