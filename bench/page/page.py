#!/usr/bin/env python3
"""How long a page of 100,000 stacks takes until its first picture in headless Chromium, and a frame while it zooms; speedscope beside it, given
the same profile as pprof.

  page.py SOURCE BUILD      as bench/run.sh calls it
"""
import os
import pathlib
import subprocess
import sys


def main():
    root, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    sys.path.insert(0, str(root / "tests/page"))
    import page as tests  # what installs and finds the browser for the tests

    program = build / "bench/page/bench_page"
    pages, modules = build / "page", build / "page_npm"
    pages.mkdir(exist_ok=True)
    node, chromium = tests.find("node", "nodejs"), tests.find(*tests.CHROMIUMS)
    if not tests.install(modules, ("playwright-core@1", "speedscope@1")) and not tests.install(modules, ("playwright-core@1",)):
        sys.exit("npm could not install playwright-core")
    subprocess.run([program, pages], check=True)
    environment = dict(os.environ, STROBE_PAGES=str(pages), STROBE_NODE_MODULES=str(modules), STROBE_CHROMIUM=chromium)
    sys.exit(subprocess.run([node, root / "bench/page/measure.mjs"], env=environment, check=False).returncode)


if __name__ == "__main__":
    main()
