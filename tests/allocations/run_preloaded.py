#!/usr/bin/env python3
"""Runs a test with an allocator preloaded: run_preloaded.py ALLOCATOR PROGRAM...

ALLOCATOR is a library's name without "lib" and version; an empty one is the C library's. If no version is installed, the test is skipped (77).
"""
import ctypes.util
import os
import subprocess
import sys

allocator, program = sys.argv[1], sys.argv[2:]
environment = dict(os.environ)
if allocator:
    library = ctypes.util.find_library(allocator)
    if not library:
        print(f"skipped: {allocator} is not installed")
        sys.exit(77)
    environment["LD_PRELOAD"] = library
sys.exit(subprocess.run(program, env=environment, check=False).returncode)
