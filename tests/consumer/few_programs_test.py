#!/usr/bin/env python3
"""Configures as the quickstart does where the programs that are optional are not there: few_programs_test.py COMPILER SOURCE_ROOT."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

OPTIONAL = ("cmake", "ctest", "dpkg-architecture", "dpkg-deb", "dpkg-query", "python3", "python", "git", "ccache", "go", "protoc", "node")


def path_without(hidden, folder):
    """A folder with a link to each program that the search path finds, but for the hidden ones."""
    for directory in os.get_exec_path():
        for program in pathlib.Path(directory).iterdir() if os.path.isdir(directory) else []:
            link = folder / program.name
            if program.name not in hidden and not os.path.lexists(link):
                link.symlink_to(program)
    return str(folder)


def main():
    compiler, source = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        (work / "programs").mkdir()
        path = path_without(OPTIONAL, work / "programs")
        still_found = [name for name in OPTIONAL if shutil.which(name, path=path)]
        if still_found:
            sys.exit(f"not hidden: {still_found}")
        environment = {**os.environ, "PATH": path, "CXX": compiler.split()[-1]}
        configured = subprocess.run(["meson", "setup", work / "build", source, "--wrap-mode=nofallback", "-Dtests=false"], env=environment,
                                    stdin=subprocess.DEVNULL, text=True, capture_output=True)
        if configured.returncode != 0:
            sys.exit(configured.stdout + configured.stderr)
        for package in ("strobe.pc", "strobeConfig.cmake"):
            if not list(work.joinpath("build").rglob(package)):
                sys.exit(f"{package} is not made without {', '.join(OPTIONAL)}")


if __name__ == "__main__":
    main()
