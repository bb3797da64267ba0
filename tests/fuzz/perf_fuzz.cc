// Bytes as a perf.data file: a profile or an error, and the profile is a whole one. The code of its
// processes is that of one image, so that stacks are unwound.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "images/byte_source.h"
#include "process/fake_image.h"
#include "readers/read_perf.h"
#include "strobe/encode/pprof_encoder.h"
#include "strobe/encode/profile_view.h"
#include "support/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace strobe::internal;  // NOLINT(google-build-using-namespace)
  static const auto* const files = [] {
    auto* made = new strobe::testing::FakeFiles;
    made->Write("/opt/missing", {.words = 2});
    return made;
  }();
  const SpanSource source(std::as_bytes(std::span(data, size)));
  const strobe::ByteSource* const only = &source;
  const absl::StatusOr<LoadedProfile> loaded =
      ReadPerfData(std::span(&only, 1), {.files = *files, .kernel_symbols = ""});
  if (!loaded.ok()) return 0;
  strobe::testing::Check(strobe::ProfileView::Make(loaded->profile, loaded->symbols).ok(),
                         "all that a profile refers to is there");
  strobe::testing::Check(
      strobe::PprofEncoder().EncodeUncompressed(loaded->profile, loaded->symbols).ok(),
      "a profile that was read is written");
  return 0;
}
