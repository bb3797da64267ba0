// LiveView: what a live table shows, as text, and what keys change of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "commands/command.h"
#include "function_sums.h"
#include "keys.h"
#include "ui/pattern.h"
#include "ui/text.h"

namespace strobe::internal {

class LiveView {
 public:
  // `what` says what is watched.
  struct Options {
    std::string what;
    bool by_process = false;  // a row for each function and process name
    bool by_total = false;
    std::size_t max_bytes = FunctionSums::kMaxBytes;  // of each sum
  };
  explicit LiveView(const Options& options);

  // Adds the last period, which has taken `seconds`.
  void Add(const FilteredProfile& period, double seconds);

  // False if the key ends the view.
  bool Press(const Key& key);

  // Of a terminal.
  struct Size {
    std::size_t rows = 0;     // 0: as many as there are
    std::size_t columns = 0;  // 0: as wide as they are
  };
  // The lines of a screen: the head, what keys have chosen, and the table. Each fits the size.
  [[nodiscard]] std::vector<std::string> Screen(Size size, const Printer& printer) const;
  // The same without what keys have to do with: `rows` of functions (0: all), and a head.
  [[nodiscard]] std::string Table(std::size_t rows, std::size_t columns,
                                  const Printer& printer) const;
  // The last period as a line of JSON, with `rows` functions (0: all).
  [[nodiscard]] std::string Json(std::size_t rows) const;

 private:
  // Of a time.
  struct Part {
    explicit Part(const Options& options) : sums(options.by_process, options.max_bytes) {}

    FunctionSums sums;
    double seconds = 0;
    std::int64_t cpu_ns = 0;
    std::string type, unit;  // of the sums

    void Add(const FilteredProfile& period, double taken_s);
  };
  struct Parts {
    Part last, all;
  };

  [[nodiscard]] const Parts& shown() const { return frozen_ ? *frozen_ : parts_; }
  [[nodiscard]] const Part& part() const { return is_all_ ? shown().all : shown().last; }
  void Choose(const std::string& key);
  void EndTyping();
  [[nodiscard]] std::string Head() const;
  [[nodiscard]] std::string Choices() const;
  [[nodiscard]] std::string ColumnHeads() const;
  void AppendRows(std::vector<std::string>& lines, std::size_t rows, std::size_t columns) const;

  const Options options_;
  Parts parts_;
  std::optional<Parts> frozen_;  // what a pause shows
  bool is_all_ = false;          // since the begin, and not the last period
  bool by_total_;
  bool shows_keys_ = false;
  std::string filter_text_;
  Pattern filter_;
  std::optional<std::string> typed_;  // of the next filter, while it is typed
  std::string complaint_;             // about the last one
};

}  // namespace strobe::internal
