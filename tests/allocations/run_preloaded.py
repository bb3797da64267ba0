#!/usr/bin/env python3
"""Runs a test with an allocator preloaded: run_preloaded.py LIBRARY PROGRAM...

An empty LIBRARY is the C library's. If the library is not installed, the test is skipped (77).
"""
import os
import subprocess
import sys

library, program = sys.argv[1], sys.argv[2:]
environment = dict(os.environ)
if library:
    # The loader says so if it cannot preload a library, and goes on without it.
    loads = subprocess.run(["true"], env={**environment, "LD_PRELOAD": library}, stderr=subprocess.PIPE, check=False)
    if loads.stderr:
        print(f"skipped: {library} is not installed")
        sys.exit(77)
    environment["LD_PRELOAD"] = library
sys.exit(subprocess.run(program, env=environment, check=False).returncode)
