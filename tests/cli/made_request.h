// What a test asks of a command, and a printer without a terminal for what it says.
#pragma once

#include <string>

#include "../../src/cli/commands/command.h"

namespace strobe::internal {

inline const Printer& PlainPaper() {
  static const Printer printer{Terminal()};
  return printer;
}

template <std::string Request::*kField>
Request With(const std::string& text) {
  Request request;
  request.*kField = text;
  return request;
}

}  // namespace strobe::internal
