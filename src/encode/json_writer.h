// JsonWriter: writes JSON into one growing text, value by value. A library would build the whole
// document in memory first, or be a dependency for this much code.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "strobe/base/amounts.h"
#include "strobe/core/thread_info.h"

namespace strobe::internal {

// Commas are written where they belong. The caller closes what it opens, and writes a key before
// each value of an object. Objects have the members in the order in which they were written.
class JsonWriter {
 public:
  [[nodiscard]] std::size_t size() const { return text_.size(); }
  [[nodiscard]] std::string_view text() const { return text_; }
  // The text; the writer is empty afterwards.
  [[nodiscard]] std::string Take() {
    needs_comma_ = false;
    return std::exchange(text_, {});
  }

  void BeginObject() { Begin('{'); }
  void EndObject() { End('}'); }
  void BeginArray() { Begin('['); }
  void EndArray() { End(']'); }

  void Key(std::string_view key) {
    String(key);
    text_ += ':';
    needs_comma_ = false;
  }

  void String(std::string_view value) {
    Raw("\"");
    const bool is_ascii =
        std::ranges::all_of(value, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    if (is_ascii) {
      Escape(value);
    } else {
      Escape(ValidUtf8(value));
    }
    text_ += '"';
  }
  void Number(std::int64_t value) {
    Raw("");
    absl::StrAppend(&text_, value);
  }
  // value / 1,000,000, exactly: nanoseconds as milliseconds.
  void Millionths(std::int64_t value) {
    Raw(value < 0 ? "-" : "");
    const std::uint64_t size = Magnitude(value);
    absl::StrAppend(&text_, size / 1'000'000);
    if (size % 1'000'000 == 0) return;
    absl::StrAppend(&text_, ".", absl::Dec(size % 1'000'000, absl::kZeroPad6));
    text_.resize(text_.find_last_not_of('0') + 1);
  }
  void Bool(bool value) { Raw(value ? "true" : "false"); }
  void Null() { Raw("null"); }

  // A value that is JSON already.
  void Raw(std::string_view json) {
    if (needs_comma_) text_ += ',';
    text_ += json;
    needs_comma_ = true;
  }

  void Member(std::string_view key, std::string_view value) {
    Key(key);
    String(value);
  }
  void Member(std::string_view key, const char* value) { Member(key, std::string_view(value)); }
  void Member(std::string_view key, std::int64_t value) {
    Key(key);
    Number(value);
  }
  void Member(std::string_view key, bool value) {
    Key(key);
    Bool(value);
  }

 private:
  void Begin(char bracket) {
    Raw(std::string_view(&bracket, 1));
    needs_comma_ = false;
  }
  void End(char bracket) {
    text_ += bracket;
    needs_comma_ = true;
  }

  // The text can stand in an HTML script: it holds neither "</" nor "<!".
  void Escape(std::string_view value) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      const char c = value[i];
      const bool is_tag =
          c == '<' && i + 1 < value.size() && (value[i + 1] == '/' || value[i + 1] == '!');
      if (c == '"' || c == '\\') {
        text_ += '\\';
        text_ += c;
      } else if (static_cast<unsigned char>(c) < 0x20 || is_tag) {
        absl::StrAppend(&text_, "\\u", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad4));
      } else {
        text_ += c;
      }
    }
  }

  std::string text_;
  bool needs_comma_ = false;
};

}  // namespace strobe::internal
