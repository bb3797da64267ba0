// PageReader: reads the data of a page of HtmlEncoder back, as its script does. It shares no code
// with the encoder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "strobe/testing/pprof_reader.h"

namespace strobe::testing {

struct PageContent {
  struct Row {
    std::string stack;   // "main:12;Outer:25;^Inlined:8", from the root
    std::string labels;  // "endpoint=/index.html,thread id=7"
    std::vector<std::int64_t> values;
  };
  struct Moment {
    std::size_t row = 0;        // of the first side
    std::uint64_t time_ns = 0;  // since the profile began
    std::vector<std::int64_t> values;
  };
  struct Side {
    std::string program;
    std::vector<Row> rows;
    std::vector<std::string> threads;  // "7 main 120": id, name, captures
    std::size_t life_count = 0;
    // "7 main 1 0 501 120": id, name, begin, end and CPU time as html_data.h has them, captures
    std::vector<std::string> lives;
    // Of each value type, by function; empty if the rows say it.
    std::vector<std::vector<std::int64_t>> selfs, totals;
  };
  std::uint64_t version = 0, default_type = 0, moment_stride = 0;
  std::vector<std::string> types, modules, functions;  // "cpu/nanoseconds"; paths; names
  std::size_t node_count = 0;                          // without the root
  std::vector<Side> sides;
  std::vector<Moment> moments;
};

class PageReader {
 public:
  // The content of a page; nullopt if it is not one, or has bytes beyond its end.
  static std::optional<PageContent> Read(std::string_view page) {
    constexpr std::string_view kBegin = "id=\"data\">";
    const std::size_t begin = page.find(kBegin);
    if (begin == std::string_view::npos) return std::nullopt;
    const std::string_view rest = page.substr(begin + kBegin.size());
    const std::string_view base64 = rest.substr(0, rest.find('<'));
    std::string packed;
    if (!absl::Base64Unescape(absl::string_view(base64.data(), base64.size()), &packed))
      return std::nullopt;
    const std::optional<std::string> bytes = Gunzip(packed);
    if (!bytes.has_value()) return std::nullopt;
    PageReader reader(*bytes);
    reader.ReadAll();
    if (!reader.is_ok_ || !reader.bytes_.empty()) return std::nullopt;
    return reader.content_;
  }

 private:
  using Numbers = std::vector<std::uint64_t>;

  explicit PageReader(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t Varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    is_ok_ = false;
    return 0;
  }

  std::string_view Bytes(std::uint64_t size) {
    if (size > bytes_.size()) is_ok_ = false;
    if (!is_ok_) return {};
    const std::string_view result = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return result;
  }

  Numbers Column() {
    const std::uint64_t count = Varint(), width = Varint(), divisor = Varint();
    Numbers result(is_ok_ ? count : 0);
    for (std::uint64_t plane = 0; plane < width; ++plane) {
      const std::string_view plane_bytes = Bytes(count);
      for (std::size_t i = 0; i < plane_bytes.size(); ++i)
        result[i] +=
            (std::uint64_t{static_cast<unsigned char>(plane_bytes[i])} << (8 * plane)) * divisor;
    }
    return result;
  }

  std::vector<std::int64_t> Values() {
    const Numbers sizes = Column(), negative = Column();
    std::vector<std::int64_t> values(sizes.begin(), sizes.end());
    for (const std::uint64_t place : negative) {
      if (place >= values.size()) is_ok_ = false;
      if (is_ok_) values[place] = static_cast<std::int64_t>(0 - sizes[place]);
    }
    return values;
  }

  Numbers Sums() {
    Numbers column = Column();
    for (std::size_t i = 1; i < column.size(); ++i) column[i] += column[i - 1];
    return column;
  }

  void ReadTexts() {
    const std::uint64_t count = Varint();
    std::string_view rest = Bytes(Varint());
    for (std::uint64_t i = 0; i < count; ++i) {
      texts_.emplace_back(rest.substr(0, rest.find('\0')));
      rest.remove_prefix(i + 1 < count ? texts_.back().size() + 1 : texts_.back().size());
    }
  }

  void ReadAll() {
    ReadTexts();
    const Numbers head = Column();
    if (head.size() != 4) is_ok_ = false;
    if (!is_ok_) return;
    content_.version = head[0];
    content_.default_type = head[2];
    content_.moment_stride = head[3];
    const Numbers types = Column(), units = Column();
    for (std::size_t i = 0; i < types.size(); ++i)
      content_.types.push_back(absl::StrCat(Text(types[i]), "/", Text(units[i])));
    ReadTree();
    ReadLabels();
    for (std::uint64_t side = 0; side < head[1]; ++side) ReadSide();
    ReadMoments();
  }

  void ReadTree() {
    for (const std::uint64_t path : Column()) content_.modules.push_back(Text(path));
    Column();  // build ids
    for (const std::uint64_t name : Column()) content_.functions.push_back(Text(name));
    for (int i = 0; i < 5; ++i) Column();  // short name, file, line, module, pseudo-frame
    const Numbers function = Column(), line = Column(), is_inlined = Column();
    const Numbers levels_up = Column(), site = Column();
    content_.node_count = site.size();
    stacks_.emplace_back();
    std::vector<std::size_t> path = {0};  // the nodes that are open
    for (std::size_t i = 0; i < site.size(); ++i) {
      path.resize(path.size() - levels_up[i]);
      const std::string& parent = stacks_[path.back()];
      stacks_.push_back(absl::StrCat(parent, parent.empty() ? "" : ";",
                                     is_inlined[site[i]] ? "^" : "",
                                     content_.functions[function[site[i]]], ":", line[site[i]]));
      path.push_back(i + 1);
    }
  }

  void ReadLabels() {
    const Numbers counts = Column(), keys = Column(), values = Column();
    std::size_t next = 0;
    for (const std::uint64_t count : counts) {
      std::string& set = label_sets_.emplace_back();
      for (const std::size_t end = next + count; next < end; ++next)
        absl::StrAppend(&set, set.empty() ? "" : ",", Text(keys[next]), "=", Text(values[next]));
    }
  }

  void ReadSide() {
    PageContent::Side& side = content_.sides.emplace_back();
    side.program = Text(Column()[0]);
    const Numbers ids = Column(), names = Column(), captures = Column();
    for (std::size_t i = 0; i < ids.size(); ++i)
      side.threads.push_back(absl::StrCat(Text(ids[i]), " ", Text(names[i]), " ", captures[i]));
    ReadLives(side);
    const Numbers nodes = Sums(), labels = Column();
    for (std::size_t i = 0; i < nodes.size(); ++i)
      side.rows.push_back({stacks_[nodes[i]], label_sets_[labels[i]], {}});
    for (std::size_t type = 0; type < content_.types.size(); ++type) {
      const std::vector<std::int64_t> column = Values();
      for (std::size_t i = 0; i < column.size(); ++i) side.rows[i].values.push_back(column[i]);
    }
    for (std::size_t type = 0; type < content_.types.size(); ++type) {
      side.selfs.push_back(Values());
      side.totals.push_back(Values());
    }
  }

  void ReadLives(PageContent::Side& side) {
    side.life_count = Column()[0];
    const Numbers ids = Column(), names = Column(), begins = Column(), ends = Column();
    const Numbers cpu = Column(), captures = Column();
    for (std::size_t i = 0; i < ids.size(); ++i)
      side.lives.push_back(absl::StrJoin(
          std::tuple(Text(ids[i]), Text(names[i]), begins[i], ends[i], cpu[i], captures[i]), " "));
  }

  void ReadMoments() {
    const Numbers rows = Column(), times = Sums();
    for (std::size_t i = 0; i < rows.size(); ++i)
      content_.moments.push_back({rows[i], times[i], {}});
    for (std::size_t type = 0; type < content_.types.size(); ++type) {
      const std::vector<std::int64_t> column = Values();
      for (std::size_t i = 0; i < column.size(); ++i)
        content_.moments[i].values.push_back(column[i]);
    }
  }

  [[nodiscard]] const std::string& Text(std::uint64_t index) const { return texts_.at(index); }

  std::string_view bytes_;
  bool is_ok_ = true;
  std::vector<std::string> texts_, stacks_, label_sets_;
  PageContent content_;
};

}  // namespace strobe::testing
