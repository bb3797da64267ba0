#pragma once

#include <memory>
#include <string>

#include "strobe/export/http_client.h"
#include "strobe/export/profile_directories.h"

namespace strobe::internal {

// A client that writes each request to a file of its own, "<path>.<number>", for this user alone,
// and answers 200. A secret header has "(secret)" for its value. `directories` must outlive it.
std::unique_ptr<HttpClient> MakeFileClient(const ProfileDirectories& directories,
                                           const std::string& path);

}  // namespace strobe::internal
