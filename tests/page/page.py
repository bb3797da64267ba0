#!/usr/bin/env python3
"""Tests the page of HtmlEncoder in a real browser, headless Chromium, driven by npm's playwright-core.

  page.py browser PAGES NODE_MODULES [SUBJECT...]   runs the cases of *_test.mjs with the pages that write_pages wrote into PAGES
  page.py script NODE_MODULES                       checks the page's script: by node's parser, and by TypeScript's compiler

What npm gives goes to NODE_MODULES. Skips (77) without Chromium, node or npm; pictures of the page stay in PAGES/pictures.
"""
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = SOURCE / "src/encode/html/page"
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER_PACKAGES = ("playwright-core@1", "axe-core@4")
SCRIPT_PACKAGES = ("typescript@5",)
NPM_TIMEOUT_S = 300
TYPE_OPTIONS = {"allowJs": True, "checkJs": True, "noEmit": True, "strict": True, "noImplicitAny": False, "target": "es2022",
                "lib": ["es2023", "dom", "dom.iterable"], "types": []}


def skip(reason):
    print(reason)
    sys.exit(77)


def find(*names):
    path = next((found for name in names if (found := shutil.which(name))), None)
    if not path:
        skip(f"no {names[0]} on this machine")
    return path


def install(directory, packages):
    """Whether the packages are in the directory now."""
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another test may install there at the same time
        if all((directory / "node_modules" / package.rsplit("@", 1)[0]).exists() for package in packages):
            return True
        (directory / "package.json").write_text("{}\n")
        command = [find("npm"), "install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", *packages]
        try:
            result = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=NPM_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            return False
        if result.returncode != 0:
            print(result.stderr[-1000:])
        return result.returncode == 0


def run_browser(pages, modules, subjects):
    node, chromium = find("node", "nodejs"), find(os.environ.get("STROBE_CHROMIUM", ""), *CHROMIUMS)
    if not install(modules, BROWSER_PACKAGES) and not install(modules, BROWSER_PACKAGES[:1]):
        skip("npm could not install playwright-core")
    (pages / "pictures").mkdir(exist_ok=True)
    environment = dict(os.environ, STROBE_PAGES=str(pages), STROBE_NODE_MODULES=str(modules), STROBE_CHROMIUM=chromium,
                       STROBE_SOURCE=str(SOURCE))
    sys.exit(subprocess.run([node, "all_tests.mjs", *subjects], cwd=pathlib.Path(__file__).parent, env=environment, check=False).returncode)


def check_script(modules):
    node = find("node", "nodejs")
    scripts = sorted(SCRIPTS.glob("*.js"))
    tests = sorted((SOURCE / "tests/page").glob("*.mjs"))
    failed = [path.name for path in [*scripts, *tests] if subprocess.run([node, "--check", path], check=False).returncode != 0]
    long = [f"{path.relative_to(SOURCE)}:{number}" for path in [*scripts, *tests, SCRIPTS / "page.css"]
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if len(line) > 100]
    if long:
        print("more than 100 columns: " + " ".join(long))
    if install(modules, SCRIPT_PACKAGES):
        compiler = modules / "node_modules/typescript/bin/tsc"
        project = modules / "tsconfig.json"
        project.write_text(json.dumps({"compilerOptions": TYPE_OPTIONS, "files": [str(path) for path in scripts]}))
        types = subprocess.run([node, compiler, "--project", project], check=False).returncode
    else:
        print("skipped: typescript (npm could not install it)")
        types = 0
    print(f"{len(scripts)} scripts and {len(tests)} tests are checked")
    sys.exit(1 if failed or long or types else 0)


def main():
    kind, *arguments = sys.argv[1:]
    if kind == "browser":
        pages, modules = (pathlib.Path(argument).resolve() for argument in arguments[:2])
        run_browser(pages, modules, arguments[2:])
    else:
        check_script(pathlib.Path(arguments[0]).resolve())


if __name__ == "__main__":
    main()
