#include "merged_labels.h"

#include <algorithm>
#include <string>
#include <utility>

#include "strobe/aggregate/slow_spans.h"

namespace strobe::internal {

MergedLabels::MergedLabels(const AggregatedPeriod& period)
    : period_(period),
      thread_labels_(period.threads.size(), kNone),
      context_labels_(period.contexts.size(), kNone) {}

std::uint32_t MergedLabels::Intern(LabelSet labels, std::uint32_t account) {
  const auto id = static_cast<std::uint32_t>(sets_.size());
  sets_.push_back({std::move(labels), account == kNone ? id : account});
  const auto [at, is_new] = numbers_.insert(id);
  if (!is_new) sets_.pop_back();
  return *at;
}

std::uint32_t MergedLabels::MakeOfThread(std::uint32_t key) {
  if (thread_labels_[key] == kNone) {
    const ProfileThread& thread = period_.threads[key].thread;
    thread_labels_[key] = Intern(ThreadLabels(thread.id, thread.name), kNone);
  }
  return thread_labels_[key];
}

std::uint32_t MergedLabels::OfRow(std::uint32_t row) {
  const std::uint32_t labels = period_.rows.labels(row);
  if ((labels & AggregatedPeriod::kContextBit) == 0) return MakeOfThread(labels);
  const std::size_t index = labels & ~AggregatedPeriod::kContextBit;
  if (context_labels_[index] == kNone) {
    const PeriodContext& row_context = period_.contexts[index];
    const SampleContext& context = row_context.context;
    const std::uint32_t account = MakeOfThread(row_context.thread);
    LabelSet set = sets_[account]
                       .labels.Joined(TraceLabels(context.trace))
                       .Joined((*period_.labels)[context.labels()])
                       .Joined((*period_.labels)[context.process_labels()]);
    if (std::ranges::binary_search(period_.slow_spans, context.span()))
      set = LabelSet({{std::string(kSlowLabel), std::string("true")}}).Joined(set);
    context_labels_[index] = Intern(std::move(set), account);
  }
  return context_labels_[index];
}

}  // namespace strobe::internal
