#!/usr/bin/env python3
"""Compares the sources and the libraries of Abseil that another build system takes with Meson's.

  sources_test.py cmake SOURCE_ROOT BUILD_ROOT COMPILER     src/cmake, as CMake configures it here
  sources_test.py bazel SOURCE_ROOT BUILD_ROOT              src/packaging/bazel/strobe.BUILD, evaluated as Python, whose syntax it keeps to

Both take whole folders, so a new source needs nothing but Meson's list. What differs is printed, with the place to change. Exit status 77
if CMake is not here.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# What several libraries of Meson are for a user.
JOINED = {"strobe-data-plane": "strobe", "strobe-core": "strobe", "strobe-formats": "strobe", "strobe-malloc": "strobe-allocations",
          "strobe-allocations-archive": "strobe-allocations"}
LIBRARIES = {"strobe", *(f"strobe-{name}" for name in ("c", "locks", "process", "worker", "exceptions", "allocations", "http", "pull"))}
LEFT_OUT = {"strobe-gperftools", "strobe-gperftools-heap"}  # as src/docs/start.md says


def name_of(source, root):
    """A source as it is called below src/; a generated one has its name alone."""
    path = pathlib.Path(source)
    return path.relative_to(root / "src").as_posix() if path.is_relative_to(root / "src") else path.name


def included(unit):
    """The sources of a unit of a unity build."""
    return re.findall(r'#include\s*[<"](.*?)[>"]', pathlib.Path(unit).read_text())


def of_meson(root, build):
    """The sources of each library, from what Meson says of the build."""
    libraries = {}
    for target in json.loads((build / "meson-info/intro-targets.json").read_text()):
        library = JOINED.get(target["name"], target["name"])
        place = pathlib.Path(target["defined_in"])
        is_of_users = place.is_relative_to(root / "src") and not place.is_relative_to(root / "src/cli")
        if target["type"] != "static library" or not is_of_users or library in LEFT_OUT:
            continue
        if library not in LIBRARIES:
            sys.exit(f"{library} is a library of Meson's that this test does not know: is it in the other build systems?")
        for group in target["target_sources"]:
            for source in [*group.get("sources", []), *group.get("generated_sources", [])]:
                for path in included(source) if "-unity" in os.path.basename(source) else [source]:
                    libraries.setdefault(library, set()).add(name_of(os.path.normpath(pathlib.Path(build, "src", path)), root))
    libraries["strobe"].discard("one_more.cc")
    return libraries


def of_cmake(root, compiler, libdeflate, work):
    subprocess.run(["cmake", "-S", root / "tests/packaging/sources", "-B", work, f"-DSTROBE_SOURCE_ROOT={root}",
                    f"-DSTROBE_LIBDEFLATE={libdeflate}"], check=True, stdout=subprocess.DEVNULL, env={**os.environ, "CXX": compiler})
    libraries = {}
    for line in (work / "sources.txt").read_text().splitlines():
        library, source = line.split(" ", 1)
        libraries.setdefault(JOINED.get(library, library), set()).add(name_of(source, root))
    return libraries


def evaluate_build_file(root):
    """The rules of strobe.BUILD by name, each with its arguments; select() is its default."""
    def glob(patterns, exclude=()):
        found = {path for pattern in patterns for path in root.glob(pattern) if path.is_file()}
        left_out = {path for pattern in exclude for path in root.glob(pattern + "/*" if pattern.endswith("**") else pattern)}
        return sorted(path.relative_to(root).as_posix() for path in found - left_out)

    rules = {}
    names = {"glob": glob, "select": lambda cases: cases["//conditions:default"], "load": lambda *_: None, "package": lambda **_: None}
    for kind in ("cc_library", "genrule", "config_setting"):
        names[kind] = lambda name, **arguments: rules.update({name: arguments})
    file = root / "src/packaging/bazel/strobe.BUILD"
    exec(compile(file.read_text(), str(file), "exec"), names)
    return rules


def of_bazel(root):
    rules = evaluate_build_file(root)
    libraries = {}
    for name, arguments in rules.items():
        for source in arguments.get("srcs", []) if "copts" in arguments else []:
            for path in rules[source[1:]]["outs"] if source.startswith(":") else [source]:
                made = source.startswith(":")
                libraries.setdefault("strobe" if name == "strobe" else f"strobe-{name}", set()).add(
                    os.path.basename(path) if made else name_of(root / path, root))
    # It has zlib, whatever Meson has found.
    libraries["strobe"] = {source.replace("/zlib_", "/libdeflate_") for source in libraries["strobe"]}
    return libraries, {dependency.partition("absl/")[2].split("/")[-1].split(":")[-1] for dependency in rules["strobe"]["deps"]} - {""}


def differences(meson, other, place):
    """Of the libraries that Meson builds: an option may leave one out."""
    for library in sorted(meson):
        for source in sorted(meson[library] - other.get(library, set())):
            yield f"{place}: {library} lacks {source}, which Meson builds: a pattern must cover it"
        for source in sorted(other.get(library, set()) - meson[library]):
            yield f"{place}: {library} has {source}, which Meson does not build: add it to its folder's meson.build, or exclude it here"


def main():
    system, root, build, *compiler = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3]).resolve(), *sys.argv[4:]
    meson = of_meson(root, build)
    if system == "cmake":
        if not shutil.which("cmake"):
            print("cmake is not installed")
            sys.exit(77)
        with tempfile.TemporaryDirectory() as work:
            libdeflate = "ON" if "encode/libdeflate_gzip.cc" in meson["strobe"] else "OFF"
            failures = list(differences(meson, of_cmake(root, " ".join(compiler), libdeflate, pathlib.Path(work)), "src/cmake/CMakeLists.txt"))
    else:
        bazel, abseil = of_bazel(root)
        place = "src/packaging/bazel/strobe.BUILD"
        meson["strobe"] = {source.replace("/zlib_", "/libdeflate_") for source in meson["strobe"]}
        failures = list(differences(meson, bazel, place))
        wanted = set(re.findall(r"'absl_([a-z_]+)'", (root / "src/meson.build").read_text()))
        failures += [f"{place}: the libraries of Abseil are not those of src/meson.build: {sorted(wanted ^ abseil)}"] * (wanted != abseil)
    print(*failures or [f"{system}: {sum(map(len, meson.values()))} sources of {len(meson)} libraries, as Meson has them"], sep="\n")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
