# Abseil of the version that subprojects/abseil-cpp.wrap names, for a parent that has none.
include(FetchContent)
foreach(key IN ITEMS url hash)
  file(STRINGS "${strobe_root}/subprojects/abseil-cpp.wrap" strobe_abseil_${key} REGEX "^source_${key} = ")
  string(REGEX REPLACE "^source_${key} = " "" strobe_abseil_${key} "${strobe_abseil_${key}}")
endforeach()
FetchContent_Declare(absl URL "${strobe_abseil_url}" URL_HASH "SHA256=${strobe_abseil_hash}" DOWNLOAD_EXTRACT_TIMESTAMP TRUE)
# With the standard of the headers that include it, and without its own tests.
if(NOT CMAKE_CXX_STANDARD OR CMAKE_CXX_STANDARD LESS 20)
  set(CMAKE_CXX_STANDARD 20)
endif()
set(ABSL_PROPAGATE_CXX_STD ON)
set(BUILD_TESTING OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_POLICY_DEFAULT_CMP0077 NEW)  # so that its options take these values
FetchContent_MakeAvailable(absl)
set_property(DIRECTORY "${absl_SOURCE_DIR}" PROPERTY EXCLUDE_FROM_ALL TRUE)
