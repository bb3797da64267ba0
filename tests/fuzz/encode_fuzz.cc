// Bytes as a profile and its symbols, whose numbers may be out of range and whose texts are
// anything, and as function names: every encoder returns a result or a status.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fuzz_input.h"
#include "strobe/core/thread_info.h"
#include "strobe/encode/firefox_encoder.h"
#include "strobe/encode/folded_encoder.h"
#include "strobe/encode/otlp_encoder.h"
#include "strobe/encode/pprof_encoder.h"
#include "strobe/encode/short_name.h"
#include "strobe/encode/speedscope_encoder.h"
#include "strobe/encode/svg_encoder.h"
#include "support/check.h"

namespace strobe::testing {
namespace {

std::string TakeText(FuzzInput& input) {
  const auto bytes = input.TakeBytes(input.Take<std::uint8_t>() % 64);
  return {bytes.begin(), bytes.end()};
}

// Mostly small, so that many indices are in range.
std::uint32_t TakeIndex(FuzzInput& input) {
  const auto byte = input.Take<std::uint8_t>();
  return byte == 0xFF ? input.Take<std::uint32_t>() : byte % 16;
}

template <class Add>
void Repeat(FuzzInput& input, Add add) {
  const std::size_t count = input.Take<std::uint8_t>() % 16;
  for (std::size_t i = 0; i < count && !input.empty(); ++i) add();
}

Module TakeModule(FuzzInput& input) {
  Module module;
  module.start = input.Take<Address>();
  module.limit = input.Take<Address>();
  module.load_bias = input.Take<Address>();
  module.path = TakeText(input);
  module.build_id = TakeText(input);
  module.kind = static_cast<ModuleKind>(input.Take<std::uint8_t>() % 4);
  module.format = static_cast<ImageFormat>(input.Take<std::uint8_t>() % 2);
  return module;
}

void TakeRows(FuzzInput& input, Profile& profile) {
  const std::size_t columns = profile.value_types.size();
  Repeat(input, [&] { profile.stacks.push_back({TakeIndex(input), TakeIndex(input)}); });
  Repeat(input, [&] {
    profile.samples.push_back({TakeIndex(input), TakeIndex(input)});
    for (std::size_t i = 0; i < columns; ++i) profile.values.push_back(input.Take<std::int64_t>());
  });
  Repeat(input, [&] {
    profile.moments.push_back({TakeIndex(input), input.Take<std::int64_t>()});
    for (std::size_t i = 0; i < columns; ++i)
      profile.moment_values.push_back(input.Take<std::int64_t>());
  });
}

Profile TakeProfile(FuzzInput& input) {
  constexpr std::array kTypes{ValueType{"samples", "count"}, ValueType{"cpu", "nanoseconds"},
                              ValueType{"live", "bytes"}};
  Profile profile;
  profile.value_types.assign(kTypes.begin(), kTypes.begin() + input.Take<std::uint8_t>() % 4);
  profile.default_value_type = TakeIndex(input) % 4;
  profile.time_ns = input.Take<std::int64_t>();
  profile.duration_ns = input.Take<std::int64_t>();
  profile.period_type = kTypes[1];
  profile.period = input.Take<std::int64_t>();
  profile.program = TakeText(input);
  Repeat(input, [&] { profile.modules.push_back(TakeModule(input)); });
  Repeat(input, [&] {
    const std::uint32_t module = TakeIndex(input);
    profile.frames.push_back({input.Take<Address>(), module == 15   ? Frame::kPseudo
                                                     : module == 14 ? Frame::kNoModule
                                                                    : module});
  });
  Repeat(input, [&] {
    const LabelSet set(
        {{TakeText(input), TakeText(input)}, {TakeText(input), input.Take<std::int64_t>()}});
    const std::uint32_t id = TakeIndex(input);
    profile.label_sets.push_back(set.Joined(ThreadLabels(id, TakeText(input))));
  });
  Repeat(input, [&] {
    profile.threads.push_back({.id = TakeIndex(input),
                               .name = TakeText(input),
                               .begin_ns = input.Take<std::int64_t>(),
                               .end_ns = input.Take<std::int64_t>(),
                               .cpu_ns = input.Take<std::int64_t>()});
  });
  TakeRows(input, profile);
  return profile;
}

Symbols TakeSymbols(FuzzInput& input, std::size_t frames) {
  Symbols symbols;
  Repeat(input, [&] {
    symbols.functions.push_back({.name = TakeText(input),
                                 .system_name = TakeText(input),
                                 .resolved = input.Take<std::uint8_t>() % 2 == 0,
                                 .file = TakeText(input),
                                 .line = TakeIndex(input)});
  });
  Repeat(input, [&] { symbols.inlined.push_back({TakeIndex(input), TakeIndex(input), 1}); });
  if (input.Take<std::uint8_t>() % 2 == 0) return symbols;
  for (std::size_t i = 0; i < frames; ++i) {
    symbols.frames.push_back({.function = TakeIndex(input),
                              .line = TakeIndex(input),
                              .inlined_begin = TakeIndex(input) % 4,
                              .inlined_count = TakeIndex(input) % 4});
  }
  return symbols;
}

template <class Encoder>
void Encode(const Profile& profile, const Symbols& symbols, Encoder encoder) {
  const absl::StatusOr<std::string> bytes = encoder.Encode(profile, symbols);
  if (!bytes.ok()) return;
  testing::Check(!bytes->empty(), "nothing was written");
  testing::Check(*bytes == *encoder.Encode(profile, symbols), "other bytes for the same profile");
}

void CheckShortName(const std::string& name) {
  const std::string short_name = ShortFunctionName(name);
  testing::Check(short_name.size() <= name.size(), "a short name that is longer");
  testing::Check(short_name.empty() == name.empty(), "a function without a name");
  if (ValidUtf8(name) == name)
    testing::Check(ValidUtf8(short_name) == short_name, "a name that no profile can hold");
}

void Run(FuzzInput input) {
  const Profile profile = TakeProfile(input);
  const Symbols symbols = TakeSymbols(input, profile.frames.size());
  Encode(profile, symbols, PprofEncoder());
  Encode(profile, symbols, PprofEncoder({.labels = PprofLabels::kDatadog, .moments = true}));
  Encode(profile, symbols, FoldedEncoder());
  Encode(profile, symbols, SpeedscopeEncoder());
  Encode(profile, symbols, FirefoxEncoder());
  Encode(profile, symbols, OtlpEncoder());
  Encode(profile, symbols, SvgEncoder());
}

}  // namespace
}  // namespace strobe::testing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  strobe::testing::CheckShortName({reinterpret_cast<const char*>(data), size});
  strobe::testing::Run({data, size});
  return 0;
}
