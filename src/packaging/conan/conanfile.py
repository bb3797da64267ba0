"""Strobe for Conan 2: `conan create src/packaging/conan`. CMake's find_package(strobe) gives the targets that an installation gives."""
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.env import Environment, VirtualBuildEnv
from conan.tools.files import copy, load
from conan.tools.gnu import PkgConfigDeps
from conan.tools.layout import basic_layout
from conan.tools.meson import Meson, MesonToolchain


class StrobeRecipe(ConanFile):
    name = "strobe"
    description = "Sampling profiler for C++"
    license = "Apache-2.0"
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"enabled": [True, False], "http": [True, False], "libdeflate": [True, False], "pull": [True, False]}
    default_options = {"enabled": True, "http": False, "libdeflate": True, "pull": True}

    def _root(self):
        return os.path.join(self.recipe_folder, "..", "..", "..")

    def set_version(self):
        self.version = re.search(r"^  version: '(.*?)'", load(self, os.path.join(self._root(), "meson.build")), re.MULTILINE)[1]

    def export_sources(self):
        for pattern in ("meson.build", "meson_options.txt", "src/*", "include/*", "subprojects/*.wrap", "subprojects/packagefiles/*"):
            copy(self, pattern, self._root(), self.export_sources_folder, excludes="*/__pycache__/*")

    def layout(self):
        basic_layout(self)

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("the recipe builds for Linux")
        if self.settings.compiler.get_safe("cppstd"):
            check_min_cppstd(self, 20)

    def requirements(self):
        self.requires("abseil/[>=20220623]", transitive_headers=True, transitive_libs=True)
        self.requires("zlib/[>=1.2.11 <2]", transitive_libs=True)
        if self.options.libdeflate:
            self.requires("libdeflate/[>=1.7]", transitive_libs=True)
        if self.options.http:
            self.requires("libcurl/[>=7.68]", transitive_libs=True)

    def generate(self):
        VirtualBuildEnv(self).generate()
        dependencies = PkgConfigDeps(self)
        dependencies.generate()
        # src/package/meson.build asks pkg-config too.
        environment = Environment()
        environment.prepend_path("PKG_CONFIG_PATH", self.generators_folder)
        environment.vars(self).save_script("conanbuild_pkg_config")
        toolchain = MesonToolchain(self)
        # The command, the tests and the examples are for those who build Strobe itself. The profiler is optimised in each build type.
        toolchain.project_options |= {"buildtype": "release", "unity": "on", "unity_size": 20, "libdir": "lib", "tests": False, "examples": False,
                                      "cli": "disabled", "enabled": bool(self.options.enabled)}
        for feature in ("http", "libdeflate", "pull"):
            toolchain.project_options[feature] = "enabled" if self.options.get_safe(feature) else "disabled"
        toolchain.generate()

    def build(self):
        meson = Meson(self)
        meson.configure()
        meson.build()

    def package(self):
        Meson(self).install()

    def package_info(self):
        # The package's own files say how it is linked, for CMake and for pkg-config.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/strobe"]
        self.cpp_info.libs = ["strobe"]
        self.cpp_info.system_libs = ["pthread"]
        if not self.options.enabled:
            self.cpp_info.defines = ["STROBE_DISABLED=1"]
