#!/usr/bin/env python3
"""Runs a program that uses every function of an allocator, bare and with Strobe's functions in front, and compares what it says.

  allocators_test.py record|linked ALLOCATOR PROGRAM_SOURCE ALLOCATOR_SOURCE STROBE BESIDE COMPILER...

ALLOCATOR is "glibc"; "small", an allocator of the test's own, whole and without each of its functions in turn; or the name of a library, as
"jemalloc". record: under `strobe record --alloc`, with the allocator in the executable, linked as a shared library, and preloaded. linked: the
program BESIDE has Strobe's functions, and the allocator is preloaded behind them; the names of programs that have it in their executable, too,
follow the compiler, after "--".

The small allocator counts the blocks of others that come to it, so that a function that is taken from another object shows.
"""
import ctypes.util
import os
import pathlib
import subprocess
import sys
import tempfile

for folder in ("readers", "support"):
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / folder))
from checks import check, equal, failures  # noqa: E402
import pprof_file  # noqa: E402
from recorder import Recorder  # noqa: E402

OPTIONAL = ("aligned_alloc", "memalign", "posix_memalign", "valloc", "pvalloc", "malloc_usable_size", "reallocarray", "free_sized")
IS_LEFT_OUT = b"has an allocator in its executable, which no preloaded library sees: its allocations are not recorded"
SKIPPED = 77


class Builds:
    """Programs and libraries, compiled where they are needed."""

    def __init__(self, directory, compiler, program_source, allocator_source):
        self.directory, self.compiler = directory, compiler
        self.program_source, self.allocator_source = program_source, allocator_source

    def compile(self, name, *arguments):
        path = os.path.join(self.directory, name)
        subprocess.run([*self.compiler, "-std=c++17", "-O1", "-fno-builtin", "-pthread", "-w", "-o", path, *arguments], check=True)
        return path

    def program(self, name="plain", *arguments):
        return self.compile(name, self.program_source, *arguments)

    def small(self, lacking):
        """The small allocator, without these functions: as a shared library, and a program that has it in its executable."""
        flags = ["-DLACKS_" + function for function in lacking]
        name = "without_" + "_".join(lacking)
        library = self.compile(f"lib{name}.so", "-shared", "-fPIC", *flags, self.allocator_source)
        return library, self.program("static_" + name, *flags, self.allocator_source)


def allocated(recorder):
    """What the profile of the last recording says that was allocated; None if it has no such column."""
    profile = pprof_file.read(os.path.join(recorder.directory, "out.pb.gz"))
    if "alloc_space" not in profile.types:
        return None
    return sum(values[profile.types.index("alloc_space")] for _, values, _ in profile.rows)


def compare(recorder, what, command, library, is_static):
    """The program, bare and recorded, with the library preloaded."""
    pathlib.Path(recorder.directory, "out.pb.gz").unlink(missing_ok=True)
    recorder.environment.pop("LD_PRELOAD", None)
    if library:
        recorder.environment["LD_PRELOAD"] = library
    bare = recorder.bare(*command)
    recorded = recorder.record(*command, arguments=["--alloc"])
    recorder.environment.pop("LD_PRELOAD", None)
    equal((recorded.returncode, recorded.stdout), (bare.returncode, bare.stdout), what)
    equal(bare.returncode, 0, what + ", bare")
    if failures:
        return
    equal(recorded.stderr.count(IS_LEFT_OUT), int(is_static), what + ": what is said: %r" % recorded.stderr)
    seen = allocated(recorder)
    if is_static:
        equal(seen, None, what + ": allocations")
    else:
        # 200 MiB, of which each 512 KiB are left out with the probability 1 / e.
        check(seen is not None and seen > 0, what + ": allocations: %r" % seen)


def record_small(recorder, builds):
    for lacking in [(), OPTIONAL] + [(function,) for function in OPTIONAL]:
        what = "a small allocator without " + (", ".join(lacking) or "nothing")
        library, static = builds.small(lacking)
        compare(recorder, what + ", in the executable", [static], "", True)
        compare(recorder, what + ", preloaded", [builds.program()], library, False)
        linked = builds.program("linked", library, "-Wl,--no-as-needed", "-Wl,-rpath," + builds.directory)
        compare(recorder, what + ", linked", [linked], "", False)


def record_processes(recorder, builds):
    """Of a program that starts one whose allocations cannot be seen: one profile, with those of the first."""
    script = f"{builds.program()}; {builds.small(())[1]}"
    recorded = recorder.record("sh", "-c", script, arguments=["--alloc"])
    equal((recorded.returncode, recorded.stderr.count(IS_LEFT_OUT)), (0, 1), "a script: %r" % recorded.stderr)
    check((allocated(recorder) or 0) > 0, "a script: allocations")


def record_installed(recorder, builds, name):
    def file_of(suffix):
        """The library that the compiler would link, if there is one."""
        done = subprocess.run([*builds.compiler, f"-print-file-name=lib{name}{suffix}"], capture_output=True, text=True, check=True)
        return done.stdout.strip() if os.path.isabs(done.stdout.strip()) else None

    preloaded, archive, shared = ctypes.util.find_library(name), file_of(".a"), file_of(".so")
    if not preloaded and not archive and not shared:
        print(f"skipped: {name} is not installed")
        sys.exit(SKIPPED)
    without = ["without pvalloc"]  # which jemalloc lacks
    if preloaded:
        compare(recorder, name + ", preloaded", [builds.program(), *without], preloaded, False)
    if archive:
        try:
            static = builds.program("static", "-Wl,--whole-archive", archive, "-Wl,--no-whole-archive", "-lm", "-ldl")
            compare(recorder, name + ", in the executable", [static, *without], "", True)
        except subprocess.CalledProcessError:
            print(f"left out: {archive} needs libraries that are not installed")
    if shared:
        linked_program = builds.program("linked", "-Wl,--no-as-needed", shared)
        compare(recorder, name + ", linked", [linked_program, *without], "", False)


def without_aligned_new(output):
    """What a program says, but of the aligned forms of `operator new`, and sums."""
    return [line for line in output.splitlines() if not line.startswith(b"aligned new:") and not line.endswith(b" in all")]


def linked(recorder, builds, beside, with_allocators):
    """Programs that link Strobe's functions: what they say is what a program without them says."""
    def run(what, command, bare_program, library, is_sampled):
        recorder.environment.pop("LD_PRELOAD", None)
        if library:
            recorder.environment["LD_PRELOAD"] = library
        bare, done = recorder.bare(bare_program, *command[1:]), recorder.bare(*command)
        recorder.environment.pop("LD_PRELOAD", None)
        equal((done.returncode, bare.returncode), (0, 0), what)
        equal(without_aligned_new(done.stdout), without_aligned_new(bare.stdout), what)
        expected = b"sampling: OK\n" if is_sampled else b"sampling: FAILED_PRECONDITION: "
        check(done.stderr.startswith(expected), what + ": %r" % done.stderr)
        return done

    plain = builds.program()
    run("glibc", [beside], plain, "", True)
    for lacking in [(), OPTIONAL] + [(function,) for function in OPTIONAL]:
        what = "beside a small allocator without " + (", ".join(lacking) or "nothing")
        done = run(what, [beside], plain, builds.small(lacking)[0], True)
        # The C++ library's forms take aligned_alloc, ours what there is.
        check(lacking == OPTIONAL or b"aligned new: aligned, 0 blocks" in done.stdout, what + ": aligned new")
    for program in with_allocators:
        # What it says of blocks is that of the bare program with the same allocator.
        name = os.path.basename(program)
        lacking = OPTIONAL if name.endswith("lacking") else ()
        command = [program] if "small" in name else [program, "without pvalloc"]
        run(name, command, builds.small(lacking)[1] if "small" in name else plain, "", False)


def main():
    part, allocator, program_source, allocator_source, strobe, beside, *compiler = sys.argv[1:]
    with_allocators = []
    if "--" in compiler:
        at = compiler.index("--")
        compiler, with_allocators = compiler[:at], compiler[at + 1:]
    with tempfile.TemporaryDirectory() as directory:
        recorder = Recorder(directory, os.path.abspath(strobe), "")
        builds = Builds(directory, compiler, program_source, allocator_source)
        if part == "linked":
            linked(recorder, builds, os.path.abspath(beside), [os.path.abspath(program) for program in with_allocators])
        elif allocator == "glibc":
            compare(recorder, allocator, [builds.program()], "", False)
        elif allocator == "small":
            record_small(recorder, builds)
            record_processes(recorder, builds)
        else:
            record_installed(recorder, builds, allocator)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
