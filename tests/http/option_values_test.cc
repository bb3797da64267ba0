// Every variable of every exporter over HTTP: its name, a value that it accepts, and values that it
// refuses.
#include "strobe/http/option_values.h"

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/core/settings/known_variables.h"
#include "strobe/core/settings/option_rows.h"
#include "strobe/http/datadog_exporter.h"
#include "strobe/http/otlp_exporter.h"
#include "strobe/http/parca_exporter.h"
#include "strobe/http/post_exporter.h"
#include "strobe/http/pyroscope_exporter.h"

namespace strobe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Variable {
  std::string default_value;
  std::string good;
  std::vector<std::string> bad;
};
using Variables = std::map<std::string, Variable>;

std::vector<std::string> Joined(std::vector<std::string> first,
                                const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

const std::string kLineBreak = "a\r\nEvil: yes";
const std::string kTooLong(internal::kMaxValueBytes + 1, 'x');
const std::vector<std::string> kBadLines{kLineBreak, kTooLong, std::string("a\0b", 3), "\x7F"};
const std::vector<std::string> kBadPairs{"key", "key;value", ",x", "a=1,b", kLineBreak, kTooLong};
const std::vector<std::string> kBadColonPairs{"key", "key=value", "a:1,b", ":x", kLineBreak};
const std::vector<std::string> kBadProxies{"ftp://h",    "http://",     "http://h:0", "host:0",
                                           "http://a b", "unix://name", "http://h\n", "file://x"};
const std::vector<std::string> kBadUrls = Joined(kBadProxies, {"host:80"});
const std::vector<std::string> kBadNumbers{"",    "many", "-1",  "1 ",   " 1",
                                           "0x1", "nan",  "inf", "1e999"};
const std::vector<std::string> kBadSwitches{"", "yes", "TRUE", "2", "on "};

// Checks a table against what is expected of it; returns how many bad values it refused.
template <class Options>
int CheckTable(std::span<const BasicOptionRow<Options>> table, const Variables& expected) {
  int refused = 0;
  std::set<std::string> names;
  for (const BasicOptionRow<Options>& row : table) {
    const std::string name(row.variable);
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_TRUE(expected.contains(name)) << name;
    // The variables of servers' own tools are not ours to judge.
    EXPECT_EQ(internal::IsKnownVariable(name), name.starts_with(internal::kVariablePrefix)) << name;
    if (!expected.contains(name)) continue;
    const Variable& variable = expected.at(name);
    Options options;
    EXPECT_EQ(row.get(options), variable.default_value) << name;
    EXPECT_TRUE(row.valid(options)) << name << ": its own default";
    std::vector<std::string> warnings;
    const auto apply = [&](const std::string& value) {
      internal::ApplyRows<Options>(
          table, options,
          [&](const char* asked) {
            return asked == name ? std::optional(value) : std::optional<std::string>();
          },
          [&](const std::string& line) { warnings.push_back(line); });
    };
    apply(variable.good);
    EXPECT_THAT(warnings, IsEmpty());
    EXPECT_EQ(row.get(options), row.is_secret ? "(secret)" : variable.good) << name;
    const std::string before = row.get(options);
    for (const std::string& bad : variable.bad) {
      warnings.clear();
      apply(bad);
      EXPECT_EQ(row.get(options), before) << name << "=" << bad;
      EXPECT_THAT(warnings, ElementsAre(HasSubstr(name))) << bad;
      EXPECT_THAT(warnings, ElementsAre(HasSubstr(std::string(row.accepted)))) << bad;
      if (row.is_secret && bad.size() > 4 && row.accepted.find(bad) == std::string_view::npos) {
        EXPECT_THAT(warnings, ElementsAre(Not(HasSubstr(bad))));
      }
      ++refused;
    }
  }
  EXPECT_EQ(names.size(), expected.size());
  return refused;
}

TEST(OptionValues, EveryVariableOfEveryExporter) {
  int refused = CheckTable<HttpOptions>(
      HttpOptionTable(),
      {{"STROBE_HTTP_TIMEOUT_S", {"10", "2.5", Joined(kBadNumbers, {"0", "601"})}},
       {"STROBE_HTTP_ATTEMPTS", {"3", "1", Joined(kBadNumbers, {"0", "11", "1.5"})}},
       {"STROBE_SPOOL_DIRECTORY", {"", "/var/spool/x", {std::string("a\0b", 3), kTooLong}}},
       {"STROBE_SPOOL_BYTES", {"268435456", "1000000", Joined(kBadNumbers, {"0", "65535"})}},
       {"STROBE_SPOOL_AGE_S", {"86400", "60", Joined(kBadNumbers, {"0", "31536001"})}},
       {"STROBE_CA_FILE", {"", "/etc/ca.pem", {kTooLong}}},
       {"http_proxy", {"", "http://user:password@proxy:3128", Joined(kBadProxies, {"unix:///x"})}},
       {"HTTPS_PROXY", {"", "http://proxy", Joined(kBadProxies, {"file:///x"})}},
       {"https_proxy", {"", "proxy:3128", kBadProxies}},
       {"NO_PROXY", {"", "localhost,.example.com", {kTooLong}}},
       {"no_proxy", {"", "*", {kTooLong}}}});
  refused += CheckTable<PostOptions>(
      PostOptionTable(), {{"STROBE_POST_URL", {"", "https://host/in?token=t", kBadUrls}},
                          {"STROBE_POST_HEADERS", {"", "Authorization=Bearer%20KEY", kBadPairs}}});
  refused += CheckTable<DatadogOptions>(
      DatadogOptionTable(),
      {{"DD_SERVICE", {"", "shop", kBadLines}},
       {"DD_ENV", {"", "prod", kBadLines}},
       {"DD_VERSION", {"", "1.2", kBadLines}},
       {"DD_TAGS", {"", "team:a region:b", kBadColonPairs}},
       {"DD_HOSTNAME", {"", "host1", kBadLines}},
       {"DD_RUNTIME_ID", {"", "6ba7b810-9dad-41d1-80b4-00c04fd430c8", kBadLines}},
       {"DD_TRACE_AGENT_URL", {"", "unix:///var/run/datadog/apm.socket", kBadUrls}},
       {"DD_AGENT_HOST",
        {"localhost", "10.0.0.1", {"", "a b", "a/b", "a?b", "user@host", "host\n", "http://x"}}},
       {"DD_TRACE_AGENT_PORT", {"8126", "8127", Joined(kBadNumbers, {"0", "65536"})}},
       {"DD_PROFILING_AGENTLESS", {"0", "1", kBadSwitches}},
       {"DD_API_KEY", {"", "0123456789abcdef", kBadLines}},
       {"DD_SITE", {"datadoghq.com", "datadoghq.eu", {"", "a/b", "a b", "evil.com/?x", "u@h"}}}});
  refused += CheckTable<PyroscopeOptions>(
      PyroscopeOptionTable(),
      {{"PYROSCOPE_SERVER_ADDRESS", {"(secret)", "https://pyroscope.example.com", kBadUrls}},
       {"PYROSCOPE_APPLICATION_NAME", {"", "shop", kBadLines}},
       {"PYROSCOPE_LABELS", {"", "region=eu,zone=1", kBadPairs}},
       {"PYROSCOPE_BASIC_AUTH_USER", {"", "1234", kBadLines}},
       {"PYROSCOPE_BASIC_AUTH_PASSWORD", {"", "password", kBadLines}},
       {"PYROSCOPE_AUTH_TOKEN", {"", "token", kBadLines}},
       {"PYROSCOPE_TENANT_ID", {"", "tenant", kBadLines}}});
  refused += CheckTable<ParcaOptions>(
      ParcaOptionTable(), {{"STROBE_PARCA_URL", {"(secret)", "https://parca:7070", kBadUrls}},
                           {"STROBE_PARCA_JOB", {"", "shop", kBadLines}},
                           {"STROBE_PARCA_LABELS", {"", "region=eu", kBadPairs}},
                           {"STROBE_PARCA_TOKEN", {"", "token", kBadLines}}});
  const std::vector<std::string> bad_compressions{"", "zstd", "GZIP"};
  const std::vector<std::string> bad_timeouts = Joined(kBadNumbers, {"600001", "1.5"});
  refused += CheckTable<OtlpExporterOptions>(
      OtlpOptionTable(),
      {{"OTEL_EXPORTER_OTLP_ENDPOINT", {"(secret)", "http://collector:4318", kBadUrls}},
       {"OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", {"", "http://collector:4318/x", kBadUrls}},
       {"OTEL_EXPORTER_OTLP_HEADERS", {"", "api-key=key", kBadPairs}},
       {"OTEL_EXPORTER_OTLP_PROFILES_HEADERS", {"", "api-key=key", kBadPairs}},
       {"OTEL_EXPORTER_OTLP_COMPRESSION", {"gzip", "none", bad_compressions}},
       {"OTEL_EXPORTER_OTLP_PROFILES_COMPRESSION", {"gzip", "none", bad_compressions}},
       {"OTEL_EXPORTER_OTLP_TIMEOUT", {"0", "10000", bad_timeouts}},
       {"OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT", {"0", "10000", bad_timeouts}},
       {"OTEL_EXPORTER_OTLP_CERTIFICATE", {"", "/etc/ca.pem", {kTooLong}}},
       {"OTEL_EXPORTER_OTLP_PROFILES_CERTIFICATE", {"", "/etc/ca.pem", {kTooLong}}}});
  EXPECT_GE(refused, 200);
  RecordProperty("bad_values_refused", refused);
}

TEST(OptionValues, HeaderNamesAndValues) {
  EXPECT_TRUE(internal::IsHeaderName("X-Scope-OrgID"));
  for (const char* name : {"", "a b", "a:b", "a\n", "\xC3\xA4"})
    EXPECT_FALSE(internal::IsHeaderName(name)) << name;
  EXPECT_TRUE(internal::IsHeaderValue("Bearer a b"));
  EXPECT_FALSE(internal::IsHeaderValue("a\nb"));
}

}  // namespace
}  // namespace strobe
