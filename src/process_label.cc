#include "strobe/process_label.h"

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "strobe/aggregate/label_table.h"
#include "strobe/base/memory_guard.h"
#include "strobe/core/sample_context.h"
#include "strobe/platform/fork_safe_mutex.h"
#include "strobe/platform/native.h"

namespace strobe {
namespace {

constinit internal::ForkSafeMutex<NativePlatform> process_labels_mutex;
constinit ProcessLabel* newest_label = nullptr;

}  // namespace

ProcessLabel::ProcessLabel(const LabelView& label) : key_(label.key) {
  if (const auto* const text = std::get_if<std::string_view>(&label.value)) {
    value_ = std::string(*text);
  } else {
    value_ = std::get<std::int64_t>(label.value);
  }
  const std::lock_guard lock(process_labels_mutex);
  older_ = std::exchange(newest_label, this);
  Publish();
}

ProcessLabel::~ProcessLabel() {
  const std::lock_guard lock(process_labels_mutex);
  ProcessLabel** link = &newest_label;
  while (*link != this) link = &(*link)->older_;
  *link = older_;
  Publish();
}

void ProcessLabel::SetValue(Value value) {
  const std::lock_guard lock(process_labels_mutex);
  value_ = std::move(value);
  Publish();
}

void ProcessLabel::Publish() {
  std::uint64_t number = kOverflowContext;
  static_cast<void>(internal::HasMemoryFor([&number] {
    std::vector<LabelView> views;
    for (const ProcessLabel* label = newest_label;
         label != nullptr && views.size() < LabelSet::kMaxLabels; label = label->older_) {
      const auto* const text = std::get_if<std::string>(&label->value_);
      views.push_back(text != nullptr
                          ? LabelView(label->key_, std::string_view(*text))
                          : LabelView(label->key_, std::get<std::int64_t>(label->value_)));
    }
    number = ProcessLabels().Intern(kNoContext, views);
  }));
  internal::ProcessContext::SetLabels(number);
}

}  // namespace strobe
