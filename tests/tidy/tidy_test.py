#!/usr/bin/env python3
"""tidy.py must find each violation in a tree that has it, and nothing in one that has none."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TIDY = pathlib.Path(__file__).with_name("tidy.py")
GOOD = {
    "include/strobe/ring/good.h": '#pragma once\n#include "strobe/base/low.h"\nnamespace strobe {\ninline int F() { return 1; }\n}\n',
    "include/strobe/base/low.h": "#pragma once\nnamespace strobe::internal {}\n",
    "tests/ring/good_test.cc": '// A test.\n#include "strobe/ring/good.h"\n',
    "tests/base/low_test.cc": '#include "strobe/base/low.h"\n',
}


def long_function(lines):
    return "\n".join(["namespace strobe {", "int Run(int a) {", *["  a += 1;"] * (lines - 3), "  return a;", "}", "}", ""])


def run(extra, *arguments):
    with tempfile.TemporaryDirectory() as directory:
        for name, text in (GOOD | extra).items():
            path = pathlib.Path(directory, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace("%s", directory))
        result = subprocess.run([sys.executable, TIDY, directory, *arguments], text=True, capture_output=True)
        return result.returncode, result.stdout + result.stderr


class TidyTest(unittest.TestCase):
    def accepts(self, extra, *arguments):
        status, output = run(extra, *arguments)
        self.assertEqual(status, 0, output)

    def reports(self, violation, extra, *arguments):
        status, output = run(extra, *arguments)
        self.assertEqual(status, 1, output)
        self.assertIn(violation, output)
        self.assertEqual(len(output.strip().splitlines()), 1, output)

    def test_good_tree(self):
        self.accepts({})

    def test_a_function_of_two_files_of_a_library(self):
        def defined(function):
            return f"namespace strobe {{\nnamespace {{\n{function} {{\n  return;\n}}\n}}  // namespace\n}}\n"
        violation = "Run(int a) is a function of "
        self.reports(violation, {"src/base/a.cc": defined("void Run(int a)"), "src/unwind/b.cc": defined("int Run(int a)")})
        self.reports(violation, {"tests/base/a_test.cc": defined("void Run(int a)"), "tests/base/b_test.cc": defined("void Run(int a)")})
        self.accepts({"src/base/a.cc": defined("void Run(int a)"), "src/unwind/b.cc": defined("void Run(long a)")})
        self.accepts({"src/base/a.cc": defined("void A::Run(int a)"), "src/unwind/b.cc": defined("void B::Run(int a)")})
        self.accepts({"tests/base/a_test.cc": defined("TEST(F, A)"), "tests/base/b_test.cc": defined("TEST(F, A)")})

    def test_a_name_of_two_files_of_a_library(self):
        def named(definition, space="strobe::internal"):
            return f"namespace {space} {{\nnamespace {{\n{definition}\n}}  // namespace\n}}\n"
        for one, other in (("constexpr int kMost = 1;", "constexpr long kMost = 2;"), ("struct Part {", "class Part final : public Other {"),
                           ("using Part = int;", "using Part = long;"), ("constinit std::atomic<int> parts{0};", "constinit int parts = 0;")):
            self.reports("is a name of src/base/a.cc, too", {"src/base/a.cc": named(one), "src/unwind/b.cc": named(other)})
            self.reports("is a name of src/base/a.cc, too",
                         {"src/base/a.cc": named("void First() {\n}\n" + one), "src/unwind/b.cc": named(other)})
            self.accepts({"src/http/a.cc": named(one), "src/unwind/b.cc": named(other)})
            self.accepts({"src/base/a.cc": named(one), "src/unwind/b.cc": named(other, "strobe")})
            self.accepts({"src/platform/linux/a.cc": named(one), "src/platform/windows/b.cc": named(other)})
        self.accepts({"src/base/a.cc": named("using Part = int;"), "src/unwind/b.cc": named("using Part = int;")})

    def test_include_of_a_higher_folder(self):
        self.reports("src/base/a.cc:2: base/ must not include strobe/ring/good.h",
                     {"src/base/a.cc": '\n#include "strobe/ring/good.h"\n'})

    def test_include_of_a_neighbour(self):
        self.reports("must not include strobe/ring/good.h", {"src/unwind/a.cc": '#include "strobe/ring/good.h"\n'})

    def test_include_of_a_private_neighbour(self):
        self.reports("must not include src/symbolize/elf.h", {"src/encode/a.cc": '#include "src/symbolize/elf.h"\n'})

    def test_include_of_a_higher_folder_by_a_relative_path(self):
        self.reports("must not include ../../worker/linux/a.h", {"src/http/linux/a.cc": '#include "../../worker/linux/a.h"\n'})
        self.accepts({"src/worker/linux/a.cc": '#include "../../http/linux/a.h"\n'})

    def test_include_of_the_worker(self):
        self.reports("src/http/a.cc:1: http/ must not include strobe/worker/a.h", {"src/http/a.cc": '#include "strobe/worker/a.h"\n'})

    def test_folder_without_a_rank(self):
        self.reports("src/misc/a.cc:1: misc/ has no rank", {"src/misc/a.cc": "\n"})

    def test_room_that_is_not_known(self):
        self.reports("src/runtime/misc/a.cc:1: runtime/ has no room misc", {"src/runtime/misc/a.cc": "\n"})
        self.reports("src/base/misc/a.cc:1: base/ has no room misc", {"src/base/misc/a.cc": "\n"})
        self.reports("has no room drain/misc", {"src/runtime/drain/misc/a.cc": "\n"})

    def test_include_of_a_higher_room(self):
        for target in ("strobe/runtime/session/a.h", "../session/a.h", "src/runtime/session/a.h"):
            self.reports(f"src/runtime/drain/a.cc:1: runtime/drain/ must not include {target}", {"src/runtime/drain/a.cc": f'#include "{target}"\n'})
        self.reports("cli/ui/ must not include record/a.h", {"src/cli/ui/a.cc": '#include "record/a.h"\n'})

    def test_include_of_a_lower_room(self):
        self.accepts({"src/runtime/session/a.cc": '#include "strobe/runtime/drain/a.h"\n#include "../threads/a.h"\n',
                      "src/cli/record/linux/a.cc": '#include "ui/a.h"\n#include "../a.h"\n',
                      "src/cli/main.cc": '#include "record/a.h"\n'})

    def test_full_folder(self):
        self.reports("src/ring:1: 23 files (at most 22)", {f"src/ring/{name}.cc": "\n" for name in range(23)})

    def test_include_of_the_root_by_a_layer(self):
        self.reports("must not include strobe/strobe.h", {"src/runtime/a.cc": '#include <strobe/strobe.h>\n'})

    def test_examples_may_include_all(self):
        self.accepts({"src/examples/a.cc": '#include "strobe/ring/good.h"\n#if defined(__linux__)\n#endif\n'})

    def test_system_macro(self):
        self.reports("src/ring/a.cc:1: __linux__", {"src/ring/a.cc": "#if defined(__linux__)\n#endif\n"})

    def test_processor_macro(self):
        self.reports("src/ring/a.cc:2: __x86_64__", {"src/ring/a.cc": "\n#ifdef __x86_64__\n#endif\n"})

    def test_system_macro_where_it_belongs(self):
        self.accepts({"src/platform/a.cc": "#ifdef __linux__\n#endif\n", "src/arch/a.cc": "#ifdef __aarch64__\n#endif\n"})

    def test_register(self):
        self.reports("src/ring/a.cc:1: rbx is a register", {"src/ring/a.cc": "int rbx = 0;  // rax\n"})
        self.reports("src/ring/a.cc:1: kRbp is a register", {"src/ring/a.cc": "constexpr int kRbp = 5;\n"})

    def test_register_where_it_belongs(self):
        self.accepts({"src/arch/a.cc": "int rbx = 0;\n", "src/ring/a.cc": "int a = kX86_64Rbx + X86_64Encoding::kRbx;\n"})

    def test_system_macro_in_a_comment(self):
        self.accepts({"src/ring/a.cc": "// #if __linux__\n/*\n#if __linux__\n*/\n"})

    def test_retired_word(self):
        self.reports("src/runtime/a.cc:1: SlotArena is no word", {"src/runtime/a.cc": "class SlotArena;  // Slot\n"})
        self.reports("src/cli/a.cc:1: Paper is no word of this tree any more: Printer", {"src/cli/a.cc": "class Paper;\n"})
        self.accepts({"src/core/a.cc": "struct Slot {};\n", "src/cli/a.cc": "class Papers;\n"})

    def test_wide_line(self):
        self.reports("tests/ring/a.cc:2: 101 columns", {"tests/ring/a.cc": "\n//" + "a" * 99 + "\n"})

    def test_line_of_100_columns(self):
        self.accepts({"src/ring/a.cc": "//" + "a" * 98 + "\n"})

    def test_long_file(self):
        self.reports("441 lines", {"src/ring/a.cc": "\n" * 441})

    def test_long_file_with_a_reason(self):
        self.accepts({"src/ring/a.cc": "// 441 lines long because of a table.\n" + "\n" * 440})

    def test_function_of_51_lines(self):
        self.reports("src/ring/a.cc:2: function of 51 lines", {"src/ring/a.cc": long_function(51)})

    def test_function_of_50_lines(self):
        self.accepts({"src/ring/a.cc": long_function(50)})

    def test_long_class_is_no_function(self):
        members = "".join(f"  int F{i}() {{ return {i}; }}\n" for i in range(100))
        self.accepts({"src/ring/a.cc": "namespace strobe {\nclass C final : public B {\n" + members + "};\n}\n"})

    def test_long_table_is_no_function(self):
        self.accepts({"src/ring/a.cc": "namespace {\nconst int kTable[] = {\n" + "  F(1),\n" * 100 + "};\n}\n"})

    def test_member_function_of_51_lines(self):
        self.reports("src/ring/a.cc:3: function of 52 lines", {
            "src/ring/a.cc": "namespace strobe {\nclass C {\n  C(int a) : a_(a), b_{1} {\n" + "    ++a_;  // }\n" * 50 + "  }\n};\n}\n"})

    def test_brace_in_a_string_and_a_digit_separator(self):
        self.accepts({"src/ring/a.cc": 'namespace strobe {\nconst char* F() { return "{"; }\nint n = 1\'000;\nchar c = \'{\';\n}\n' + "\n" * 80})

    def test_namespace(self):
        self.reports("src/ring/a.cc:1: namespace strobe::detail", {"src/ring/a.cc": "namespace strobe::detail {}\n"})

    def test_header_without_guard(self):
        self.reports("no #pragma once", {"include/strobe/ring/bad.h": "", "tests/ring/bad_test.cc": '#include "strobe/ring/bad.h"\n'})

    def test_header_without_test(self):
        self.reports("tests/ring/bad_test.cc is missing", {"include/strobe/ring/bad.h": "#pragma once\n"})

    def test_public_header_without_test(self):
        self.reports("tests/root/strobe_test.cc is missing", {"include/strobe/strobe.h": "#pragma once\n"})

    def test_test_that_includes_another_header_first(self):
        test = '#include <vector>\n#include "strobe/ring/good.h"\n'
        self.reports("tests/ring/good_test.cc:1: does not include strobe/ring/good.h first", {"tests/ring/good_test.cc": test})

    def test_private_header_without_test(self):
        self.reports("src/ring/a.h:1: no test includes it", {"src/ring/a.h": "", "tests/ring/a.cc": '#include "../../src/ring/a.h"\n'})
        self.reports("src/ring/a.h:1: no test includes it", {"src/ring/a.h": "", "tests/ring/a_test.cc": '#include "a.h"\n'})

    def test_private_header_with_a_test(self):
        self.accepts({"src/ring/a.h": "", "tests/ring/a_test.cc": '#include "../../src/ring/a.h"\n'})
        self.accepts({"src/ring/linux/a.h": "", "tests/ring/b_test.cc": '#include <vector>\n#include "ring/linux/a.h"\n'})

    def test_format(self):
        if not shutil.which("clang-format-14"):
            self.skipTest("clang-format-14 is not installed")
        style = {".clang-format": "BasedOnStyle: Google\n", "include/strobe/ring/good.h": "#pragma once\n"}
        self.reports("src/ring/a.cc", style | {"src/ring/a.cc": "int  a;\n"}, "format", "clang-format-14")
        self.accepts(style | {"src/ring/a.cc": "int a;\n"}, "format", "clang-format-14")

    def test_missing_tool_is_a_skip(self):
        status, output = run({}, "format", "no-such-tool")
        self.assertEqual((status, output.strip()), (77, "no-such-tool is not installed"))


if __name__ == "__main__":
    unittest.main()
