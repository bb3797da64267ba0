// Progress: a line on the terminal while the command works.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "terminal.h"
#include "text.h"

namespace strobe::internal {

// Says on a terminal what takes longer than a second.
class Progress {
 public:
  explicit Progress(const Terminal& terminal) : is_shown_(terminal.shows_errors) {}
  ~Progress() { Clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Clear() {
    if (std::exchange(is_printed_, false)) std::fputs("\r\033[K", stderr);
  }
  void Read(const std::string& path, std::uint64_t bytes) {
    Print(absl::StrCat("reading ", path, ": ",
                       AmountText(static_cast<std::int64_t>(bytes), "bytes")));
  }
  void Print(const std::string& text) {
    const auto now = std::chrono::steady_clock::now();
    if (!is_shown_ || now < next_) return;
    next_ = now + std::chrono::milliseconds(200);
    is_printed_ = true;
    std::fprintf(stderr, "\r\033[K%s", text.c_str());
    std::fflush(stderr);
  }

 private:
  bool is_shown_;
  bool is_printed_ = false;
  std::chrono::steady_clock::time_point next_ =
      std::chrono::steady_clock::now() + std::chrono::seconds(1);
};

}  // namespace strobe::internal
