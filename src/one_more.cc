// Nothing: see meson.build, which needs a source file more for some builds.
