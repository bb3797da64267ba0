// RtlVirtualUnwind in the place of our walk.
#pragma once

#include <windows.h>
// After it.
#include <cstddef>
#include <cstring>
#include <span>

#include "strobe/base/address.h"

namespace strobe::testing {

// In place, as the documentation shows it. Writes the frames' addresses; returns how many.
inline std::size_t WalkByWindows(CONTEXT context, std::span<Address> output) {
  std::size_t frames = 0;
  while (frames < output.size() && context.Rip != 0) {
    output[frames++] = context.Rip;
    DWORD64 base = 0;
    RUNTIME_FUNCTION* const function = RtlLookupFunctionEntry(context.Rip, &base, nullptr);
    if (function == nullptr) {
      std::memcpy(&context.Rip, reinterpret_cast<const void*>(context.Rsp), sizeof(context.Rip));
      context.Rsp += sizeof(context.Rip);
    } else {
      void* handler_data = nullptr;
      DWORD64 establisher = 0;
      RtlVirtualUnwind(UNW_FLAG_NHANDLER, base, context.Rip, function, &context, &handler_data,
                       &establisher, nullptr);
    }
  }
  return frames;
}

}  // namespace strobe::testing
