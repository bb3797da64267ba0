#include "strobe/http/http_backend.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace strobe {
namespace {

// The longest wait that a server can ask for.
constexpr std::chrono::seconds kMaxRetryAfter = std::chrono::hours(1);
// What an error shows of an answer.
constexpr std::size_t kMaxShownBytes = 200;

absl::StatusCode CodeOf(int status) {
  switch (status) {
    case 401: return absl::StatusCode::kUnauthenticated;
    case 403: return absl::StatusCode::kPermissionDenied;
    case 404: return absl::StatusCode::kNotFound;
    case 413: return absl::StatusCode::kOutOfRange;
    case 429: return absl::StatusCode::kResourceExhausted;
    default: return absl::StatusCode::kUnavailable;
  }
}

Verdict VerdictOf(int status) {
  constexpr std::array kRefusals{400, 413, 415, 422};
  constexpr std::array kDiscarding{408, 425, 429};
  if (status >= 200 && status < 300) return Verdict::kDelivered;
  if (std::ranges::find(kRefusals, status) != kRefusals.end()) return Verdict::kRefused;
  if (status >= 500 && status < 600) return Verdict::kRetry;
  return std::ranges::find(kDiscarding, status) != kDiscarding.end() ? Verdict::kRetry
                                                                     : Verdict::kStop;
}

void AppendText(std::string& bytes, std::string_view text) {
  std::uint64_t size = text.size();
  for (int i = 0; i < 8; ++i, size >>= 8) bytes += static_cast<char>(size & 0xFF);
  bytes += text;
}
void AppendNumber(std::string& bytes, std::uint64_t number) {
  for (int i = 0; i < 8; ++i, number >>= 8) bytes += static_cast<char>(number & 0xFF);
}

// Reads what the two above write. After an error, all reads fail.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  std::uint64_t Number() {
    if (bytes_.size() < 8) {
      has_failed_ = true;
      bytes_ = {};
      return 0;
    }
    std::uint64_t number = 0;
    for (int i = 7; i >= 0; --i) {
      number = number << 8 | static_cast<unsigned char>(bytes_[static_cast<std::size_t>(i)]);
    }
    bytes_.remove_prefix(8);
    return number;
  }
  std::string Text() {
    const std::uint64_t size = Number();
    has_failed_ = has_failed_ || size > bytes_.size();
    if (has_failed_) return {};
    std::string text(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return text;
  }
  // The number of items that follow, each of at least 8 bytes.
  std::uint64_t Count() {
    const std::uint64_t count = Number();
    has_failed_ = has_failed_ || count > bytes_.size() / 8;
    return has_failed_ ? 0 : count;
  }
  [[nodiscard]] bool HasReadAll() const { return !has_failed_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool has_failed_ = false;
};

}  // namespace

Judgement JudgeByStatus(const HttpResponse& response) {
  const Verdict verdict = VerdictOf(response.status);
  if (verdict == Verdict::kDelivered) return {.verdict = verdict, .status = absl::OkStatus()};
  std::string text = absl::StrCat("the server answered ", response.status);
  if (response.status >= 300 && response.status < 400)
    absl::StrAppend(&text, ", a redirect, which is not followed");
  if (!response.body.empty()) {
    const std::size_t shown = std::min(response.body.size(), kMaxShownBytes);
    absl::StrAppend(&text, ": ", absl::CHexEscape(absl::string_view(response.body.data(), shown)));
  }
  absl::StatusCode code = CodeOf(response.status);
  if (verdict == Verdict::kRefused && code != absl::StatusCode::kOutOfRange)
    code = absl::StatusCode::kInvalidArgument;
  return {.verdict = verdict, .status = absl::Status(code, text)};
}

std::optional<std::chrono::seconds> RetryAfter(std::string_view header, std::int64_t unix_now_s) {
  const absl::string_view text(header.data(), header.size());
  std::int64_t seconds = 0;
  if (!absl::SimpleAtoi(text, &seconds)) {
    absl::Time time;
    std::string error;
    if (!absl::ParseTime("%a, %d %b %Y %H:%M:%S GMT", text, &time, &error)) return std::nullopt;
    seconds = absl::ToUnixSeconds(time) - unix_now_s;
  }
  return std::clamp(std::chrono::seconds(seconds), std::chrono::seconds(0), kMaxRetryAfter);
}

namespace internal {

std::string SerializeMessages(const std::vector<HttpMessage>& messages) {
  std::string bytes;
  AppendNumber(bytes, messages.size());
  for (const HttpMessage& message : messages) {
    AppendText(bytes, message.query);
    AppendNumber(bytes, message.headers.size());
    for (const HttpHeader& header : message.headers) {
      AppendText(bytes, header.name);
      AppendText(bytes, header.value);
    }
    AppendText(bytes, message.body);
  }
  return bytes;
}

std::optional<std::vector<HttpMessage>> ParseMessages(std::string_view bytes) {
  Reader reader(bytes);
  std::vector<HttpMessage> messages(reader.Count());
  for (HttpMessage& message : messages) {
    message.query = reader.Text();
    message.headers.resize(reader.Count());
    for (HttpHeader& header : message.headers) {
      header.name = reader.Text();
      header.value = reader.Text();
    }
    message.body = reader.Text();
  }
  if (!reader.HasReadAll() || messages.empty()) return std::nullopt;
  return messages;
}

std::int64_t AmountOf(const Profile& profile) {
  const std::size_t columns = profile.value_types.size();
  std::uint64_t amount = 0;  // forged weights may make it wrap
  for (std::size_t i = profile.default_value_type; columns != 0 && i < profile.values.size();
       i += columns) {
    amount += static_cast<std::uint64_t>(profile.values[i]);
  }
  return static_cast<std::int64_t>(amount);
}

}  // namespace internal
}  // namespace strobe
