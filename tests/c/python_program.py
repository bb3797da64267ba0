"""Profiles itself by the example src/examples/bindings/strobe.py, and leaves a profile in the directory of the first argument."""
import _ctypes
import sys
import threading
import time
import zlib

import strobe


def check(is_true, what):
    if not is_true:
        sys.exit(what)


def refusal(function, *arguments):
    """The reason why the call fails."""
    try:
        function(*arguments)
    except strobe.Error as error:
        return str(error)
    return "no failure"


def work(seconds):
    """CPU time of the calling thread in native code."""
    data = bytes(range(256)) * 1000
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        zlib.compress(data, 9)


def work_as_thread():
    with strobe.thread("python worker"), strobe.label("step", "worker"), strobe.label("shard", 7):
        work(0.3)


def end_registered():
    strobe._call(strobe._library.strobe_register_thread, "forgetful")


def run_threads():
    worker = threading.Thread(target=work_as_thread)
    worker.start()
    # More threads than can be registered at a time: the end of each ends its registration.
    for _ in range(10):
        forgetful = threading.Thread(target=end_registered)
        forgetful.start()
        forgetful.join()
    worker.join()


def main(directory):
    check("no session runs" in refusal(strobe.stop), "a stop without a session")
    check('"nonsense=1" is not an option' in refusal(strobe.start, {"nonsense": 1}), "a wrong option")
    with strobe.profile("python main", {"exporter.directory": directory, "threads.max_threads": 6, "sampling.max_overhead": 1}):
        check("already" in refusal(strobe.start), "a second session")
        with strobe.label("step", "main"), strobe.zone("compression"):
            work(0.3)
        # Who closes the library has not unloaded it: the session goes on.
        _ctypes.dlclose(strobe._library._handle)
        with open("/proc/self/maps") as maps:
            check("libstrobe-c.so" in maps.read(), "the library is unloaded while a session runs")
        run_threads()
    check("not registered" in refusal(strobe._call, strobe._library.strobe_unregister_thread), "the thread after the session")


main(sys.argv[1])
