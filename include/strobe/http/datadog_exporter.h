// DatadogExporter: profiles to a Datadog agent, or to Datadog itself.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "strobe/core/options.h"
#include "strobe/core/settings/secret.h"
#include "strobe/http/http_exporter.h"
#include "strobe/http/native_http.h"

namespace strobe {

// The names are those of Datadog's own libraries. Tags that are empty are left out.
struct DatadogOptions {
  Option<std::string> service = Option<std::string>::Default{""};  // empty: the program's name
  Option<std::string> environment = Option<std::string>::Default{""};
  Option<std::string> version = Option<std::string>::Default{""};
  Option<std::string> tags = Option<std::string>::Default{""};  // "key:value,key:value"
  Option<std::string> host_name = Option<std::string>::Default{""};
  // The id by which traces of this process are joined with its profiles; empty: a new one.
  Option<std::string> runtime_id = Option<std::string>::Default{""};
  // The agent: http://, unix:///path/to.socket, or file:///path, which writes each request to a
  // file. Empty: agent_host and agent_port.
  Option<std::string> agent_url = Option<std::string>::Default{""};
  Option<std::string> agent_host = Option<std::string>::Default{"localhost"};
  Option<std::int64_t> agent_port = Option<std::int64_t>::Default{8126};
  // True sends to Datadog's intake instead, which needs the key.
  Option<bool> agentless = Option<bool>::Default{false};
  Option<Secret> api_key = Option<Secret>::Default{{}};
  Option<std::string> site = Option<std::string>::Default{"datadoghq.com"};
  HttpOptions http = {};
};

std::span<const BasicOptionRow<DatadogOptions>> DatadogOptionTable();

// What Datadog wants to know of the process; a test gives it its own.
struct DatadogProcess {
  std::string container_id;  // of its control group; empty if there is none
  std::string host;
  std::uint64_t seed[2] = {};  // random: runtime ids are made of it and the process id
};
DatadogProcess ReadDatadogProcess();

// A request of Datadog's intake, version 4: the event and the profile, as multipart/form-data. The
// profile is pprof with Datadog's keys of labels and, if it has times of samples
// (sampling.timestamps), with those for the timeline. InvalidArgument names the option that is
// wrong.
absl::StatusOr<std::shared_ptr<const HttpBackend>> MakeDatadogBackend(
    const DatadogOptions& options, const DatadogProcess& process);

// The profiler's options, with what DD_PROFILING_ENABLED and DD_PROFILING_UPLOAD_PERIOD say where
// code has set nothing. STROBE_* variables beat these.
ProfilerOptions DatadogProfilerOptions(ProfilerOptions options = {});

//   using Outputs = strobe::OutputList<strobe::Output<strobe::PprofEncoder,
//                                                     strobe::HttpExporter>>;
//
//   strobe::BasicProfiler<MyTraits> profiler(strobe::DatadogProfilerOptions(),
//                                            {.exporter = strobe::DatadogExporter()});
// Code beats the environment, which is read here.
class DatadogExporter : public HttpExporter {
 public:
  explicit DatadogExporter(DatadogOptions options = {}, HttpTools tools = NativeHttpTools());
};

}  // namespace strobe
