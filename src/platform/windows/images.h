// The images that the loader has mapped into this process, and its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "strobe/base/address.h"
#include "strobe/core/module_map.h"

namespace strobe::internal {

// Grows whenever an image is loaded or unloaded. Thread-safe, and never waits for the loader.
std::uint64_t ImageVersion();

// The code of all images, the program's first. Thread-safe, and never waits for the loader. An
// image that is loaded or unloaded meanwhile may be missing; then ImageVersion has grown.
std::vector<Module> LoadedModules();

// A SignalSafeMemoryReader of this process's memory.
std::size_t ReadOwnMemory(Address address, std::span<std::uint8_t> bytes) noexcept;

// The file of the image that begins there, in UTF-8; of the program's own for nullptr.
std::string PathOfImage(void* base);

}  // namespace strobe::internal
