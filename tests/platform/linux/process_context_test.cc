#include "strobe/platform/process_context.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "encode/otlp_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/in_child.h"

namespace strobe::testing {
namespace {

using ::testing::Contains;
using ::testing::Pair;

// Where the memory lies that has the context's name in /proc/self/maps, as another process looks
// for it.
std::optional<std::uint64_t> FindContext() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("OTEL_CTX") != std::string::npos) return std::stoull(line, nullptr, 16);
  }
  return std::nullopt;
}

std::string ReadMemory(std::uint64_t address, std::size_t bytes) {
  std::ifstream memory("/proc/self/mem", std::ios::binary);
  memory.seekg(static_cast<std::streamoff>(address));
  std::string content(bytes, '\0');
  memory.read(content.data(), static_cast<std::streamsize>(bytes));
  return content;
}

template <class T>
T NumberAt(const std::string& bytes, std::size_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

// The texts among the attributes, read by the rules of the proposal. Empty if there is no context.
std::map<std::string, std::string> PublishedTexts() {
  const std::optional<std::uint64_t> address = FindContext();
  if (!address) return {};
  const std::string header = ReadMemory(*address, 32);
  EXPECT_EQ(header.substr(0, 8), "OTEL_CTX");
  EXPECT_EQ(NumberAt<std::uint32_t>(header, 8), 2U);
  EXPECT_NE(NumberAt<std::uint64_t>(header, 16), 0U);
  const std::string message =
      ReadMemory(NumberAt<std::uint64_t>(header, 24), NumberAt<std::uint32_t>(header, 12));
  const OtlpMessage resource = OtlpMessage(message).Child(1);
  std::map<std::string, std::string> texts;
  for (const std::string& bytes : resource.All(1)) {
    const OtlpMessage attribute(bytes);
    texts[attribute.Text(1)] = attribute.Child(2).Text(1);
  }
  return texts;
}

TEST(ProcessContextTest, AReaderFindsTheAttributesUntilTheContextEnds) {
  {
    const absl::StatusOr<ProcessContext> context = ProcessContext::Publish(
        {.resource = {{"service.name", "shop"}, {"deployment.environment.name", "test"}}});
    ASSERT_TRUE(context.ok()) << context.status();
    const std::map<std::string, std::string> texts = PublishedTexts();
    EXPECT_THAT(texts, Contains(Pair("service.name", "shop")));
    EXPECT_THAT(texts, Contains(Pair("deployment.environment.name", "test")));
    EXPECT_THAT(texts, Contains(Pair("process.executable.name", ::testing::HasSubstr("test"))));
  }
  EXPECT_EQ(FindContext(), std::nullopt);
}

TEST(ProcessContextTest, AnUpdateReplacesAllOfIt) {
  absl::StatusOr<ProcessContext> context =
      ProcessContext::Publish({.resource = {{"service.name", "old"}, {"gone", "1"}}});
  ASSERT_TRUE(context.ok()) << context.status();
  ASSERT_TRUE(context->Update({.resource = {{"service.name", std::string(5000, 'n')}}}).ok());
  const std::map<std::string, std::string> texts = PublishedTexts();
  EXPECT_EQ(texts.at("service.name"), std::string(5000, 'n'));
  EXPECT_EQ(texts.count("gone"), 0U);
}

TEST(ProcessContextTest, AProcessHasOneAtATime) {
  absl::StatusOr<ProcessContext> first = ProcessContext::Publish({});
  ASSERT_TRUE(first.ok()) << first.status();
  const ProcessContext moved = *std::move(first);
  EXPECT_EQ(ProcessContext::Publish({}).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST(ProcessContextTest, AttributesThatNoReaderAcceptsAreRefusedAndTheOldOnesStay) {
  const OtlpOptions long_options{
      .resource = {{"service.name", std::string(ProcessContext::kMaxMessageBytes, 'n')}}};
  EXPECT_EQ(ProcessContext::Publish(long_options).status().code(),
            absl::StatusCode::kResourceExhausted);
  absl::StatusOr<ProcessContext> context =
      ProcessContext::Publish({.resource = {{"service.name", "shop"}}});
  ASSERT_TRUE(context.ok()) << context.status();
  EXPECT_EQ(context->Update(long_options).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(PublishedTexts().at("service.name"), "shop");
}

TEST(ProcessContextTest, AForksChildHasNoneAndPublishesItsOwn) {
  absl::StatusOr<ProcessContext> context =
      ProcessContext::Publish({.resource = {{"service.name", "parent"}}});
  ASSERT_TRUE(context.ok()) << context.status();
  EXPECT_TRUE(HoldsInChild([&] {
    if (FindContext()) return false;
    if (context->Update({}).code() != absl::StatusCode::kFailedPrecondition) return false;
    const absl::StatusOr<ProcessContext> own =
        ProcessContext::Publish({.resource = {{"service.name", "child"}}});
    if (!own.ok() || PublishedTexts()["service.name"] != "child") return false;
    // The parent's ends here without an effect on memory that is not there.
    const ProcessContext inherited = *std::move(context);
    return true;
  }));
  EXPECT_EQ(PublishedTexts().at("service.name"), "parent");
}

// By the kernel, a file beyond the limit ends the process.
TEST(ProcessContextTest, APublicationEndsNoProcessThatMayWriteNoFiles) {
  EXPECT_TRUE(HoldsInChild([] {
    const rlimit none{0, 0};
    if (setrlimit(RLIMIT_FSIZE, &none) != 0) return false;
    const absl::StatusOr<ProcessContext> context = ProcessContext::Publish({});
    // Before Linux 5.17, only a file's name can be the memory's.
    return context.ok() || absl::IsUnavailable(context.status());
  }));
}

}  // namespace
}  // namespace strobe::testing
