#include "html_threads.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "strobe/encode/html_encoder.h"

namespace strobe::internal {
namespace {

using PageNumbers = std::vector<std::uint64_t>;

}  // namespace

void WriteThreads(const Profile& profile, PageTexts& texts, ColumnWriter& columns) {
  PageNumbers ids, names, captures;
  absl::flat_hash_map<std::uint64_t, std::size_t> places;  // by id: a thread may have several lives
  for (const ProfileThread& thread : profile.threads) {
    const auto [place, is_new] = places.try_emplace(thread.id, ids.size());
    if (!is_new) {
      captures[place->second] += thread.samples;
      continue;
    }
    // As the label of the thread has it.
    ids.push_back(texts.Index(absl::StrCat(static_cast<std::int64_t>(thread.id))));
    names.push_back(texts.Index(thread.name));
    captures.push_back(thread.samples);
  }
  columns.Column(ids);
  columns.Column(names);
  columns.Column(captures);
}

void WriteLives(const Profile& profile, PageTexts& texts, ColumnWriter& columns) {
  std::vector<std::uint32_t> order(profile.threads.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  const std::size_t count = std::min(order.size(), HtmlEncoder::kMaxLives);
  const auto cpu_ns = [&](std::uint32_t i) { return profile.threads[i].cpu_ns; };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](std::uint32_t a, std::uint32_t b) {
                      return cpu_ns(a) != cpu_ns(b) ? cpu_ns(a) > cpu_ns(b) : a < b;
                    });
  const auto time = [&](std::int64_t ns) {
    const bool is_inside = ns >= profile.time_ns && profile.time_ns > 0;
    return is_inside ? static_cast<std::uint64_t>(ns - profile.time_ns) + 1 : 0;
  };
  PageNumbers ids, names, begins, ends, cpu, captures;
  for (std::size_t i = 0; i < count; ++i) {
    const ProfileThread& thread = profile.threads[order[i]];
    ids.push_back(texts.Index(absl::StrCat(static_cast<std::int64_t>(thread.id))));
    names.push_back(texts.Index(thread.name));
    begins.push_back(time(thread.begin_ns));
    ends.push_back(time(thread.end_ns));
    cpu.push_back(thread.cpu_ns < 0 ? 0 : static_cast<std::uint64_t>(thread.cpu_ns) + 1);
    captures.push_back(thread.samples);
  }
  columns.Column(PageNumbers{order.size()});
  for (const PageNumbers& column : {ids, names, begins, ends, cpu, captures})
    columns.Column(column);
}

}  // namespace strobe::internal
