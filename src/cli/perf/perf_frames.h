// PerfFrames: the frames of a perf recording, numbered as a profile has them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "jit/jit_dump.h"
#include "jit/jit_dumps.h"
#include "kernel_symbols.h"
#include "profile/profile_builder.h"
#include "strobe/base/address.h"
#include "strobe/core/stack.h"
#include "strobe/process/process_table.h"

namespace strobe::internal {

// A file that several processes map at different addresses is one module, with the addresses of the
// first process: so its functions are the same frames in all.
class PerfFrames {
 public:
  explicit PerfFrames(ProfileBuilder& builder) : builder_(builder) {}

  // To be called before the frames of each stack.
  void BeginStack() { last_module_ = nullptr; }
  // The code of a process at `address`, which is in `module`, or in none if that is nullptr.
  std::uint32_t User(Address address, const ProcessModule* module);
  // The same of generated code whose name is known.
  std::uint32_t Generated(Address address, const ProcessModule* module, std::string_view name);
  // Generated code whose name is found at the end: compilers write it in large pieces, or at exit.
  struct Unnamed {
    std::uint32_t process = 0;
    std::uint32_t dump = JitDumps::kNone;
    Address address = 0;
    TimeSpan times{};  // of its samples
  };
  // `time` is that of the sample; 0 if it is not known.
  std::uint32_t NamedLater(const Unnamed& code, const ProcessModule* module, std::uint64_t time);
  // To be called once; asks dump by dump. True if a frame may be there several times now, with the
  // same name. `find` returns an empty text where it knows of none.
  bool NameLater(absl::FunctionRef<std::string_view(const Unnamed&)> find);
  // The kernel's. Without symbols all of it is "[kernel]".
  std::uint32_t Kernel(Address address);
  std::uint32_t Pseudo(PseudoFrame frame);
  // Says which module is the program. To be called before any other module has a number.
  void UseProgram(const ProcessModule& module);
  // A profile's first module is the program, not the kernel.
  void Finish();

  // Takes over the names of the kernel's functions.
  void UseKernelSymbols(std::shared_ptr<const KernelSymbols> symbols) {
    kernel_ = std::move(symbols);
  }

 private:
  // Which module of the profile one of a process is.
  struct Placed {
    std::uint32_t module = 0;
    Address shift = 0;  // from the process's addresses to the profile's
  };
  // The same part of the same file; or the same addresses, where the file could not be read.
  struct Key {
    std::uint64_t image;
    std::uint64_t start;
    std::string path;
    friend bool operator==(const Key&, const Key&) = default;
    template <class H>
    friend H AbslHashValue(H state, const Key& key) {
      return H::combine(std::move(state), key.image, key.start, key.path);
    }
  };

  struct Later {
    Unnamed code;
    std::uint32_t frame;
  };

  std::uint32_t Add(Address address, std::uint32_t module, std::uint32_t function);
  Placed Place(const ProcessModule& module);
  Placed PlaceOfStack(const ProcessModule* module);
  std::uint32_t Number(Address address, std::uint32_t module, std::uint32_t function);
  std::uint32_t Function(std::string_view name);

  ProfileBuilder& builder_;
  std::shared_ptr<const KernelSymbols> kernel_;
  std::uint32_t kernel_module_ = Frame::kNoModule;
  // By address, module and function: generated code may be replaced by other.
  absl::flat_hash_map<std::tuple<Address, std::uint32_t, std::uint32_t>, std::uint32_t> frames_;
  // By process, dump, address and module; and by the time, for a dump says when code was replaced.
  absl::flat_hash_map<
      std::tuple<std::uint32_t, std::uint32_t, Address, std::uint32_t, std::uint64_t>, std::size_t>
      later_places_;
  std::vector<Later> later_;
  bool has_equal_ = false;  // perhaps
  absl::flat_hash_map<std::string, std::uint32_t> functions_;
  absl::flat_hash_map<Key, std::uint32_t> modules_;
  const ProcessModule* last_module_ = nullptr;  // of this stack
  Placed last_placed_;
};

}  // namespace strobe::internal
