// PyroscopeExporter: profiles to a Pyroscope server, or to Grafana Cloud.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "strobe/core/options.h"
#include "strobe/core/settings/secret.h"
#include "strobe/http/http_exporter.h"
#include "strobe/http/native_http.h"

namespace strobe {

struct PyroscopeOptions {
  Option<Secret> url = Option<Secret>::Default{"http://localhost:4040"};  // may have a password
  Option<std::string> application = Option<std::string>::Default{""};     // empty: the program's
  Option<std::string> labels = Option<std::string>::Default{""};          // "key=value,key=value"
  Option<std::string> user = Option<std::string>::Default{""};            // of basic authentication
  Option<Secret> password = Option<Secret>::Default{{}};
  Option<Secret> token = Option<Secret>::Default{{}};  // sent as a bearer token
  Option<std::string> tenant = Option<std::string>::Default{""};
  HttpOptions http = {};
};

std::span<const BasicOptionRow<PyroscopeOptions>> PyroscopeOptionTable();

// POST /ingest. Pyroscope gives a profile one name by its value types, so a profile with several
// kinds of them (CPU, wall, memory) becomes several requests. InvalidArgument names the option that
// is wrong.
absl::StatusOr<std::shared_ptr<const HttpBackend>> MakePyroscopeBackend(
    const PyroscopeOptions& options);

// The profiler's options, with periods of 10 s, which Pyroscope expects, or what
// PYROSCOPE_UPLOAD_INTERVAL says, where code has set none. STROBE_* variables beat these.
ProfilerOptions PyroscopeProfilerOptions(ProfilerOptions options = {});

//   strobe::BasicProfiler<MyTraits> profiler(strobe::PyroscopeProfilerOptions(),
//                                            {.exporter = strobe::PyroscopeExporter()});
// Code beats the environment, which is read here.
class PyroscopeExporter : public HttpExporter {
 public:
  explicit PyroscopeExporter(PyroscopeOptions options = {}, HttpTools tools = NativeHttpTools());
};

}  // namespace strobe
