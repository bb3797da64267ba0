// The HTTP client of this build (libcurl; on Windows WinHTTP), and the tools of HTTP exporters.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "strobe/export/http_client.h"
#include "strobe/http/http_exporter.h"

namespace strobe {

// A client of the library that this build has.
std::unique_ptr<HttpClient> MakeNativeHttpClient(const HttpClientOptions& options);

// The system's clocks and directories, and MakeNativeHttpClient. Initialises the HTTP library. That
// reads the environment, so call it where the Profiler is constructed. Exporters' constructors do.
HttpTools NativeHttpTools();

namespace internal {

// Initialises the HTTP library, once.
void InitializeNativeHttp();

// The environment of exporters' options: none in a program with more rights than its user.
std::optional<std::string> NativeEnvironment(const char* name);
// Writes a line for people on standard error.
void NativeWarn(const std::string& line);

}  // namespace internal
}  // namespace strobe
