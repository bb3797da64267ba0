// The field numbers of OpenTelemetry's profiles, release 1.10 of opentelemetry-proto: package
// opentelemetry.proto.profiles.v1development, and what it uses of resource.v1 and common.v1. The
// encoder knows the messages by this table alone. It has only the fields that are written.
#pragma once

#include <cstdint>

namespace strobe::internal {

struct OtlpFields {
  enum Request : std::uint32_t { kResourceProfiles = 1, kDictionary = 2 };
  enum Dictionary : std::uint32_t {
    kMappings = 1,
    kLocations = 2,
    kFunctions = 3,
    kLinks = 4,
    kStrings = 5,
    kAttributes = 6,
    kStacks = 7,
  };
  enum ResourceProfiles : std::uint32_t { kResource = 1, kScopeProfiles = 2 };
  enum Resource : std::uint32_t { kResourceAttributes = 1 };
  enum ScopeProfiles : std::uint32_t { kScope = 1, kProfiles = 2 };
  enum Scope : std::uint32_t { kScopeName = 1 };
  enum Profile : std::uint32_t {
    kSampleType = 1,
    kSamples = 2,
    kTimeNs = 3,  // fixed64
    kDurationNs = 4,
    kPeriodType = 5,
    kPeriod = 6,
  };
  enum ValueType : std::uint32_t { kType = 1, kUnit = 2 };
  enum Sample : std::uint32_t { kStack = 1, kSampleAttributes = 2, kValues = 4 };
  enum Mapping : std::uint32_t {
    kStart = 1,
    kLimit = 2,
    kFileOffset = 3,
    kFilename = 4,
    kMappingAttributes = 5,
  };
  enum Stack : std::uint32_t { kStackLocations = 1 };
  enum Location : std::uint32_t {
    kMapping = 1,
    kAddress = 2,
    kLines = 3,
    kLocationAttributes = 4,
  };
  enum Line : std::uint32_t { kFunction = 1, kLine = 2, kColumn = 3 };
  enum Function : std::uint32_t { kName = 1, kSystemName = 2, kFile = 3, kStartLine = 4 };
  enum KeyValueAndUnit : std::uint32_t { kTableKey = 1, kTableValue = 2 };
  enum KeyValue : std::uint32_t { kKey = 1, kValue = 2 };
  enum AnyValue : std::uint32_t { kText = 1, kInteger = 3 };
};

}  // namespace strobe::internal
