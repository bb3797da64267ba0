// What does a walk cost, per frame? On stacks of generated functions without frame pointers, which
// the thread really stands on; walkers that need frame pointers get the same functions compiled
// with them. The walk begins at the leaf, with its registers. Before anything is measured every
// contender must have found every function of many stacks. The cases:
//   repeated 36, 200   the same stack again and again
//   20, 20k            a stack chosen among so many each time; 36 frames
//   shared             26 of 30 frames are those of the walk before
//   cold ...           the same after the L2 cache was filled with other things
#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <thread>
#include <utility>

#include "../report.h"
#include "contenders.h"
#include "strobe/platform/native.h"

namespace strobe::testing {
namespace {

constexpr std::size_t kFrames = 36;
constexpr std::size_t kDeepFrames = 200;
constexpr std::size_t kSharedFrames = 30;
constexpr std::size_t kChangingFrames = 4;  // the leaf's among them
constexpr std::size_t kFewStacks = 20;
constexpr std::size_t kManyStacks = 20'000;
constexpr std::size_t kRounds = 15;
constexpr int kCheckedStacks = 200;

// One contender on its stacks.
class Measurement {
 public:
  Measurement(Walker& walker, FunctionKind kind, std::size_t base_frames, double overhead_ns)
      : walker_(walker), kind_(kind), base_frames_(base_frames), overhead_ns_(overhead_ns) {
    for (const Step function : Functions(kind)) starts_.insert(reinterpret_cast<Address>(function));
    starts_.insert(reinterpret_cast<Address>(Leaf(kind)));
  }

  // Calls body(registers) at the leaf of a stack of that many functions, the leaf among them,
  // chosen by `seed`.
  template <class Body>
  void OnStack(std::size_t count, std::uint64_t seed, Body&& body) {
    std::array<Step, kDeepFrames> steps;
    ChooseSteps(kind_, seed, {steps.data(), count - 1});
    steps[count - 1] = Leaf(kind_);
    const std::size_t below = expected_.size();
    for (std::size_t i = 0; i < count; ++i)
      expected_.push_back(reinterpret_cast<Address>(steps[i]));
    Path path{.steps = steps.data(), .at_leaf = std::ref(body)};
    sink_ = steps[0](path, 1);
    expected_.resize(below);
  }

  // Walks once; whether each function was found, and nothing else of theirs.
  bool Check(const NativeRegisters& registers) {
    const Found walk = walker_.Walk(registers, trace_);
    std::vector<Address> whole(trace_.begin(),
                               trace_.begin() + static_cast<std::ptrdiff_t>(walk.count));
    if (walk.shared > last_.size()) return false;
    whole.insert(whole.end(), last_.end() - static_cast<std::ptrdiff_t>(walk.shared), last_.end());
    last_ = std::move(whole);
    const CodeRange code = CodeOf(kind_);
    std::vector<Address> found;
    for (const Address address : last_) {
      if (address >= code.start && address < code.limit)
        found.push_back(*std::prev(starts_.upper_bound(address)));
    }
    return std::equal(found.rbegin(), found.rend(), expected_.begin(), expected_.end());
  }

  bool CheckMany() {
    bool is_right = true;
    for (int i = 0; i < kCheckedStacks; ++i) {
      OnStack(i % 2 == 0 ? kFrames : kDeepFrames, static_cast<std::uint64_t>(i),
              [&](const NativeRegisters& registers) { is_right &= Check(registers); });
    }
    OnSharedRoots(kCheckedStacks, 0, [&](std::size_t /*turn*/, const NativeRegisters& registers) {
      is_right &= Check(registers);
    });
    return is_right;
  }

  // The cases return nanoseconds a frame. Each `seed` is another sequence of stacks, so that no
  // walker finds what the one before him left.
  double Repeated(std::size_t frames) {
    constexpr int kWalks = 64;
    double ns = 0;
    OnStack(frames - base_frames_, 1, [&](const NativeRegisters& registers) {
      for (int i = 0; i < kWalks / 4; ++i) walker_.Walk(registers, trace_);
      std::size_t found = 0;
      const std::int64_t begin_ns = MonotonicNs();
      for (int i = 0; i < kWalks; ++i) found += walker_.Walk(registers, trace_).frames();
      ns = (static_cast<double>(MonotonicNs() - begin_ns) - overhead_ns_) /
           static_cast<double>(std::max<std::size_t>(found, 1));
    });
    return ns;
  }

  double Stacks(std::size_t stacks, std::uint64_t seed) {
    Random random(seed);
    std::vector<double> walks;
    for (std::size_t i = 0; i < kWarmingWalks + kWalks; ++i) {
      OnStack(kFrames - base_frames_, random.Below(stacks) + 1,
              [&](const NativeRegisters& registers) { AddWalk(registers, walks); });
    }
    walks.erase(walks.begin(), walks.begin() + kWarmingWalks);
    return Median(walks);
  }

  double Shared(std::uint64_t seed) {
    std::vector<double> walks;
    OnSharedRoots(
        kWarmingWalks + kWalks, seed,
        [&](std::size_t /*turn*/, const NativeRegisters& registers) { AddWalk(registers, walks); });
    walks.erase(walks.begin(), walks.begin() + kWarmingWalks);
    return Median(walks);
  }

  double ColdStacks(std::uint64_t seed) {
    std::vector<double> walks;
    Random random(seed);
    for (std::size_t i = 0; i < kColdWalks; ++i) {
      OnStack(kFrames - base_frames_, random.Below(kManyStacks) + 1,
              [&](const NativeRegisters& registers) { AddColdWalk(registers, walks); });
    }
    return Median(walks);
  }

  double ColdShared(std::uint64_t seed) {
    std::vector<double> walks;
    OnSharedRoots(kColdWalks, seed, [&](std::size_t /*turn*/, const NativeRegisters& registers) {
      AddColdWalk(registers, walks);
    });
    return Median(walks);
  }

 private:
  static constexpr std::size_t kWarmingWalks = 500;
  static constexpr std::size_t kWalks = 1500;
  static constexpr std::size_t kColdWalks = 50;

  // Calls body(turn, registers) on stacks that share their roots.
  template <class Body>
  void OnSharedRoots(std::size_t turns, std::uint64_t seed, Body&& body) {
    // At the inner leaf stand one more Leaf and the calls of two OnStacks.
    const std::size_t roots = kSharedFrames - kChangingFrames - base_frames_ - kCallsBetween;
    OnStack(roots, 1, [&](const NativeRegisters& /*registers*/) {
      for (std::size_t turn = 0; turn < turns; ++turn) {
        OnStack(kChangingFrames, seed * turns + turn,
                [&](const NativeRegisters& registers) { body(turn, registers); });
      }
    });
  }
  static constexpr std::size_t kCallsBetween = 2;

  // Medians of single walks: what interrupts one does not count.
  void AddWalk(const NativeRegisters& registers, std::vector<double>& walks) {
    const std::int64_t begin_ns = MonotonicNs();
    const std::size_t found = walker_.Walk(registers, trace_).frames();
    const double ns = static_cast<double>(MonotonicNs() - begin_ns) - overhead_ns_;
    walks.push_back(ns / static_cast<double>(std::max<std::size_t>(found, 1)));
  }

  void AddColdWalk(const NativeRegisters& registers, std::vector<double>& walks) {
    EvictCache();
    MonotonicNs();  // the clock itself is warm
    AddWalk(registers, walks);
  }

  Walker& walker_;
  const FunctionKind kind_;
  const std::size_t base_frames_;  // of the thread, below the functions
  const double overhead_ns_;       // of a walk that does nothing
  std::set<Address> starts_;
  std::vector<Address> expected_;  // the functions that are on the stack now, from the root on
  volatile std::uint64_t sink_ = 0;
  std::vector<Address> last_;  // the whole trace that was checked last
  Trace trace_{};
};

using Case = std::pair<const char*, double (*)(Measurement&, std::uint64_t seed)>;
constexpr Case kCases[] = {
    {"repeated 36", [](Measurement& m, std::uint64_t /*seed*/) { return m.Repeated(kFrames); }},
    {"repeated 200",
     [](Measurement& m, std::uint64_t /*seed*/) { return m.Repeated(kDeepFrames); }},
    {"20 stacks", [](Measurement& m, std::uint64_t seed) { return m.Stacks(kFewStacks, seed); }},
    {"20k stacks", [](Measurement& m, std::uint64_t seed) { return m.Stacks(kManyStacks, seed); }},
    {"shared roots", [](Measurement& m, std::uint64_t seed) { return m.Shared(seed); }},
    {"cold 20k stacks", [](Measurement& m, std::uint64_t seed) { return m.ColdStacks(seed); }},
    {"cold shared roots", [](Measurement& m, std::uint64_t seed) { return m.ColdShared(seed); }}};

int Run() {
  std::vector<Contender> contenders = MakeContenders(NativePlatform::CurrentThread().stack);
  const std::unique_ptr<Walker> no_walker = MakeNoWalker();
  Measurement empty(*no_walker, FunctionKind::kPlain, 0, 0);
  std::vector<double> overheads;
  for (std::size_t i = 0; i < kRounds; ++i) overheads.push_back(empty.Stacks(kFewStacks, i));
  // What stands below the functions, in a walk from the leaf of one function; by one who does not
  // remember it.
  std::size_t base_frames = 0;
  Measurement(*contenders[1].walker, FunctionKind::kPlain, 0, 0)
      .OnStack(1, 1, [&](const NativeRegisters& registers) {
        Trace trace;
        base_frames = contenders[1].walker->Walk(registers, trace).frames() - 1;
      });
  std::vector<std::unique_ptr<Measurement>> measurements;
  for (const Contender& contender : contenders) {
    measurements.push_back(std::make_unique<Measurement>(*contender.walker, contender.kind,
                                                         base_frames, Median(overheads)));
    if (!measurements.back()->CheckMany()) {
      std::fprintf(stderr, "unwind: %s did not find every function\n", contender.name.c_str());
      return 1;
    }
  }
  for (const auto& [name, measure] : kCases) {
    std::vector<std::vector<double>> results(contenders.size());
    for (std::size_t turn = 0; turn < kRounds * contenders.size(); ++turn) {
      const std::size_t i = turn % contenders.size();
      results[i].push_back(measure(*measurements[i], turn));
    }
    for (std::size_t i = 0; i < contenders.size(); ++i)
      Report(name, contenders[i].name, "walk", Median(results[i]), "ns/frame");
  }
  return 0;
}

}  // namespace
}  // namespace strobe::testing

int main() {
  int status = 0;
  std::thread([&] { status = strobe::testing::Run(); }).join();
  return status;
}
