#!/usr/bin/env python3
"""The shared library of the C interface, as languages use it that load libraries by name.

  bindings_test.py exports SOURCE_ROOT LIBRARY STROBE      it exports what strobe/c.h declares, and stays loaded
  bindings_test.py declarations SOURCE_ROOT LIBRARY STROBE the examples declare each function as strobe/c.h does
  bindings_test.py python SOURCE_ROOT LIBRARY STROBE       the example of Python; lua and rust likewise

STROBE is the command, which reads the profiles. Exit status 77, with the reason, where the language is not here.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
from until_seen import work_until  # noqa: E402

TIMEOUT_S = 100


def run(command, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STROBE_")} | variables
    result = subprocess.run([str(part) for part in command], env=environment, capture_output=True, text=True, timeout=TIMEOUT_S)
    if result.returncode != 0:
        sys.exit(f"{command}: exit status {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


def check_exports(root, library):
    declared = set(c_functions((root / "include/strobe/c.h").read_text()))
    exported = {line.split()[-1] for line in run(["nm", "-D", "--defined-only", library]).splitlines()}
    if exported != declared or not declared:
        sys.exit(f"exported alone: {sorted(exported - declared)}; declared alone: {sorted(declared - exported)}")
    dynamic = run(["readelf", "-d", "-W", library])
    for words in ("Library soname: [libstrobe-c.so.0]", "NODELETE"):
        if words not in dynamic:
            sys.exit(f"the library does not have {words}:\n{dynamic}")


# The types of parameters in strobe/c.h, and what Rust and Python call them.
TYPES = {"const char*": ("*const c_char", "c_char_p"), "char*": ("*mut c_char", "c_char_p"), "int64_t": ("i64", "c_int64"),
         "size_t": ("usize", "c_size_t")}


def c_functions(text):
    """The parameters' types of each function that C declares in the text."""
    functions = {}
    for name, parameters in re.findall(r"^\s*int (strobe_\w+)\((.*)\);", text, re.MULTILINE):
        types = [re.sub(r"\s*\w+$", "", parameter.strip()) for parameter in parameters.split(",")]
        functions[name] = [] if parameters == "void" else types
    return functions


def check_declarations(root):
    header, bindings = (root / "include/strobe/c.h").read_text(), root / "src/examples/bindings"
    texts = {name: (bindings / name).read_text() for name in ("strobe.lua", "rust/src/lib.rs", "strobe.py")}
    functions = c_functions(header)
    declared = {"strobe.lua": c_functions(texts["strobe.lua"]), "rust/src/lib.rs": {}, "strobe.py": {}}
    for name, parameters in re.findall(r"fn (strobe_\w+)\((.*)\) -> c_int;", texts["rust/src/lib.rs"]):
        declared["rust/src/lib.rs"][name] = [parameter.split(": ")[1] for parameter in parameters.split(", ") if parameter]
    for name, parameters in re.findall(r'"(\w+)": \[(.*?)\]', texts["strobe.py"]):
        declared["strobe.py"]["strobe_" + name] = [parameter.removeprefix("ctypes.") for parameter in parameters.split(", ") if parameter]
    expected = {"strobe.lua": functions}
    for place, name in enumerate(("rust/src/lib.rs", "strobe.py")):
        expected[name] = {function: [TYPES[one][place] for one in types] for function, types in functions.items()}
    status_bytes = re.search(r"STROBE_STATUS_BYTES = (\d+)", header)[1]
    for name, text in texts.items():
        if declared[name] != expected[name] or not functions:
            sys.exit(f"{name} declares {declared[name]}\nstrobe/c.h {expected[name]}")
        if not re.search(rf"STATUS_BYTES(: usize)? = {status_bytes}\b", text):
            sys.exit(f"{name} does not have the {status_bytes} of STROBE_STATUS_BYTES")


def find(name, package):
    path = shutil.which(name)
    if not path:
        print(f"SKIP: there is no {name} ({package})")
        sys.exit(77)
    return path


def python_command(root, library, scratch):
    return [sys.executable, root / "tests/c/python_program.py"], {"PYTHONPATH": str(root / "src/examples/bindings"), "PYTHONDONTWRITEBYTECODE": "1"}


def lua_command(root, library, scratch):
    return [find("luajit", "luajit"), root / "tests/c/lua_program.lua"], {"LUA_PATH": f"{root}/src/examples/bindings/?.lua;;"}


def rust_command(root, library, scratch):
    cargo, target = find("cargo", "cargo"), scratch / "target"
    # A copy, because cargo writes a file beside the crate's own.
    shutil.copytree(root / "src/examples/bindings/rust", scratch / "crate")
    run([cargo, "build", "--quiet", "--offline", "--example", "sum", "--manifest-path", scratch / "crate/Cargo.toml"],
        STROBE_C_FOLDER=str(library.parent), CARGO_TARGET_DIR=str(target), RUSTFLAGS="-Dwarnings")
    return [target / "debug/examples/sum"], {}


# By language: what begins its program, and the filters that a sample of the profile passes.
LANGUAGES = {
    "python": (python_command, [["--thread", "python main", "--label", "step=main"],
                                ["--thread", "python worker", "--label", "step=worker", "--label", "shard=7"]]),
    "lua": (lua_command, [["--thread", "lua main", "--label", "step=main"]]),
    "rust": (rust_command, [["--thread", "main", "--label", "step=sum", "--focus", "add_numbers"]]),
}


def unseen_filters(strobe, profile, filters):
    """The filters that leave no row of a function."""
    unseen = set()
    for options in filters:
        command = [strobe, "top", *options, profile]
        result = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=TIMEOUT_S)
        # A row of a function has its share of the total, and is no mark in brackets.
        rows = [line for line in result.stdout.splitlines() if re.match(r"\s*[\d.]+ ?\S*\s+[\d.]+ ?%", line) and not line.rstrip().endswith("]")]
        if not rows:
            unseen.add(" ".join(options))
            print(" ".join(str(part) for part in command), result.stdout, result.stderr, sep="\n")
    return unseen


def check_language(name, root, library, strobe):
    make_command, filters = LANGUAGES[name]
    unseen_by_runs = []
    with tempfile.TemporaryDirectory(prefix="strobe_bindings_") as scratch:
        command, variables = make_command(root, library, pathlib.Path(scratch))

        def run_once():
            with tempfile.TemporaryDirectory(prefix="strobe_bindings_") as directory:
                run([*command, directory], LD_LIBRARY_PATH=str(library.parent), **variables)
                profiles = list(pathlib.Path(directory).glob("*.pb.gz"))
                if len(profiles) != 1:
                    sys.exit(f"one session leaves one profile: {profiles}")
                return unseen_filters(strobe, profiles[0], filters)

        def are_seen(unseen):
            unseen_by_runs.append(unseen)
            return not set.intersection(*unseen_by_runs)

        work_until(are_seen, run_once, "a sample for each of the filters")


def main(part, root, library, *strobe):
    root, library = pathlib.Path(root), pathlib.Path(library).absolute()
    if part == "exports":
        check_exports(root, library)
    elif part == "declarations":
        check_declarations(root)
    else:
        check_language(part, root, library, *strobe)


if __name__ == "__main__":
    main(*sys.argv[1:])
