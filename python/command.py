#!python
# The command `normlab` of a wheel: becomes the program in the package's folder. Does not import the package, and with it
# torch, because most verbs need neither.
import importlib.util
import os
import sys

[package] = importlib.util.find_spec("normlab").submodule_search_locations
program = os.path.join(package, "bin", "normlab")
os.execv(program, ["normlab", *sys.argv[1:]])
