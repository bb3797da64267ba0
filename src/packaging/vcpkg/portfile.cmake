# Strobe for vcpkg, as an overlay port in the tree: vcpkg install strobe --overlay-ports=strobe/src/packaging/vcpkg
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

# The profiler is optimised in each build type, and a program links it in each: one build is enough.
set(VCPKG_BUILD_TYPE release)

set(features "")
foreach(feature IN ITEMS http libdeflate)
  if(feature IN_LIST FEATURES)
    list(APPEND features "-D${feature}=enabled")
  else()
    list(APPEND features "-D${feature}=disabled")
  endif()
endforeach()

vcpkg_configure_meson(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS ${features} --unity=on --unity-size=20 -Dtests=false -Dexamples=false -Dcli=disabled)
vcpkg_install_meson()
vcpkg_fixup_pkgconfig()

# strobeConfig.cmake looks for the libraries two folders above itself, so it stays in lib/cmake/strobe.
set(VCPKG_POLICY_SKIP_LIB_CMAKE_MERGE_CHECK enabled)
set(VCPKG_POLICY_SKIP_COPYRIGHT_CHECK enabled)  # the tree has no licence text yet
file(INSTALL "${SOURCE_PATH}/README.md" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
