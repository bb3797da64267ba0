#include "contenders.h"

#include <absl/debugging/stacktrace.h>
#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>
#include <unwind.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "strobe/core/module_map.h"
#include "strobe/platform/native.h"
#include "strobe/unwind/cfi_modules.h"
#include "strobe/unwind/cfi_step.h"
#include "strobe/unwind/chain_unwinder.h"
#include "strobe/unwind/frame_pointer_unwinder.h"
#include "strobe/unwind/walk_memo.h"

#ifdef STROBE_BENCH_LIBUNWIND
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#endif

namespace strobe::testing {
namespace {

void Skip(const char* name, const char* reason) {
  std::fprintf(stderr, "skipped: %s (%s)\n", name, reason);
}

// One of ours that walks each stack anew.
template <class Unwinder>
class Strobe final : public Walker {
 public:
  Strobe(Unwinder unwinder, const StackBounds& stack) : unwinder_(unwinder), stack_(stack) {}
  Found Walk(const NativeRegisters& leaf, Trace& trace) override {
    return {
        unwinder_.Unwind(leaf, LiveStackMemory(leaf.sp - kRedZoneBytes, stack_.high), trace).count};
  }

 private:
  const Unwinder unwinder_;
  const StackBounds stack_;
};

// One that begins where its last walk still holds.
template <IncrementalUnwinder Unwinder>
class StrobeIncremental final : public Walker {
 public:
  StrobeIncremental(Unwinder unwinder, const StackBounds& stack)
      : unwinder_(unwinder), stack_(stack) {}
  Found Walk(const NativeRegisters& leaf, Trace& trace) override {
    const WalkResult walk = unwinder_.Unwind(
        leaf, LiveStackMemory(leaf.sp - kRedZoneBytes, stack_.high), *memo_, trace);
    return {walk.count, walk.shared};
  }

 private:
  const Unwinder unwinder_;
  const StackBounds stack_;
  const std::unique_ptr<internal::WalkMemo> memo_ = std::make_unique<internal::WalkMemo>();
};

// Frame pointers without any care: what the hardware allows.
class Chase final : public Walker {
 public:
  explicit Chase(const StackBounds& stack) : top_(stack.high) {}
  Found Walk(const NativeRegisters& leaf, Trace& trace) override {
    trace[0] = leaf.pc;
    std::size_t count = 1;
    for (Address fp = leaf.fp; fp >= leaf.sp && fp < top_ && count < kMaxFrames;) {
      const auto* const frame = reinterpret_cast<const Address*>(fp);
      trace[count++] = frame[1];
      fp = frame[0];
    }
    return {count};
  }

 private:
  const Address top_;
};

class Absl final : public Walker {
 public:
  Found Walk(const NativeRegisters& /*leaf*/, Trace& trace) override {
    return {static_cast<std::size_t>(
        absl::GetStackTrace(reinterpret_cast<void**>(trace.data()), kMaxFrames, 0))};
  }
};

class NoWalker final : public Walker {
 public:
  Found Walk(const NativeRegisters& /*leaf*/, Trace& /*trace*/) override { return {}; }
};

#ifdef STROBE_BENCH_LIBUNWIND
class LibunwindBacktrace final : public Walker {
 public:
  Found Walk(const NativeRegisters& /*leaf*/, Trace& trace) override {
    return {static_cast<std::size_t>(
        std::max(0, unw_backtrace(reinterpret_cast<void**>(trace.data()), kMaxFrames)))};
  }
};

class LibunwindCursor final : public Walker {
 public:
  Found Walk(const NativeRegisters& /*leaf*/, Trace& trace) override {
    unw_context_t context;
    unw_cursor_t cursor;
    unw_getcontext(&context);
    unw_init_local(&cursor, &context);
    std::size_t count = 0;
    do {
      unw_word_t pc = 0;
      unw_get_reg(&cursor, UNW_REG_IP, &pc);
      trace[count++] = pc;
    } while (count < kMaxFrames && unw_step(&cursor) > 0);
    return {count};
  }
};
#endif

// libunwind defines the same functions, so that they are taken from libgcc's own library by name.
class Libgcc final : public Walker {
 public:
  static std::unique_ptr<Walker> Make() {
    void* const library = dlopen("libgcc_s.so.1", RTLD_NOW);
    auto walker = std::make_unique<Libgcc>();
    if (library != nullptr) {
      walker->backtrace_ =
          reinterpret_cast<decltype(walker->backtrace_)>(dlsym(library, "_Unwind_Backtrace"));
      walker->get_ip_ =
          reinterpret_cast<decltype(walker->get_ip_)>(dlsym(library, "_Unwind_GetIP"));
    }
    if (walker->backtrace_ == nullptr || walker->get_ip_ == nullptr) walker.reset();
    return walker;
  }

  Found Walk(const NativeRegisters& /*leaf*/, Trace& trace) override {
    State state{*this, trace};
    backtrace_(
        [](_Unwind_Context* context, void* argument) {
          auto& at = *static_cast<State*>(argument);
          if (at.count == kMaxFrames) return _URC_END_OF_STACK;
          at.trace[at.count++] = static_cast<Address>(at.walker.get_ip_(context));
          return _URC_NO_REASON;
        },
        &state);
    return {state.count};
  }

 private:
  struct State {
    const Libgcc& walker;
    Trace& trace;
    std::size_t count = 0;
  };
  decltype(&_Unwind_Backtrace) backtrace_ = nullptr;
  decltype(&_Unwind_GetIP) get_ip_ = nullptr;
};

// How long .eh_frame is, at the front of `bytes`: an entry of no length ends it.
std::size_t SectionBytes(std::span<const std::uint8_t> bytes) {
  std::size_t at = 0;
  std::uint32_t length = 0;
  while (bytes.size() - at >= sizeof(length)) {
    std::memcpy(&length, bytes.data() + at, sizeof(length));
    if (length == 0 || length > bytes.size() - at - sizeof(length)) break;
    at += sizeof(length) + length;
  }
  return at;
}

// The library that framehop/lib.rs becomes.
class Framehop final : public Walker {
 public:
  static std::unique_ptr<Walker> Make(const StackBounds& stack) {
    struct stat file {};
    if (stat(STROBE_BENCH_FRAMEHOP, &file) != 0 || file.st_size == 0) return nullptr;
    void* const library = dlopen(STROBE_BENCH_FRAMEHOP, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    auto walker = std::unique_ptr<Framehop>(new Framehop(stack.high));
    const auto create = reinterpret_cast<void* (*)()>(dlsym(library, "strobe_framehop_new"));
    walker->add_ = reinterpret_cast<Add>(dlsym(library, "strobe_framehop_add"));
    walker->walk_ = reinterpret_cast<WalkFunction>(dlsym(library, "strobe_framehop_walk"));
    walker->state_ = create();  // kept for the process's life, as the library is
    dl_iterate_phdr(
        [](dl_phdr_info* image, std::size_t, void* argument) {
          return static_cast<Framehop*>(argument)->AddImage(*image);
        },
        walker.get());
    return walker;
  }

  Found Walk(const NativeRegisters& leaf, Trace& trace) override {
    return {walk_(state_, leaf.pc, leaf.sp, leaf.fp, top_, trace.data(), kMaxFrames)};
  }

 private:
  using Add = void (*)(void*, Address, Address, const std::uint8_t*, std::size_t,
                       const std::uint8_t*, std::size_t);
  using WalkFunction = std::size_t (*)(void*, Address, Address, Address, Address, Address*,
                                       std::size_t);

  explicit Framehop(Address top) : top_(top) {}

  int AddImage(const dl_phdr_info& image) const {
    const ElfW(Phdr)* text = nullptr;
    const ElfW(Phdr)* header = nullptr;
    for (const ElfW(Phdr) & segment : std::span(image.dlpi_phdr, image.dlpi_phnum)) {
      if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0) text = &segment;
      if (segment.p_type == PT_GNU_EH_FRAME) header = &segment;
    }
    if (text == nullptr || header == nullptr) return 0;
    const Address header_address = image.dlpi_addr + header->p_vaddr;
    const std::span header_bytes(reinterpret_cast<const std::uint8_t*>(header_address),
                                 header->p_memsz);
    const Address frames = EhFrameAddress(header_bytes, header_address);
    for (const ElfW(Phdr) & segment : std::span(image.dlpi_phdr, image.dlpi_phnum)) {
      const Address start = image.dlpi_addr + segment.p_vaddr;
      if (segment.p_type != PT_LOAD || frames < start || frames >= start + segment.p_filesz)
        continue;
      const std::span bytes(reinterpret_cast<const std::uint8_t*>(frames),
                            start + segment.p_filesz - frames);
      const Address text_start = image.dlpi_addr + text->p_vaddr;
      add_(state_, text_start, text_start + text->p_memsz, header_bytes.data(), header_bytes.size(),
           bytes.data(), SectionBytes(bytes));
    }
    return 0;
  }

  const Address top_;
  Add add_ = nullptr;
  WalkFunction walk_ = nullptr;
  void* state_ = nullptr;
};

void AddPeers(const StackBounds& stack, std::vector<Contender>& contenders) {
#ifdef STROBE_BENCH_LIBUNWIND
  contenders.push_back(
      {"libunwind_backtrace", FunctionKind::kPlain, std::make_unique<LibunwindBacktrace>()});
  contenders.push_back(
      {"libunwind_cursor", FunctionKind::kPlain, std::make_unique<LibunwindCursor>()});
#else
  Skip("libunwind", "libunwind-dev was not there at configuration");
#endif
  if (auto libgcc = Libgcc::Make(); libgcc != nullptr) {
    contenders.push_back({"libgcc", FunctionKind::kPlain, std::move(libgcc)});
  } else {
    Skip("libgcc", "libgcc_s.so.1 cannot be loaded");
  }
  if (auto framehop = Framehop::Make(stack); framehop != nullptr) {
    contenders.push_back({"framehop", FunctionKind::kPlain, std::move(framehop)});
  } else {
    Skip("framehop", "cargo or its crates are not there");
  }
}

}  // namespace

std::vector<Contender> MakeContenders(const StackBounds& stack) {
  std::vector<Contender> contenders;
  std::vector<Contender> peers;
  AddPeers(stack, peers);
  // After the peers, which load libraries.
  static internal::CfiModules modules(kNativeArchitecture, &NativePlatform::ReadMemory);
  modules.Update(ModuleMap(NativePlatform::Modules()));
  modules.BuildAll();
  static const auto tables = modules.Snapshot();
  using Chain = ChainUnwinder<CfiStep, FramePointerStep>;
  contenders.push_back({"strobe", FunctionKind::kPlain,
                        std::make_unique<StrobeIncremental<Chain>>(Chain(tables.get()), stack)});
  contenders.push_back({"strobe_anew", FunctionKind::kPlain,
                        std::make_unique<Strobe<Chain>>(Chain(tables.get()), stack)});
  contenders.push_back(
      {"strobe_frame_pointers", FunctionKind::kFramePointers,
       std::make_unique<Strobe<FramePointerUnwinder>>(FramePointerUnwinder(), stack)});
  contenders.push_back(
      {"hand_written_chase", FunctionKind::kFramePointers, std::make_unique<Chase>(stack)});
  contenders.push_back({"absl", FunctionKind::kFramePointers, std::make_unique<Absl>()});
  std::move(peers.begin(), peers.end(), std::back_inserter(contenders));
  return contenders;
}

std::unique_ptr<Walker> MakeNoWalker() { return std::make_unique<NoWalker>(); }

}  // namespace strobe::testing
