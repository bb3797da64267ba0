#!/usr/bin/env python3
"""Succeeds if a command says that it has found something: fails.py COMMAND... with exit status 1, not by a crash."""
import subprocess
import sys

status = subprocess.run(sys.argv[1:], check=False).returncode
print(f"exit status {status}, expected 1")
sys.exit(status != 1)
