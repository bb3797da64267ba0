// The exporters still send what real servers have taken. Each file in fixtures/ is a whole request,
// as `file:///` URLs write them. tests/interop.sh sends these files to the servers as they are, and
// compares what the servers have then with the profiles inside.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "fixture.h"
#include "gtest/gtest.h"
#include "strobe/core/label_set.h"
#include "strobe/http/http_exporter.h"
#include "strobe/http/parca_exporter.h"
#include "strobe/http/pyroscope_exporter.h"
#include "strobe/testing/pprof_reader.h"

namespace strobe {
namespace {

using testing::Gunzip;
using testing::ManualHttpTools;

// Two threads, of which one has a label; three functions; CPU and wall time.
testing::SampleProfile ShopProfile(std::int64_t time_ns) {
  testing::SampleProfile shop{"shop", testing::ProfileHead(), {}};
  Profile& profile = shop.profile;
  profile.program = "shop";
  profile.time_ns = time_ns;
  profile.duration_ns = 10'000'000'000;
  profile.value_types.push_back({"wall", "nanoseconds"});
  profile.modules = {
      {0x400000, 0x500000, 0x1000, 0x3FF000, "/opt/shop/bin/shop", "00112233445566778899aabb"}};
  testing::ProfileBuilder builder(profile);
  builder.AddThread(101, "main");
  builder.AddThread(102, "worker");
  const std::uint32_t main = builder.AddFrame(0x401233, 0);
  const std::uint32_t buy = builder.AddFrame(0x402345, 0);
  const std::uint32_t sell = builder.AddFrame(0x403456, 0);
  for (const char* name : {"main", "BuyThings", "SellThings"}) {
    shop.symbols.frames.push_back(
        {.function = static_cast<std::uint32_t>(shop.symbols.functions.size()), .line = 12});
    shop.symbols.functions.push_back(
        {.name = name, .system_name = name, .file = "/src/shop.cc", .line = 10});
  }
  shop.symbols.modules = {SymbolDetail::kLines};
  builder.AddSample(0, {main}, {3, 30'000'000, 40'000'000});
  builder.AddSample(1, {main, buy}, {50, 500'000'000, 600'000'000});
  builder.AddSample(1, {main, sell}, {7, 70'000'000, 0});
  profile.label_sets.push_back(
      LabelSet({{"goods", std::string("tea")}}).Joined(profile.label_sets[1]));
  profile.samples.back().labels = 2;
  return shop;
}

// The request that the exporter writes to file:///requests/`file`.
std::string Written(absl::StatusOr<std::shared_ptr<const HttpBackend>> backend,
                    std::string_view file, std::int64_t time_ns) {
  ManualHttpTools tools;
  HttpExporter exporter(std::move(backend), {}, tools.Tools());
  const testing::SampleProfile shop = ShopProfile(time_ns);
  const auto exported = exporter.Export({.bytes = "",
                                         .file_suffix = "",
                                         .content_type = "",
                                         .profile = shop.profile,
                                         .symbols = shop.symbols});
  EXPECT_TRUE(exported.ok()) << exported.status();
  return tools.directories.Read(absl::StrCat("/requests/", std::string(file))).value_or("");
}

std::optional<std::string> Fixture(std::string_view file) {
  const char* const directory = std::getenv("STROBE_TEST_FIXTURES");
  if (directory == nullptr) return std::nullopt;
  std::ifstream stream(absl::StrCat(directory, "/", std::string(file)), std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

// A request without what depends on the library that compresses: the length, and the
// profiles' compression. All else is as it was, byte for byte.
std::string Uncompressed(const std::string& request) {
  const std::size_t end = request.find("\r\n\r\n");
  if (end == std::string::npos) return "no request: " + request;
  std::string head = request.substr(0, end);
  if (const std::size_t length = head.find("\r\nContent-Length:"); length != std::string::npos)
    head.erase(length, head.find("\r\n", length + 2) - length);
  std::string body = request.substr(end + 4);
  if (!body.starts_with('{')) body = Gunzip(body).value_or("broken");
  std::size_t at = 0;
  constexpr std::string_view kBegin = "\"rawProfile\":\"";
  while ((at = body.find(kBegin, at)) != std::string::npos) {
    at += kBegin.size();
    const std::string text = body.substr(at, body.find('"', at) - at);
    std::string bytes;
    const bool is_base64 = absl::Base64Unescape(text, &bytes);
    body.replace(at, text.size(), is_base64 ? Gunzip(bytes).value_or("broken") : "no base64");
  }
  return head + "\r\n\r\n" + body;
}

// If it fails on purpose, let a server take the new request, and keep it:
//   tests/interop.sh --parca BINARY --pyroscope BINARY
void ExpectAsAccepted(const absl::StatusOr<std::shared_ptr<const HttpBackend>>& backend,
                      const std::string& file, std::int64_t time_ns) {
  const std::string written = Written(backend, file, time_ns);
  const std::optional<std::string> accepted = Fixture(file);
  ASSERT_TRUE(accepted.has_value()) << "STROBE_TEST_FIXTURES must name tests/http/fixtures";
  if (Uncompressed(written) == Uncompressed(*accepted)) return;
  const std::string path = ::testing::TempDir() + file;
  std::ofstream(path, std::ios::binary) << written;
  ADD_FAILURE() << "the request differs from fixtures/" << file << ": see " << path;
}

TEST(RequestFixtures, ParcaHasTakenTheRequest) {
  ExpectAsAccepted(MakeParcaBackend({.url = "file:///requests/parca", .labels = "region=eu west"}),
                   "parca.0", 1'700'000'000'123'456'789);
}

// The server shows recent profiles only: when it has taken them, they were.
TEST(RequestFixtures, PyroscopeHasTakenBothRequests) {
  constexpr std::int64_t kTimeNs = 1'795'669'200'123'456'789;
  const auto backend =
      MakePyroscopeBackend({.url = "file:///requests/pyroscope", .labels = "region=eu west"});
  ExpectAsAccepted(backend, "pyroscope.0", kTimeNs);  // CPU time
  ExpectAsAccepted(backend, "pyroscope.1", kTimeNs);  // wall time
}

}  // namespace
}  // namespace strobe
