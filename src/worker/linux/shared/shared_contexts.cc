#include "strobe/worker/shared/shared_contexts.h"

#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace strobe::internal {
namespace {

constexpr unsigned kPlaceShift = 32;

}  // namespace

std::size_t SharedLabels::BytesOf(const LabelSet& set) {
  std::size_t bytes = 0;
  for (const Label& label : set.labels()) {
    const auto* const text = std::get_if<std::string>(&label.value);
    bytes += sizeof(LabelHead) + label.key.size() +
             (text != nullptr ? text->size() : sizeof(std::int64_t));
  }
  return bytes;
}

void SharedLabels::Write(const LabelSet& set, char* to) {
  const auto put = [&to](const void* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
    to += bytes;
  };
  for (const Label& label : set.labels()) {
    const auto* const text = std::get_if<std::string>(&label.value);
    const LabelHead head{.key_bytes = static_cast<std::uint16_t>(label.key.size()),
                         .text_bytes = text != nullptr ? static_cast<std::uint16_t>(text->size())
                                                       : LabelHead::kIsNumber};
    put(&head, sizeof(head));
    put(label.key.data(), label.key.size());
    if (text != nullptr) {
      put(text->data(), text->size());
    } else {
      put(&std::get<std::int64_t>(label.value), sizeof(std::int64_t));
    }
  }
}

void SharedLabels::Add(std::uint64_t number, const LabelSet& set) noexcept {
  if (number >= kNumbers || places_[number].load(std::memory_order_relaxed) != 0) return;
  const std::size_t bytes = BytesOf(set);
  if (bytes > kMaxSetBytes || used_bytes_.load(std::memory_order_relaxed) > kBytes) return;
  const std::uint64_t begin = used_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (begin > kBytes - bytes) return;
  Write(set, bytes_.data() + begin);
  std::uint64_t none = 0;
  places_[number].compare_exchange_strong(none, begin << kPlaceShift | bytes,
                                          std::memory_order_release, std::memory_order_relaxed);
}

std::optional<LabelSet> SharedLabels::Find(std::uint64_t number) const {
  if (number >= kNumbers) return std::nullopt;
  const std::uint64_t place = places_[number].load(std::memory_order_acquire);
  const std::uint64_t begin = place >> kPlaceShift;
  const std::uint64_t bytes = place & 0xFFFFFFFF;
  if (bytes == 0 || bytes > kMaxSetBytes || begin > kBytes - bytes) return std::nullopt;
  // A copy: the other process may change the bytes at any time.
  const std::string copy(bytes_.data() + begin, bytes);
  std::vector<Label> labels;
  for (std::string_view rest = copy; !rest.empty();) {
    LabelHead head;
    if (rest.size() < sizeof(head) || labels.size() == LabelSet::kMaxLabels) return std::nullopt;
    std::memcpy(&head, rest.data(), sizeof(head));
    rest.remove_prefix(sizeof(head));
    const bool is_number = head.text_bytes == LabelHead::kIsNumber;
    const std::size_t value_bytes = is_number ? sizeof(std::int64_t) : head.text_bytes;
    if (rest.size() < head.key_bytes + value_bytes) return std::nullopt;
    Label& label = labels.emplace_back(Label{std::string(rest.substr(0, head.key_bytes)), {}});
    rest.remove_prefix(head.key_bytes);
    if (is_number) {
      std::memcpy(&label.value.emplace<std::int64_t>(), rest.data(), sizeof(std::int64_t));
    } else {
      label.value = std::string(rest.substr(0, value_bytes));
    }
    rest.remove_prefix(value_bytes);
  }
  return LabelSet(std::move(labels));
}

}  // namespace strobe::internal
