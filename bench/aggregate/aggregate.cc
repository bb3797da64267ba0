// How fast are stacks of 30 frames added up on one core?
//   shared     16 threads by turns, each stack keeps the 26 root frames of the thread's one before
//   random     drawn from 20,000 distinct stacks that share roots as a call tree does
//   unrelated  drawn from 20,000 distinct stacks that share nothing
//   new        every stack is new; memory is bounded, so that ours folds in the end
// The peer is what one would write first: a hash map from the whole stack to its values.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "strobe/aggregate/aggregator.h"
#include "strobe/provider/sample_provider.h"

namespace {

using strobe::Address;

constexpr std::size_t kFrames = 30;
constexpr std::size_t kThreads = 16;
using Stack = std::array<Address, kFrames>;  // leaf first
using Values = std::array<std::int64_t, 2>;

// In the order in which they are added, as they would lie in a ring.
struct Sample {
  std::uint32_t thread = 0;
  Stack stack;
  std::size_t shared = 0;  // root frames of the thread's sample before
};
using Workload = std::vector<Sample>;

Address RandomCode(strobe::RandomSource& random) {
  return 0x500000 + static_cast<Address>(random.Uniform() * 0x4000000);
}

std::size_t Below(strobe::RandomSource& random, std::size_t limit) {
  return static_cast<std::size_t>(random.Uniform() * static_cast<double>(limit));
}

Workload Shared() {
  strobe::RandomSource random(1);
  Workload workload;
  std::array<Stack, kThreads> trunks;
  std::array<std::array<Address, 8>, 4> leaves;
  for (Stack& trunk : trunks)
    std::generate(trunk.begin(), trunk.end(), [&] { return RandomCode(random); });
  for (auto& level : leaves)
    std::generate(level.begin(), level.end(), [&] { return RandomCode(random); });
  for (std::uint32_t i = 0; i < 1 << 12; ++i) {
    Sample& sample = workload.emplace_back(
        Sample{i % static_cast<std::uint32_t>(kThreads), trunks[i % kThreads]});
    for (std::size_t level = 0; level < 4; ++level)
      sample.stack[level] = leaves[level][Below(random, 8)];
  }
  return workload;
}

Workload Random(bool related) {
  strobe::RandomSource random(2);
  std::vector<Stack> stacks;
  for (std::size_t i = 0; i < 20000; ++i) {
    Stack stack;
    std::generate(stack.begin(), stack.end(), [&] { return RandomCode(random); });
    if (related && i > 0) {
      const Stack& other = stacks[Below(random, i)];
      const auto fresh = static_cast<std::ptrdiff_t>(1 + Below(random, kFrames - 1));
      std::copy(other.begin() + fresh, other.end(), stack.begin() + fresh);
    }
    stacks.push_back(stack);
  }
  Workload workload;
  for (std::size_t i = 0; i < 1 << 16; ++i) {
    const std::size_t stack = Below(random, stacks.size());
    workload.push_back({static_cast<std::uint32_t>(stack % kThreads), stacks[stack]});
  }
  return workload;
}

// What an incremental walk would say. The workload is passed over again and again, so the first of
// a thread follows on its last.
void FindShared(Workload& workload) {
  std::array<const Stack*, kThreads> last{};
  for (int pass = 0; pass < 2; ++pass) {
    for (Sample& sample : workload) {
      const Stack* const before = std::exchange(last[sample.thread], &sample.stack);
      if (before == nullptr) continue;
      sample.shared = static_cast<std::size_t>(
          std::mismatch(sample.stack.rbegin(), sample.stack.rend(), before->rbegin()).first -
          sample.stack.rbegin());
    }
  }
}

// One pass over the samples; `fresh` changes the leaf, so that each pass has stacks of its own.
template <class Add>
void Pass(const Workload& workload, Address fresh, Add&& add) {
  if (fresh == 0) {
    for (const Sample& sample : workload) add(sample.thread, sample.stack, sample.shared);
    return;
  }
  for (const Sample& sample : workload) {
    Stack stack = sample.stack;
    stack[0] = ++fresh;
    add(sample.thread, stack, std::min(sample.shared, kFrames - 1));
  }
}

void Strobe(benchmark::State& state, const Workload& workload, bool always_new) {
  strobe::Aggregator aggregator(2, std::size_t{64} << 20);
  for (std::size_t i = 0; i < kThreads; ++i) aggregator.AddThread(i, "worker");
  const Values values = {1, 10'000'000};
  const auto add = [&](std::uint32_t thread, std::span<const Address> stack, std::size_t shared) {
    aggregator.Add(
        thread,
        {.generation = 1, .shared = shared, .leaf_first = stack.first(stack.size() - shared)},
        values);
  };
  Pass(workload, always_new ? Address{1} << 60 : 0,
       [&](std::uint32_t thread, std::span<const Address> stack, std::size_t /*shared*/) {
         aggregator.Add(thread, {.generation = 1, .leaf_first = stack}, values);
       });
  Address pass = always_new ? 0 : 1;
  for (auto _ : state) Pass(workload, always_new ? ++pass << 40 : 0, add);
  const auto added = static_cast<std::int64_t>((state.iterations() + 1) * workload.size());
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * workload.size()));
  state.counters["memory_bytes"] = static_cast<double>(aggregator.memory_bytes());
  state.counters["overflowed"] = static_cast<double>(aggregator.overflows().stacks);
  const strobe::AggregatedPeriod period = aggregator.Take();
  std::int64_t sum = 0;
  for (std::uint32_t row = 0; row < period.rows.size(); ++row) sum += period.rows.value(row, 0);
  if (sum != added) state.SkipWithError("the sum of the values is wrong");
}

struct Key {
  std::uint32_t thread;
  std::vector<Address> stack;
  bool operator==(const Key&) const = default;
  template <class H>
  friend H AbslHashValue(H state, const Key& key) {
    return H::combine(std::move(state), key.thread, key.stack);
  }
};

void FlatHashMap(benchmark::State& state, const Workload& workload, bool always_new) {
  absl::flat_hash_map<Key, Values> sums;
  std::size_t limit = 200'000;  // about the memory that ours may take
  std::int64_t skipped = 0;
  Key key;
  const auto add = [&](std::uint32_t thread, const Stack& stack, std::size_t /*shared*/) {
    key.thread = thread;
    key.stack.assign(stack.begin(), stack.end());
    auto at = sums.find(key);
    if (at == sums.end()) {
      if (sums.size() == limit) {
        ++skipped;
        return;
      }
      at = sums.emplace(key, Values{}).first;
    }
    at->second[0] += 1;
    at->second[1] += 10'000'000;
  };
  if (!always_new) Pass(workload, 0, add);
  Address pass = always_new ? 0 : 1;
  for (auto _ : state) Pass(workload, always_new ? ++pass << 40 : 0, add);
  const auto added =
      static_cast<std::int64_t>((state.iterations() + (always_new ? 0 : 1)) * workload.size());
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * workload.size()));
  std::int64_t sum = skipped;
  for (const auto& [stack, values] : sums) sum += values[0];
  if (sum != added) state.SkipWithError("the sum of the values is wrong");
}

void Register(const std::string& name, const Workload& workload, bool always_new) {
  benchmark::RegisterBenchmark(
      (name + "/strobe").c_str(),
      [&workload, always_new](benchmark::State& state) { Strobe(state, workload, always_new); });
  benchmark::RegisterBenchmark((name + "/flat_hash_map").c_str(),
                               [&workload, always_new](benchmark::State& state) {
                                 FlatHashMap(state, workload, always_new);
                               });
}

}  // namespace

int main(int argc, char** argv) {
  Workload shared = Shared();
  Workload random = Random(true);
  Workload unrelated = Random(false);
  for (Workload* workload : {&shared, &random, &unrelated}) FindShared(*workload);
  Register("shared", shared, false);
  Register("random", random, false);
  Register("unrelated", unrelated, false);
  Register("new", random, true);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
