#include "strobe/encode/encoder.h"

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"

namespace strobe {
namespace {

struct SmallestEncoder {
  static constexpr std::string_view kFileSuffix = ".txt";
  static constexpr std::string_view kContentType = "text/plain";
  absl::StatusOr<std::string> Encode(const Profile&, const Symbols&) {
    return std::string("nothing");
  }
};
struct WithoutSuffix {
  [[maybe_unused]] static constexpr std::string_view kContentType = "text/plain";
  absl::StatusOr<std::string> Encode(const Profile&, const Symbols&) { return std::string(); }
};
struct WithoutStatus : SmallestEncoder {
  std::string Encode(const Profile&, const Symbols&) { return ""; }
};
struct ChangesTheProfile : SmallestEncoder {
  absl::StatusOr<std::string> Encode(Profile&, const Symbols&) { return std::string(); }
};

TEST(EncoderTest, ConceptTakesWhatKeepsTheContractAndRefusesTheRest) {
  EXPECT_TRUE(Encoder<SmallestEncoder>);
  EXPECT_FALSE(Encoder<WithoutSuffix>);
  EXPECT_FALSE(Encoder<WithoutStatus>);
  EXPECT_FALSE(Encoder<ChangesTheProfile>);
  EXPECT_FALSE(Encoder<int>);
}

}  // namespace
}  // namespace strobe
