#!/usr/bin/env python3
"""handler_gate.py on small programs: handler_gate_test.py COMPILER..."""
import pathlib
import platform
import subprocess
import sys
import tempfile
import unittest

GATE = pathlib.Path(__file__).with_name("handler_gate.py")
COMPILER = ["g++"]
PRELUDE = """#include <cstdlib>
#include <cstring>
#include <ctime>
#define NOINLINE __attribute__((noinline))
volatile int sink;
"""
ALLOW = "walk ^ours:: # checked\nleaf ^clock_gettime # vDSO\n"


def gate(source, allow=ALLOW, roots=("ours::Handler",), flags=("-O2",)):
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        (work / "program.cc").write_text(PRELUDE + source + "\nint main() { ours::Handler(3); }\n")
        (work / "allow.txt").write_text(allow)
        subprocess.run([*COMPILER, "-std=c++20", *flags, work / "program.cc", "-o", work / "program"], check=True)
        result = subprocess.run([sys.executable, GATE, work / "program", work / "allow.txt", *roots], text=True, capture_output=True)
        return result.returncode, result.stdout + result.stderr


class HandlerGateTest(unittest.TestCase):
    def accepts(self, source, **options):
        status, output = gate(source, **options)
        self.assertEqual(status, 0, output)
        self.assertIn("the handler calls nothing off its list", output)

    def reports(self, violation, source, **options):
        status, output = gate(source, **options)
        self.assertEqual(status, 1, output)
        self.assertIn(violation, output)

    def test_good_handler(self):
        self.accepts("""namespace ours {
          NOINLINE int Leaf(int a) { sink = a; return a + 1; }
          NOINLINE void Handler(int a) { timespec t; clock_gettime(CLOCK_MONOTONIC, &t); sink = Leaf(a) + int(t.tv_nsec); } }""")

    def test_switch_is_no_call_through_a_pointer(self):
        cases = "".join(f"case {i}: sink = {i * i * 7919 % 1000}; sink = {i}; {'sink = a;' * (i % 3)} break;" for i in range(24))
        self.accepts("namespace ours { NOINLINE void Handler(int a) { switch (a) { " + cases + " } } }")

    def test_malloc_deep_inside(self):
        source = """namespace ours {
          NOINLINE void Deep(int a) { void* volatile p = malloc(a); sink = p != nullptr; }
          NOINLINE void Middle(int a) { Deep(a); sink = a; }
          NOINLINE void Handler(int a) { Middle(a); sink = a; } }"""
        self.reports("call to malloc, which the list does not allow: ours::Handler(int) -> ours::Middle(int) -> ours::Deep(int) -> malloc", source)
        self.reports("-> malloc", source, flags=("-O2", "-fno-plt"))
        self.reports("-> malloc", source, flags=("-O0",))

    def test_tail_call(self):
        self.reports("call to abort", "namespace ours { NOINLINE void Handler(int a) { sink = a; abort(); } }")

    def test_own_function_that_is_not_on_the_list(self):
        self.reports("call to theirs::F", """namespace theirs { NOINLINE void F(int a) { sink = a; } }
          namespace ours { NOINLINE void Handler(int a) { theirs::F(a); sink = a; } }""")

    def test_call_through_a_pointer(self):
        source = "namespace ours { void (*volatile pointer)(int); NOINLINE void Handler(int a) { pointer(a); sink = a; } }"
        self.reports("call through a pointer", source)
        self.accepts(source, allow=ALLOW + "indirect ^ours::Handler # a test\n")

    def test_tail_call_through_a_pointer(self):
        self.reports("call through a pointer", "namespace ours { void (*volatile pointer)(int); NOINLINE void Handler(int a) { pointer(a); } }")

    def test_virtual_call(self):
        self.reports("call through a pointer", """namespace ours { struct V { virtual void F() = 0; }; V* volatile object;
          NOINLINE void Handler(int a) { object->F(); sink = a; } }""")

    def test_system_call_instruction(self):
        source = """namespace ours { NOINLINE void Handler(int a) { long r;
          asm volatile("syscall" : "=a"(r) : "a"(39) : "rcx", "r11", "memory"); sink = int(r) + a; } }"""
        if subprocess.run([*COMPILER, "-dumpmachine"], text=True, capture_output=True).stdout.startswith("x86_64"):
            self.reports("system call instruction", source)
            self.accepts(source, allow=ALLOW + "syscall ^ours::Handler # a test\n")

    @unittest.skipUnless(platform.machine() == "x86_64", "frames are measured on x86-64 only")
    def test_stack(self):
        source = """namespace ours {
          NOINLINE void Deep(int a) { volatile char bytes[3000]; bytes[a] = 1; sink = a; }
          NOINLINE void Middle(int a) { volatile char bytes[3000]; Deep(a); bytes[a] = 1; sink = a; }
          NOINLINE void Handler(int a) { Middle(a); sink = a; } }"""
        self.accepts(source, allow=ALLOW + "stack 6400 # a test\n")
        self.reports("bytes of stack, where 6000 are allowed: ours::Handler(int)", source, allow=ALLOW + "stack 6000 # a test\n")

    @unittest.skipUnless(platform.machine() == "x86_64", "frames are measured on x86-64 only")
    def test_stack_of_what_is_called_through_a_pointer(self):
        source = """namespace ours { void (*volatile pointer)(int);
          NOINLINE void Called(int a) { volatile char bytes[3000]; bytes[a] = 1; sink = a; }
          NOINLINE void Handler(int a) { pointer(a); sink = a; } int keep = (pointer = Called, 0); }"""
        self.reports("where 3000 are allowed", source, allow=ALLOW + "indirect ^ours::Handler # a test\nstack 3000 # a test\n",
                     roots=("ours::Handler", "ours::Called"))

    @unittest.skipUnless(platform.machine() == "x86_64", "frames are measured on x86-64 only")
    def test_stack_without_bounds(self):
        self.reports("a stack without bounds", """namespace ours {
          NOINLINE void Handler(int a) { volatile char bytes[100]; bytes[a] = 1; if (a > 0) Handler(a / 2); sink = bytes[a]; } }""",
                     flags=("-O1",))
        self.reports("a stack without bounds", """namespace ours {
          NOINLINE void Handler(int a) { auto* bytes = static_cast<volatile char*>(__builtin_alloca(a)); bytes[a] = 1; sink = a; } }""")

    def test_lazy_thread_local_storage(self):
        status, output = self.shared_library_with_tls("")
        self.assertEqual(status, 1, output)
        self.assertIn("thread-local storage that is allocated when first touched", output)

    def test_static_thread_local_storage(self):
        status, output = self.shared_library_with_tls('__attribute__((tls_model("initial-exec")))')
        self.assertEqual(status, 0, output)

    def shared_library_with_tls(self, attribute):
        source = f"namespace ours {{ thread_local int counter {attribute}; NOINLINE void Handler(int a) {{ counter += a; }} }}"
        return gate(source, flags=("-O2", "-fPIC", "-shared", "-Wl,-z,now"))

    def test_root_that_is_not_there(self):
        self.reports("no function matches the root ours::Gone", "namespace ours { NOINLINE void Handler(int a) { sink = a; } }",
                     roots=("ours::Handler", "ours::Gone"))

    def test_line_without_a_reason(self):
        status, output = gate("namespace ours { NOINLINE void Handler(int a) { sink = a; } }", allow="walk ^ours::\n")
        self.assertEqual(status, 1)
        self.assertIn("allow.txt:1: wanted", output)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        COMPILER = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
