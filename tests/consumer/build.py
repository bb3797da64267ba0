#!/usr/bin/env python3
"""Builds and runs the consumer: build.py WAY COMPILER SOURCE_ROOT BUILD_ROOT.

WAY is subproject or installed, each also with _disabled, for a Strobe configured with -Denabled=false (of the subproject then, only the
consumer's own code is compiled: that library is the installed one's); or, installed too: cmake, static (a
program without shared libraries), lto (link time optimization); or fetchcontent: CMake builds Strobe with the program; or libcxx: a subproject
built by clang with libc++, Abseil too. Exit status 77, with the reason, if there is no such compiler.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


def run(command, cwd, **variables):
    print("+", " ".join(str(part) for part in command), flush=True)
    result = subprocess.run(command, cwd=cwd, env=os.environ | variables, stdin=subprocess.DEVNULL, text=True, capture_output=True)
    sys.stdout.write(result.stdout + result.stderr)
    if result.returncode != 0:
        sys.exit(f"exit status {result.returncode}: {command[0]}")
    return result.stdout


def skip(reason):
    print(f"SKIP: {reason}")
    sys.exit(77)


def set_up_subproject(work, source, compiler, *options, subprojects={}):
    """Strobe as a folder below subprojects/, beside further ones. Returns the build directory."""
    shutil.copytree(source / "tests/consumer/subproject", work / "consumer")
    shutil.copy(source / "tests/consumer/main.cc", work / "consumer")
    (work / "consumer/subprojects").mkdir()
    for name, path in {"strobe": source, **subprojects}.items():
        (work / "consumer/subprojects" / name).symlink_to(path)
    run(["meson", "setup", "build", "--wrap-mode=nodownload", "-Dbuildtype=debug", "--unity=on", "--unity-size=20", *options], work / "consumer",
        CXX=compiler)
    return work / "consumer/build"


def build_subproject(work, source, compiler, *options, subprojects={}, targets=()):
    build = set_up_subproject(work, source, compiler, *options, subprojects=subprojects)
    run(["ninja", "-C", build, "-j1", *targets], work)
    check_subproject(build)
    return build / "consumer"


def compile_disabled_subproject(work, source, compiler):
    build = set_up_subproject(work, source, compiler, "-Dstrobe:enabled=false")
    own = [entry for entry in json.loads((build / "compile_commands.json").read_text()) if entry["output"].startswith("consumer.p/")]
    run(["ninja", "-C", build, "-j1", *(entry["output"] for entry in own)], work)
    if not own or not all("-DSTROBE_DISABLED=1" in entry["command"] for entry in own):
        sys.exit("the dependency does not tell whether the library is a stub")


def check_subproject(build):
    """The parent has asked for the library alone, and is not optimised."""
    built = {path.name for path in (build / "subprojects/strobe").rglob("libstrobe*.a")}
    if built != {"libstrobe.a"}:
        sys.exit(f"a subproject builds what its parent links, and no more: {built}")
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if "/strobe/src/" in "/" + entry["output"] and "-O2" not in entry["command"]:
            sys.exit(f"compiled without optimisation: {entry['output']}")


def find_libcxx(work):
    """The command of the newest clang++ whose libc++ has what Strobe needs of the standard library, which is 16 or later."""
    probe = work / "probe.cc"
    probe.write_text("#include <algorithm>\n#include <array>\n#include <memory_resource>\n#include <vector>\n"
                     "int main() { std::pmr::vector<int> all(3); return std::ranges::find(all, 1) == all.end() && _LIBCPP_VERSION ? 0 : 1; }\n")
    for name in [*(f"clang++-{version}" for version in range(30, 15, -1)), "clang++"]:
        command = [name, "-std=c++20", "-stdlib=libc++"]
        if shutil.which(name) and subprocess.run([*command, probe, "-o", work / "probe"], capture_output=True).returncode == 0:
            return [name, "-stdlib=libc++"]
    skip("no clang++ with libc++ 16 or later (clang-16, libc++-16-dev, libc++abi-16-dev)")


def build_libcxx(work, source, compiler):
    """Strobe and Abseil as subprojects, because the system's Abseil is made for the other standard library."""
    command = find_libcxx(work)
    if compiler.startswith("ccache "):
        command = ["ccache", *command]
    unpacked = subprocess.run(["bash", "-c", ". tests/windows.sh && unpack_wraps abseil-cpp"], cwd=source, text=True, capture_output=True)
    if unpacked.returncode != 0:
        skip(unpacked.stdout.strip())
    abseil = next((source / "subprojects").glob("abseil-cpp-*/"))
    return build_subproject(work, source, " ".join(command), "--force-fallback-for=abseil-cpp", "-Dstrobe:http=disabled",
                            "-Dstrobe:pull=disabled", subprojects={abseil.name: abseil}, targets=["consumer"])


def install(work, build):
    """What an installation brings, below a directory of its own. Returns the directory."""
    run(["meson", "install", "-C", build, "--no-rebuild", "--destdir", work / "destination"], work)
    return work / "destination"


def package_flags(work, destination, package):
    """What pkg-config says of an installed package. The system's own libraries do not live below the prefix."""
    directory = str(next(destination.rglob("strobe.pc")).parent)
    flags = run(["pkg-config", "--static", "--cflags", "--libs", package], work, PKG_CONFIG_PATH=directory,
                PKG_CONFIG_SYSROOT_DIR=str(destination)).split()
    flags = [flag if "/usr/local" in flag else flag.replace(str(destination), "") for flag in flags]
    return [flag for flag in flags if flag != "-I/usr/include"]


def build_cmake(work, source, build, compiler):
    """Strobe installed below a prefix, found by CMake's find_package."""
    config = next(install(work, build).rglob("strobeConfig.cmake"), None)
    if config is None:
        sys.exit("CMake's package was not installed")
    run(["cmake", "-S", source / "tests/consumer/cmake", "-B", "build", "-Dstrobe_DIR=" + str(config.parent)], work, CXX=compiler)
    run(["cmake", "--build", "build"], work)
    if (work / "build/allocations").exists():
        run([work / "build/allocations", work / "allocations"], work)
    if (work / "build/gperftools").exists():
        run([work / "build/gperftools"], work, CPUPROFILE=str(work / "cpu_profile"))
        if (work / "cpu_profile").read_bytes()[:2] != b"\x1f\x8b":
            sys.exit("CPUPROFILE has made no profile")
    return work / "build/consumer"


def build_fetchcontent(work, source, compiler):
    """Strobe's sources, which CMake has "fetched" from this tree and builds with the program. The parent is for debugging, and strict."""
    launcher, name = compiler.split() if compiler.startswith("ccache ") else ("", compiler)
    run(["cmake", "-S", source / "tests/consumer/fetchcontent", "-B", "build", "-G", "Ninja", f"-DFETCHCONTENT_SOURCE_DIR_STROBE={source}",
         "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}",
         "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror -Wconversion -Wshadow -Wundef -Wold-style-cast"], work, CXX=name)
    output = run(["cmake", "--build", "build", "--parallel", "2"], work)
    if "warning" in output:
        sys.exit("the parent's build has warnings")
    built = {path.name for path in (work / "build").rglob("libstrobe*.a")}
    if built != {"libstrobe.a", "libstrobe-allocations-archive.a"}:
        sys.exit(f"CMake builds what the parent links, and no more: {built}")
    for entry in json.loads((work / "build/compile_commands.json").read_text()):
        if "strobe-build" in entry["command"] and "-O2" not in entry["command"]:
            sys.exit(f"compiled without optimisation: {entry['file']}")
    run([work / "build/allocations", work / "allocations"], work)
    return work / "build/consumer"


def build_installed(work, source, build, compiler, disabled, *more_flags):
    """Strobe installed below a prefix, found by pkg-config and linked with nothing but what it says."""
    if disabled:
        build = work / "strobe"
        run(["meson", "setup", build, source, "--wrap-mode=nofallback", "-Dbuildtype=debug", "--unity=on", "--unity-size=20", "-Denabled=false",
             "-Dtests=false", "-Dexamples=false"], work, CXX=compiler)
        run(["ninja", "-C", build, "-j1"], work)
    destination = install(work, build)
    if not next(destination.rglob("strobe.pc"), None):
        sys.exit("strobe.pc was not installed")
    if not next(destination.rglob("libstrobe.a"), None):
        sys.exit("libstrobe.a was not installed")
    flags = package_flags(work, destination, "strobe")
    if disabled != ("-DSTROBE_DISABLED=1" in flags):
        sys.exit("the pkg-config file does not tell whether the library is a stub")
    if "-DNOMINMAX" in flags:
        sys.exit("the pkg-config file defines NOMINMAX for the program")
    run([*compiler.split(), "-std=c++20", *more_flags, source / "tests/consumer/main.cc", "-o", work / "consumer", *flags], work)
    if not disabled and not more_flags:
        refuse_other_containers(work, source, compiler, flags)
        build_c(work, source, compiler, destination)
    if not disabled:
        build_allocations(work, source, compiler, destination, more_flags)
    return work / "consumer"


def refuse_other_containers(work, source, compiler, flags):
    """A program whose containers have other layouts must not be linked, and the linker must say why."""
    command = [*compiler.split(), "-std=c++20", "-D_GLIBCXX_DEBUG", source / "tests/consumer/main.cc", "-o", work / "refused", *flags]
    errors = subprocess.run(command, cwd=work, stdin=subprocess.DEVNULL, text=True, capture_output=True).stderr
    if "library_is_built_with_GLIBCXX_DEBUG" not in errors:
        sys.exit("a program with -D_GLIBCXX_DEBUG must be refused by the linker:\n" + errors)


def build_allocations(work, source, compiler, destination, more_flags):
    """The program that samples its allocations, with nothing but what strobe-allocations.pc says."""
    flags = package_flags(work, destination, "strobe-allocations")
    command = [*compiler.split(), "-std=c++20", *more_flags, source / "tests/consumer/allocations.cc", "-o", work / "allocations_program", *flags]
    if "-static" in more_flags:
        # libc.a's malloc takes the place of ours, which are weak: the program runs, and says what it lacks.
        run(command, work)
        done = subprocess.run([work / "allocations_program", work / "allocations"], cwd=work, stdin=subprocess.DEVNULL, text=True, capture_output=True)
        if done.returncode != 1 or "sampling: FAILED_PRECONDITION" not in done.stdout:
            sys.exit(f"a static program with the allocation functions must run without them: {done.returncode}\n{done.stdout}{done.stderr}")
        return
    run(command, work)
    run([work / "allocations_program", work / "allocations"], work)


def build_c(work, source, compiler, destination):
    """The program in C, with nothing but what strobe-c.pc says, linked by the C++ compiler."""
    flags = package_flags(work, destination, "strobe-c")
    run([*compiler.split(), "-x", "c", "-std=c11", source / "tests/c/c_program.c", "-x", "none", "-o", work / "c_program", *flags], work)
    (work / "c").mkdir()
    run([work / "c_program"], work / "c")


def main():
    way, compiler, source, build = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4])
    disabled = way.endswith("_disabled")
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        if way == "subproject_disabled":
            return compile_disabled_subproject(work, source, compiler)
        if way == "subproject":
            program = build_subproject(work, source, compiler)
        elif way == "libcxx":
            program = build_libcxx(work, source, compiler)
        elif way == "fetchcontent":
            program = build_fetchcontent(work, source, compiler)
        elif way == "cmake":
            program = build_cmake(work, source, build, compiler)
        else:
            more_flags = {"static": ["-static"], "lto": ["-O2", "-flto"]}.get(way, [])
            program = build_installed(work, source, build, compiler, disabled, *more_flags)
        output = run([program, work / "profiles"], work)
        profiles = list((work / "profiles").glob("*.pb.gz")) if (work / "profiles").exists() else []
        if disabled:
            if "start: OK" in output or "enabled=false" not in output:
                sys.exit("a stub's Start must say that it was built with -Denabled=false")
        elif "start: OK" not in output or "stop: OK" not in output or not profiles:
            sys.exit("the consumer was not profiled")


if __name__ == "__main__":
    main()
