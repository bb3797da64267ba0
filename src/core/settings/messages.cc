#include "strobe/core/settings/messages.h"

#include <atomic>
#include <utility>

#include "strobe/base/keep_for_ever.h"
#include "strobe/core/settings/known_variables.h"

namespace strobe {
namespace {

constinit std::atomic<MessageSink> message_sink{nullptr};
constinit std::atomic<bool> ignores_variables{false};
constinit std::atomic<const internal::MessageTarget*> message_target{nullptr};

}  // namespace

MessageSink SetMessageSink(MessageSink sink) noexcept {
  return message_sink.exchange(sink, std::memory_order_acq_rel);
}

void IgnoreVariables() noexcept { ignores_variables.store(true, std::memory_order_release); }

namespace internal {

MessageTarget ParseMessageTarget(const std::optional<std::string>& value) {
  using Kind = MessageTarget::Kind;
  if (!value || value->empty() || *value == "stderr") return {};
  if (*value == "none") return {.kind = Kind::kNone};
  if (*value == "syslog") return {.kind = Kind::kSystemLog};
  return {.kind = Kind::kFile, .path = *value};
}

void KeepMessageTarget(const std::optional<std::string>& value) {
  MessageTarget target = ParseMessageTarget(value);
  const MessageTarget* const before = message_target.load(std::memory_order_acquire);
  if (before != nullptr && *before == target) return;
  auto* const kept = new MessageTarget(std::move(target));
  KeepForEver(kept);
  message_target.store(kept, std::memory_order_release);
}

const MessageTarget& CurrentMessageTarget(std::optional<std::string> (*environment)(const char*)) {
  if (message_target.load(std::memory_order_acquire) == nullptr)
    KeepMessageTarget(environment(kMessagesVariable));
  return *message_target.load(std::memory_order_acquire);
}

MessageSink CurrentMessageSink() noexcept { return message_sink.load(std::memory_order_acquire); }

bool IsIgnoredVariable(std::string_view name) noexcept {
  return ignores_variables.load(std::memory_order_acquire) && name.starts_with(kVariablePrefix);
}

}  // namespace internal
}  // namespace strobe
