// PostExporter: each profile as the body of a POST to any URL.
#pragma once

#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "strobe/core/options.h"
#include "strobe/core/settings/secret.h"
#include "strobe/http/http_exporter.h"
#include "strobe/http/native_http.h"

namespace strobe {

struct PostOptions {
  // http://, https://, unix:///path/to.socket or file:///path. May have a user and a password.
  Option<Secret> url = Option<Secret>::Default{{}};
  // Headers of each request: "name=value,name=value". A value's special characters are encoded as
  // in URLs: "Authorization=Bearer%20KEY".
  Option<Secret> headers = Option<Secret>::Default{{}};
  HttpOptions http = {};
};

std::span<const BasicOptionRow<PostOptions>> PostOptionTable();

// The body is the encoder's bytes, Content-Type its media type. InvalidArgument names the option
// that is wrong.
absl::StatusOr<std::shared_ptr<const HttpBackend>> MakePostBackend(const PostOptions& options);

//   strobe::BasicProfiler<MyTraits> profiler({}, {.exporter = strobe::PostExporter()});
// Code beats the environment, which is read here.
class PostExporter : public HttpExporter {
 public:
  explicit PostExporter(PostOptions options = {}, HttpTools tools = NativeHttpTools());
};

}  // namespace strobe
