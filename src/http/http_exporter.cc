#include "strobe/http/http_exporter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "file_client.h"

namespace strobe {
namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;
// Profiles that were delivered in part, and whose rest waits. The oldest is forgotten, and would be
// sent again.
constexpr std::size_t kMaxPartlyDelivered = 64;

// A time of at least half of `most`, at random: so that many processes do not return at once.
std::chrono::milliseconds Jittered(std::chrono::milliseconds most, double random) {
  return std::chrono::milliseconds(
      static_cast<std::int64_t>(static_cast<double>(most.count()) * (0.5 + random / 2)));
}

SpoolOptions SpoolOptionsFor(const HttpOptions& options, const HttpTools& tools,
                             std::string_view backend) {
  return {.directory = tools.directories->AbsolutePath(*options.spool_directory),
          .name = absl::StrCat(std::string(backend), ".", tools.program),
          .max_bytes = static_cast<std::uint64_t>(*options.spool_bytes),
          .max_age_ns =
              static_cast<std::int64_t>(*options.spool_age_s * static_cast<double>(kNsPerSecond))};
}

// What errors must not show: the secrets, each as it is and as its parts ("Bearer KEY").
std::vector<std::string> SecretsOf(const HttpEndpoint& endpoint, const HttpOptions& options) {
  std::vector<std::string> secrets;
  for (const HttpHeader& header : endpoint.headers) {
    if (!header.is_secret) continue;
    secrets.push_back(header.value);
    secrets.push_back(header.value.substr(header.value.find(' ') + 1));
    std::string user;
    if (!header.value.starts_with("Basic ") || !absl::Base64Unescape(secrets.back(), &user))
      continue;
    secrets.push_back(user);
    secrets.push_back(user.substr(user.find(':') + 1));
  }
  if (const std::size_t query = endpoint.url.find('?'); query != std::string::npos)
    secrets.push_back(endpoint.url.substr(query + 1));
  secrets.push_back(options.http_proxy->Reveal());
  secrets.push_back(options.https_proxy->Reveal());
  std::erase(secrets, "");
  return secrets;
}

}  // namespace

HttpExporter::HttpExporter(absl::StatusOr<std::shared_ptr<const HttpBackend>> backend,
                           HttpOptions options, HttpTools tools)
    : backend_(std::move(backend)),
      options_(std::move(options)),
      tools_(std::move(tools)),
      configuration_(backend_.status()) {
  if (configuration_.ok()) configuration_ = Validate(options_);
  if (configuration_.ok()) secrets_ = SecretsOf((*backend_)->endpoint(), options_);
}

absl::Status HttpExporter::Check() const {
  if (configuration_.ok()) return absl::OkStatus();
  return absl::FailedPreconditionError(configuration_.message());  // it refuses no profile
}

absl::StatusOr<std::string> HttpExporter::Export(const ExportRequest& request) {
  if (absl::Status status = Prepare(); !status.ok()) return status;
  const absl::StatusOr<Messages> messages = backend().Build(request);
  if (!messages.ok()) return messages.status();
  const ExportDeadline deadline = Deadline(request.deadline);
  if (!spool_) {
    return ExportDirectly(*messages, absl::StrCat(request.profile.sequence), deadline);
  }
  absl::StatusOr<std::string> result = ExportThroughSpool(*messages, request, deadline);
  if (last_status_.ok() && !request.has_newer) SendSpooled(Deadline(request.deadline));
  return result;
}

absl::Status HttpExporter::Prepare() {
  if (absl::Status status = Check(); !status.ok()) return status;
  if (client_ != nullptr) return absl::OkStatus();
  const HttpEndpoint& endpoint = backend().endpoint();
  client_ = endpoint.file.empty() ? tools_.make_client(ClientOptionsFor(options_, endpoint.url))
                                  : internal::MakeFileClient(*tools_.directories, endpoint.file);
  if (!options_.spool_directory->empty())
    spool_.emplace(*tools_.directories, SpoolOptionsFor(options_, tools_, backend().name()));
  return absl::OkStatus();
}

absl::StatusOr<std::string> HttpExporter::ExportDirectly(const Messages& messages,
                                                         const std::string& key,
                                                         const ExportDeadline& deadline) {
  if (tools_.now() < paused_until_) return Paused().status;
  const Judgement judgement =
      Deliver(messages, key, static_cast<int>(*options_.attempts), deadline);
  if (judgement.verdict != Verdict::kDelivered) return judgement.status;
  ++account_.delivered;
  return absl::StrCat(ShownUrl(backend().endpoint().url), "#", key);
}

absl::StatusOr<std::string> HttpExporter::ExportThroughSpool(const Messages& messages,
                                                             const ExportRequest& request,
                                                             const ExportDeadline& deadline) {
  const absl::StatusOr<Spool::Entry> entry = spool_->Add(
      internal::SerializeMessages(messages), internal::AmountOf(request.profile), tools_.unix_ns());
  if (!entry.ok()) {
    absl::StatusOr<std::string> sent =
        ExportDirectly(messages, absl::StrCat(request.profile.sequence), deadline);
    if (sent.ok()) return sent;
    return absl::Status(
        sent.status().code(),
        absl::StrCat(sent.status().message(), "; and the spool: ", entry.status().message()));
  }
  if (tools_.now() < paused_until_) return spool_->PathOf(*entry);
  const Judgement judgement =
      Deliver(messages, entry->file, static_cast<int>(*options_.attempts), deadline);
  if (judgement.verdict != Verdict::kDelivered && judgement.verdict != Verdict::kRefused)
    return spool_->PathOf(*entry);
  spool_->Remove(*entry);
  if (judgement.verdict == Verdict::kRefused) return judgement.status;
  ++account_.delivered;
  return Place(request);
}

// The first failure ends it: the server is tried again when the next profile comes. No send begins
// in the second half of the time: a server may have taken what the deadline cuts off, and would get
// it twice.
void HttpExporter::SendSpooled(const ExportDeadline& deadline) {
  spool_->MoveOn(tools_.unix_ns());
  const auto now = std::chrono::steady_clock::now();
  const ExportDeadline last_begin = deadline.By(now + (deadline.time() - now) / 2);
  while (!last_begin.HasPassed()) {
    const std::optional<Spool::Entry> entry = spool_->Oldest(tools_.unix_ns());
    if (!entry) return;
    const absl::StatusOr<std::string> bytes = spool_->Read(*entry);
    if (!bytes.ok()) continue;  // it has been set aside
    const std::optional<Messages> messages = internal::ParseMessages(*bytes);
    if (!messages) {
      spool_->Drop(*entry, ExportDrop::kUnreadable);
      continue;
    }
    const Judgement judgement = Deliver(*messages, entry->file, /*attempts=*/1, deadline);
    if (judgement.verdict == Verdict::kDelivered) {
      ++account_.delivered;
      spool_->Remove(*entry);
    } else if (judgement.verdict == Verdict::kRefused) {
      spool_->Drop(*entry, ExportDrop::kRefused);
    } else {
      return;
    }
  }
}

// Sends what has not been delivered of a profile yet.
Judgement HttpExporter::Deliver(const Messages& messages, const std::string& key, int attempts,
                                const ExportDeadline& deadline) {
  const auto known = partly_delivered_.find(key);
  std::size_t done = known == partly_delivered_.end() ? 0 : known->second;
  Judgement judgement;
  std::chrono::milliseconds wait = kFirstWait;
  for (int attempt = 1;; ++attempt) {
    judgement = SendAll(messages, done, deadline);
    // A server that has named a time, or has not answered in time, is not asked again at once.
    const bool is_final = judgement.verdict != Verdict::kRetry || retry_after_ ||
                          absl::IsDeadlineExceeded(judgement.status);
    if (is_final || attempt >= attempts || deadline.HasPassed()) break;
    tools_.wait(tools_.now() + Jittered(wait, tools_.random()), deadline);
    wait *= 2;
  }
  if (known != partly_delivered_.end()) partly_delivered_.erase(known);
  const bool is_settled =
      judgement.verdict == Verdict::kDelivered || judgement.verdict == Verdict::kRefused;
  if (!is_settled && done > 0) {
    if (partly_delivered_.size() >= kMaxPartlyDelivered)
      partly_delivered_.erase(partly_delivered_.begin());
    partly_delivered_[key] = done;
  }
  judgement.status = WithoutSecrets(judgement.status);
  last_status_ = is_settled ? absl::OkStatus() : judgement.status;
  account_.last_error = std::string(judgement.status.message());
  is_settled ? void(next_pause_ = kMinPause) : Pause(judgement.verdict);
  return judgement;
}

// Sends the messages from number `done` on. A message that is refused does not keep those after it
// from being sent, but its refusal is the result.
Judgement HttpExporter::SendAll(const Messages& messages, std::size_t& done,
                                const ExportDeadline& deadline) {
  Judgement result{.verdict = Verdict::kDelivered, .status = absl::OkStatus()};
  for (; done < messages.size(); ++done) {
    Judgement judgement = Send(messages[done], deadline);
    if (judgement.verdict == Verdict::kDelivered) continue;
    const bool is_refusal = judgement.verdict == Verdict::kRefused;
    result = std::move(judgement);
    if (!is_refusal) break;
  }
  return result;
}

Judgement HttpExporter::Send(const HttpMessage& message, const ExportDeadline& deadline) {
  retry_after_.reset();
  const HttpEndpoint& endpoint = backend().endpoint();
  HttpRequest request{.url = endpoint.url,
                      .unix_socket = endpoint.unix_socket,
                      .headers = endpoint.headers,
                      .body = message.body};
  if (!message.query.empty()) {
    const bool has_query = endpoint.url.find('?') != std::string::npos;
    absl::StrAppend(&request.url, has_query ? "&" : "?", message.query);
  }
  request.headers.insert(request.headers.end(), message.headers.begin(), message.headers.end());
  if (deadline.HasPassed()) {
    return {.verdict = Verdict::kRetry,
            .status = absl::DeadlineExceededError("there was no time left to send it")};
  }
  absl::StatusOr<HttpResponse> response = client_->Post(request, deadline);
  if (!response.ok()) {
    const bool is_wrong =
        absl::IsFailedPrecondition(response.status()) || absl::IsInvalidArgument(response.status());
    return {.verdict = is_wrong ? Verdict::kStop : Verdict::kRetry,
            .status = is_wrong ? absl::FailedPreconditionError(response.status().message())
                               : response.status()};
  }
  response->body = WithoutSecrets(response->body);  // before it is cut to what an error shows
  Judgement judgement = backend().Judge(*response);
  if (judgement.verdict == Verdict::kRetry)
    retry_after_ = RetryAfter(response->retry_after, tools_.unix_ns() / kNsPerSecond);
  return judgement;
}

void HttpExporter::Pause(Verdict verdict) {
  std::chrono::milliseconds pause = verdict == Verdict::kStop ? kMaxPause : next_pause_;
  next_pause_ = std::min<std::chrono::milliseconds>(next_pause_ * 2, kMaxPause);
  pause = Jittered(pause, tools_.random());
  if (retry_after_) pause = std::max<std::chrono::milliseconds>(pause, *retry_after_);
  paused_until_ = tools_.now() + pause;
}

Judgement HttpExporter::Paused() const {
  return {.verdict = Verdict::kRetry, .status = last_status_};
}

std::string HttpExporter::WithoutSecrets(std::string_view text) const {
  std::string result(text);
  for (const std::string& secret : secrets_) absl::StrReplaceAll({{secret, "(secret)"}}, &result);
  return result;
}

// The status as people may see it.
absl::Status HttpExporter::WithoutSecrets(const absl::Status& status) const {
  if (status.ok()) return status;
  const absl::string_view message = status.message();
  return {status.code(),
          absl::StrCat(std::string(backend().name()), ": ", ShownUrl(backend().endpoint().url),
                       ": ", WithoutSecrets({message.data(), message.size()}))};
}

ExportDeadline HttpExporter::Deadline(const ExportDeadline& given) const {
  return given.By(std::chrono::steady_clock::now() +
                  std::chrono::milliseconds(static_cast<std::int64_t>(*options_.timeout_s * 1e3)));
}

std::string HttpExporter::Place(const ExportRequest& request) const {
  return absl::StrCat(ShownUrl(backend().endpoint().url), "#", request.profile.sequence);
}

ExporterAccount HttpExporter::account() const {
  ExporterAccount account = account_;
  if (spool_) {
    account.spool = spool_->stats();
    account.drops = spool_->drops();
    account.amount_dropped = spool_->amount_dropped();
  }
  return account;
}

}  // namespace strobe
