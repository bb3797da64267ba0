// MangledText: a mangled name, read from left to right, and the text that is written of it. Names
// refer back to their own parts, so a few hostile bytes can stand for megabytes: time, memory and
// depth are bounded.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace strobe::internal {

// The base of a reader for one language. A reader calls Fail where the text does not follow the
// language's grammar; then nothing more is read or written.
class MangledText {
 public:
  // A longer text is of no use.
  static constexpr std::size_t kMaxWrittenBytes = std::size_t{64} << 10;
  static constexpr int kMaxDepth = 200;
  static constexpr int kMaxSteps = 1 << 16;

 protected:
  explicit MangledText(std::string_view text) : text_(text) {}

  // To be held in each function that may call itself.
  class Level {
   public:
    explicit Level(MangledText& text) : text_(text) {
      if (++text_.depth_ > kMaxDepth) text_.Fail();
      text_.Step();
    }
    ~Level() { --text_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    MangledText& text_;
  };

  void Fail() { failed_ = true; }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] std::size_t place() const { return place_; }
  [[nodiscard]] std::size_t text_bytes() const { return text_.size(); }
  [[nodiscard]] bool at_end() const { return place_ >= text_.size(); }
  [[nodiscard]] std::string_view rest() const { return text_.substr(place_); }
  [[nodiscard]] char Peek() const { return at_end() ? '\0' : text_[place_]; }
  char Next() {
    if (at_end()) Fail();
    return at_end() ? '\0' : text_[place_++];
  }
  // What the last Next has taken.
  void PutBack() { --place_; }
  bool Take(char c) {
    if (failed_ || Peek() != c) return false;
    ++place_;
    return true;
  }
  bool Take(std::string_view word) {
    if (failed_ || !rest().starts_with(word)) return false;
    place_ += word.size();
    return true;
  }
  std::string_view TakeBytes(std::size_t bytes) {
    if (bytes > rest().size()) Fail();
    if (failed_) return {};
    const std::string_view taken = text_.substr(place_, bytes);
    place_ += bytes;
    return taken;
  }
  // All letters from here on that are of a kind.
  template <class Is>
  std::string_view TakeWhile(Is&& is) {
    std::size_t bytes = 0;
    while (bytes < rest().size() && is(rest()[bytes])) ++bytes;
    return TakeBytes(bytes);
  }
  // Calls `read` at an earlier place.
  template <class Read>
  void ReadAt(std::size_t place, Read&& read) {
    const std::size_t next = std::exchange(place_, place);
    read();
    place_ = next;
  }
  // Calls `read`, and goes back to where it began unless it returns true. True if it did, and the
  // text followed the grammar.
  template <class Read>
  bool Try(Read&& read) {
    const std::size_t place = place_;
    const std::size_t bytes = out_.size();
    if (failed_ || (read() && !failed_)) return !failed_;
    failed_ = is_exhausted_;
    place_ = place;
    out_.resize(bytes);
    return false;
  }

  void Write(std::string_view text) {
    if (failed_) return;
    out_.append(text);
    written_bytes_ += text.size();
    if (out_.size() > kMaxWrittenBytes || written_bytes_ > kMaxWrittenInAll) Exhaust();
    Step();
  }
  // Takes back what was written from `begin` on.
  std::string Cut(std::size_t begin) {
    std::string text = begin < out_.size() ? out_.substr(begin) : std::string();
    out_.resize(out_.size() - text.size());
    return text;
  }
  // Empty unless the text was read whole.
  std::string Finish() { return failed_ || !at_end() ? std::string() : std::move(out_); }

  [[nodiscard]] const std::string& written_text() const { return out_; }

 private:
  // Text that is cut and written again counts each time.
  static constexpr std::size_t kMaxWrittenInAll = kMaxDepth * kMaxWrittenBytes;

  void Exhaust() { failed_ = is_exhausted_ = true; }
  void Step() {
    if (++steps_ > kMaxSteps) Exhaust();
  }

  const std::string_view text_;
  std::size_t place_ = 0;
  std::string out_;
  std::size_t written_bytes_ = 0;
  int depth_ = 0;
  int steps_ = 0;
  bool failed_ = false;
  bool is_exhausted_ = false;
};

}  // namespace strobe::internal
