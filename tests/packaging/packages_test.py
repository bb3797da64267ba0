#!/usr/bin/env python3
"""Makes a package of this tree, and builds the consumer with it where that is possible: packages_test.py NAME SOURCE_ROOT COMPILER.

  debian   src/packaging/debian by dpkg-buildpackage, looked at by lintian; the consumer is built with the unpacked packages
  conan    src/packaging/conan by Conan 2, with the system's Abseil, zlib, libdeflate and libcurl; the consumer is built with the package
  vcpkg    src/packaging/vcpkg: its calls of vcpkg, played by functions of CMake that configure as vcpkg does
  bazel    src/packaging/bazel: Bazel's analysis of a workspace that uses it, with rules for the system's Abseil and zlib

Exit status 77, with the reason, if a tool is not installed.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "docs"))
from markdown import Document  # noqa: E402

KEPT = ("src", "include", "subprojects", "meson.build", "meson_options.txt", "README.md")  # what a release has for those who build it
NEWEST_BAZEL_WITH_WORKSPACE = 7  # the file WORKSPACE, which needs no network
# What Bazel's own files load, of repositories that it would fetch: rules that it has built in.
BUILT_IN_RULES = {
    "rules_cc/cc": "cc_library cc_binary cc_test cc_import cc_toolchain cc_toolchain_suite cc_proto_library objc_library objc_import "
                   "fdo_prefetch_hints fdo_profile",
    "rules_java/java": "java_binary java_import java_library java_package_configuration java_plugin java_runtime java_test java_toolchain "
                       "java_proto_library java_lite_proto_library",
}


def run(command, cwd, **variables):
    print("+", " ".join(str(part) for part in command), flush=True)
    result = subprocess.run(command, cwd=cwd, env={**os.environ, **variables}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, errors="replace")
    if result.returncode != 0:
        sys.exit(f"{result.stdout[-6000:]}\nexit status {result.returncode}: {command[0]}")
    return result.stdout


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            print(f"{program} is not installed")
            sys.exit(77)


def copy_tree(root, folder):
    for name in KEPT:
        if (root / name).is_dir():
            shutil.copytree(root / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*-[0-9]*", "packagecache"))
        else:
            shutil.copy(root / name, folder / name)


def check_consumer(program, work):
    output = run([program, work / "profiles"], work)
    if "start: OK" not in output or "stop: OK" not in output or not list((work / "profiles").glob("*.pb.gz")):
        sys.exit("the consumer was not profiled:\n" + output)


def debian(root, work, compiler):
    need("dpkg-buildpackage", "dh", "cmake")
    tree = work / "strobe"
    tree.mkdir()
    copy_tree(root, tree)
    shutil.copytree(root / "src/packaging/debian", tree / "debian")
    run(["dpkg-buildpackage", "-us", "-uc", "-b", "-d"], tree, CXX=" ".join(compiler))
    packages = sorted(work.glob("*.deb"))
    names = {package.name.split("_")[0].removesuffix("-dbgsym") for package in packages}
    if names != {"strobe", "libstrobe-dev"}:
        sys.exit(f"other packages than control names: {names}")
    if shutil.which("lintian"):
        # The tree names no maintainer.
        print(run(["lintian", "--fail-on", "error", "--allow-root", "--suppress-tags", "bogus-mail-host,bogus-mail-host-in-debian-changelog",
                   *packages], work))
    for package in packages:
        run(["dpkg-deb", "-x", package, work / "installed"], work)
    prefix = work / "installed/usr"
    run(["cmake", "-S", root / "tests/consumer/cmake", "-B", "build", f"-Dstrobe_DIR={next(prefix.rglob('strobeConfig.cmake')).parent}"], work,
        CXX=" ".join(compiler))
    run(["cmake", "--build", "build"], work)
    check_consumer(work / "build/consumer", work)
    recorded = run([prefix / "bin/strobe", "record", "-o", work / "recorded.pb.gz", "--", work / "build/consumer", work / "more"], work)
    if not (work / "recorded.pb.gz").exists():
        sys.exit("the installed command finds nothing to preload:\n" + recorded)


def conan(root, work, compiler):
    need("conan", "cmake", "pkg-config")
    environment = {"CONAN_HOME": str(work / "conan"), "CXX": compiler[-1]}
    if not run(["conan", "--version"], work, **environment).startswith("Conan version 2"):
        print("the recipe is for Conan 2")
        sys.exit(77)
    run(["conan", "profile", "detect"], work, **environment)
    profile = work / "conan/profiles/default"
    versions = {package: run(["pkg-config", "--modversion", module], work).strip()
                for package, module in (("abseil", "absl_status"), ("zlib", "zlib"), ("libdeflate", "libdeflate"))}
    cached = pathlib.Path("/usr/lib/ccache", pathlib.Path(compiler[-1]).name)  # one word is all that Conan takes
    command = str(cached) if compiler[0] == "ccache" and cached.exists() else compiler[-1]
    settings = re.sub("cppstd=.*", "cppstd=20", profile.read_text())
    profile.write_text(settings + "[platform_requires]\n" + "".join(f"{name}/{version}\n" for name, version in versions.items()) +
                       f"[conf]\ntools.build:compiler_executables={{'cpp': '{command}'}}\n")
    run(["conan", "create", root / "src/packaging/conan", "--no-remote"], work, **environment)
    (work / "conanfile.txt").write_text(Document(root / "src/docs/start.md").of("ini")[0].text)
    run(["conan", "install", ".", "--no-remote", "-of", "generated"], work, **environment)
    run(["cmake", "-S", root / "tests/consumer/cmake", "-B", "build", f"-DCMAKE_TOOLCHAIN_FILE={work}/generated/conan_toolchain.cmake",
         "-DCMAKE_BUILD_TYPE=Release"], work, **environment)
    run(["cmake", "--build", "build"], work)
    check_consumer(work / "build/consumer", work)


def vcpkg(root, work, _):
    need("cmake", "meson", "pkg-config")
    for library in ("libcurl", "libdeflate"):  # of its features
        if subprocess.run(["pkg-config", "--exists", library]).returncode != 0:
            print(f"{library} is not installed")
            sys.exit(77)
    port = json.loads((root / "src/packaging/vcpkg/vcpkg.json").read_text())
    version = re.search(r"^  version: '(.*?)'", (root / "meson.build").read_text(), re.MULTILINE)[1]
    if port["version"] != version:
        sys.exit(f"vcpkg.json has the version {port['version']}, and meson.build {version}")
    for number, features in enumerate(([], list(port["features"]))):
        (work / "port.cmake").write_text(f"""
            cmake_minimum_required(VERSION 3.24)
            set(PORT strobe)
            set(FEATURES {" ".join(features)})
            set(CURRENT_PACKAGES_DIR "{work}/packages")
            function(vcpkg_configure_meson)
              cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
              execute_process(COMMAND meson setup --wrap-mode=nodownload ${{arg_OPTIONS}} "{work}/{number}" "${{arg_SOURCE_PATH}}"
                              COMMAND_ERROR_IS_FATAL ANY)
            endfunction()
            function(vcpkg_install_meson)
            endfunction()
            function(vcpkg_fixup_pkgconfig)
            endfunction()
            include("{root}/src/packaging/vcpkg/portfile.cmake")
            """)
        run(["cmake", "-P", "port.cmake"], work)
        targets = {target["name"] for target in json.loads((work / str(number) / "meson-info/intro-targets.json").read_text())}
        if "strobe" not in targets or ("strobe-http" in targets) != ("http" in features):
            sys.exit(f"with the features {features} the port builds {sorted(targets)}")


def write_workspace(root, work):
    """A workspace with the consumer, and repositories beside it: Strobe by its build file, and Abseil and zlib as the system has them."""
    repositories = {"strobe": f'new_local_repository(name = "strobe", path = "{work}/tree", build_file = "//:strobe.BUILD")\n'}
    files = {"BUILD": 'cc_binary(name = "consumer", srcs = ["main.cc"], copts = ["-std=c++20"],\n'
                      '          deps = ["@strobe", "@strobe//:allocations", "@strobe//:worker"])\n'}
    for folder, rules in BUILT_IN_RULES.items():
        files[f"{folder}/BUILD"] = ""
        files[f"{folder}/defs.bzl"] = "".join(f"{rule} = native.{rule}\n" for rule in rules.split())
    files["zlib/BUILD"] = 'cc_library(name = "zlib", linkopts = ["-lz"], visibility = ["//visibility:public"])\n'
    for package, name in re.findall(r'"@abseil-cpp//absl/(\w+):?(\w*)"', (root / "src/packaging/bazel/strobe.BUILD").read_text()):
        file = f"abseil-cpp/absl/{package}/BUILD"
        files[file] = files.get(file, "") + f'cc_library(name = "{name or package}", visibility = ["//visibility:public"])\n'
    for name in sorted({file.split("/")[0] for file in files if "/" in file}):
        repositories[name] = f'local_repository(name = "{name}", path = "{name}")\n'
        files[f"{name}/WORKSPACE"] = ""
    files["WORKSPACE"] = "".join(repositories.values())
    for name, text in files.items():
        (work / "app" / name).parent.mkdir(parents=True, exist_ok=True)
        (work / "app" / name).write_text(text)
    shutil.copy(root / "src/packaging/bazel/strobe.BUILD", work / "app")
    shutil.copy(root / "tests/consumer/main.cc", work / "app")
    (work / "tree").mkdir()
    copy_tree(root, work / "tree")


def bazel(root, work, _):
    need("bazel")
    version = re.search(r"bazel (\d+)", run(["bazel", "--version"], work))  # Debian's has no number
    if version and int(version[1]) > NEWEST_BAZEL_WITH_WORKSPACE:
        print(f"the test's workspace is for bazel {NEWEST_BAZEL_WITH_WORKSPACE} or earlier, and this is {version[0]}")
        sys.exit(77)
    write_workspace(root, work)
    start = ["bazel", "--batch", f"--output_user_root={work}/output", "build", "--spawn_strategy=local"]
    libraries = [f"@strobe//:{name}" for name in ("strobe", "c", "locks", "process", "exceptions", "pull")]
    print(run([*start, "--nobuild", "//:consumer", *libraries], work / "app"))
    # The page is made, which shows that its parts are among the inputs.
    run([*start, "@strobe//:html_page"], work / "app")


def main():
    name, root, *compiler = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), *sys.argv[3:]
    with tempfile.TemporaryDirectory() as work:
        {"bazel": bazel, "conan": conan, "debian": debian, "vcpkg": vcpkg}[name](root, pathlib.Path(work), compiler)
    print(f"{name}: no failure")


if __name__ == "__main__":
    main()
