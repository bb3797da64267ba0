// ParcaExporter: profiles to a Parca server.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "strobe/core/options.h"
#include "strobe/core/settings/secret.h"
#include "strobe/http/http_exporter.h"
#include "strobe/http/native_http.h"

namespace strobe {

struct ParcaOptions {
  Option<Secret> url = Option<Secret>::Default{"http://localhost:7070"};  // may have a password
  Option<std::string> job = Option<std::string>::Default{""};             // empty: the program's
  Option<std::string> labels = Option<std::string>::Default{""};          // "key=value,key=value"
  Option<Secret> token = Option<Secret>::Default{{}};                     // sent as a bearer token
  HttpOptions http = {};
};

std::span<const BasicOptionRow<ParcaOptions>> ParcaOptionTable();

// The most series of one request. Further threads share one, named kOtherThreads.
inline constexpr std::size_t kMaxParcaSeries = 64;
inline constexpr const char* kOtherThreads = "(other threads)";

// WriteRaw over HTTP. Parca drops the labels of samples, so each thread is a series, with the label
// thread_name. InvalidArgument names the option that is wrong.
absl::StatusOr<std::shared_ptr<const HttpBackend>> MakeParcaBackend(const ParcaOptions& options);

//   strobe::BasicProfiler<MyTraits> profiler({}, {.exporter = strobe::ParcaExporter()});
// Code beats the environment, which is read here.
class ParcaExporter : public HttpExporter {
 public:
  explicit ParcaExporter(ParcaOptions options = {}, HttpTools tools = NativeHttpTools());
};

}  // namespace strobe
