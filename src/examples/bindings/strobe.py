"""Strobe from Python: profiles of the native code that a Python program runs. Needs libstrobe-c.so.0 and nothing else.

    import strobe

    with strobe.profile("main", {"exporter.directory": "profiles"}):
        with strobe.label("endpoint", "/pay"):
            serve()

The loader finds the library where it finds others: in the system's folders, or by LD_LIBRARY_PATH. Each further thread is sampled while
it is in a `with strobe.thread("name"):`. A call that fails raises strobe.Error, whose text is the reason.
"""
import contextlib
import ctypes

STATUS_BYTES = 512

_library = ctypes.CDLL("libstrobe-c.so.0")
for _name, _arguments in {"start": [ctypes.c_char_p], "stop": [], "flush": [], "register_thread": [ctypes.c_char_p], "unregister_thread": [],
                          "push_text_label": [ctypes.c_char_p, ctypes.c_char_p], "push_number_label": [ctypes.c_char_p, ctypes.c_int64],
                          "push_zone": [ctypes.c_char_p], "pop_label": [], "last_status": [ctypes.c_char_p, ctypes.c_size_t]}.items():
    getattr(_library, "strobe_" + _name).argtypes = _arguments


class Error(RuntimeError):
    """A call that has failed. `code` is a strobe_code of strobe/c.h."""

    def __init__(self, code, reason):
        super().__init__(reason)
        self.code = code


def _call(function, *arguments):
    code = function(*(argument.encode() if isinstance(argument, str) else argument for argument in arguments))
    if code != 0:
        reason = ctypes.create_string_buffer(STATUS_BYTES)
        _library.strobe_last_status(reason, STATUS_BYTES)
        raise Error(code, reason.value.decode(errors="replace"))


def start(options=None):
    """Begins a session. `options` has fields and values of src/docs/options.md. Only the first call of a process may have some."""
    lines = [f"{field}={int(value) if isinstance(value, bool) else value}" for field, value in (options or {}).items()]
    _call(_library.strobe_start, "\n".join(lines) or None)


def stop():
    """Ends the session, and returns when its profile is exported."""
    _call(_library.strobe_stop)


def flush():
    """Exports what has been sampled so far. The session goes on."""
    _call(_library.strobe_flush)


@contextlib.contextmanager
def _pair(begin, end):
    begin()
    try:
        yield
    finally:
        end()


def thread(name):
    """Samples the calling thread, as `name`, in a `with`."""
    return _pair(lambda: _call(_library.strobe_register_thread, name), lambda: _call(_library.strobe_unregister_thread))


@contextlib.contextmanager
def profile(name, options=None):
    """A session in a `with`, with the calling thread registered as `name`."""
    with _pair(lambda: start(options), stop), thread(name):
        yield


def label(key, value):
    """Samples of the calling thread have the label in a `with`. `value` is a text or a number."""
    push = _library.strobe_push_number_label if isinstance(value, int) else _library.strobe_push_text_label
    return _pair(lambda: _call(push, key, value), lambda: _call(_library.strobe_pop_label))


def zone(name):
    """The calling thread is in a zone in a `with`. Zones nest."""
    return _pair(lambda: _call(_library.strobe_push_zone, name), lambda: _call(_library.strobe_pop_label))
