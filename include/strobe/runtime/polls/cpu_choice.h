// CpuChoice: on which CPU the collector waits for the next instant.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "strobe/base/visibility.h"
#include "strobe/platform/platform.h"
#include "strobe/provider/sample_provider.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// An instant samples the threads of one CPU only. So each instant is on a CPU that is drawn before,
// with a probability that is known: a sample stands for the time between two instants, divided by
// that probability, and so no CPU counts for more or less than its time, whatever moves its threads
// to it. Most draws are for the CPUs on which threads have been seen of late, so few are in vain.
// Used by the collector.
class CpuChoice {
 public:
  // This share of the draws is uniform over all CPUs, also those where no thread has been seen. The
  // larger it is, the less do weights differ: of a thread that moves now and then, on two CPUs, n
  // samples are worth 0.9 n of equal weight, on eight 0.5 n to 0.8 n.
  static constexpr double kBlindShare = 0.5;
  // How many of the last sights count for each thread. A thread that moves to and fro is sought on
  // both CPUs.
  static constexpr std::size_t kSightsPerThread = 4;
  static constexpr std::size_t kMaxSights = 1024;
  // On more CPUs a thread that moves would seldom be found: then none is drawn.
  static constexpr std::size_t kMostCpus = 8;

  struct Draw {
    int cpu = kAnyCpu;
    double probability = 1;
  };

  // The CPUs that the process may use. If they are others than before, all sights are forgotten.
  void SetCpus(std::vector<int> cpus) {
    if (cpus == allowed_ && has_cpus()) return;
    allowed_ = std::move(cpus);
    cpus_ = allowed_;
    ForgetSights();
  }

  // One of so many threads that run now and then has been seen on that CPU.
  void Note(int cpu, std::size_t threads) {
    if (cpu == kAnyCpu || !has_cpus()) return;
    const std::size_t place = PlaceOf(cpu);
    const std::size_t most =
        std::clamp<std::size_t>(threads, 1, kMaxSights / kSightsPerThread) * kSightsPerThread;
    sights_.push_back(place);
    ++counts_[place];
    for (; sights_.size() > most; sights_.pop_front()) --counts_[sights_.front()];
  }
  // The system refuses the CPU.
  void Forget(int cpu) {
    std::erase(cpus_, cpu);
    ForgetSights();
  }

  // Requires has_cpus().
  Draw Choose(RandomSource& random) const {
    const bool is_blind = sights_.empty() || random.Uniform() < kBlindShare;
    const std::size_t count = is_blind ? cpus_.size() : sights_.size();
    const std::size_t drawn = std::min(
        static_cast<std::size_t>(random.Uniform() * static_cast<double>(count)), count - 1);
    const std::size_t place = is_blind ? drawn : sights_[drawn];
    return {.cpu = cpus_[place], .probability = ProbabilityOf(place)};
  }

  // The probability that a draw finds the CPU on which a thread is: its mean over those that have
  // been seen.
  [[nodiscard]] double HitProbability() const {
    if (sights_.empty()) return 1.0 / static_cast<double>(std::max<std::size_t>(cpus_.size(), 1));
    double sum = 0;
    for (std::size_t place = 0; place < cpus_.size(); ++place)
      sum += SeenShare(place) * ProbabilityOf(place);
    return sum;
  }

  // Whether there are CPUs, and not too many.
  [[nodiscard]] bool has_cpus() const { return !cpus_.empty() && cpus_.size() <= kMostCpus; }

 private:
  // A thread may be where the rest of the process may not.
  std::size_t PlaceOf(int cpu) {
    const auto found = std::find(cpus_.begin(), cpus_.end(), cpu);
    if (found != cpus_.end()) return static_cast<std::size_t>(found - cpus_.begin());
    cpus_.push_back(cpu);
    counts_.push_back(0);
    return cpus_.size() - 1;
  }
  void ForgetSights() {
    sights_.clear();
    counts_.assign(cpus_.size(), 0);
  }
  // Requires a sight.
  [[nodiscard]] double SeenShare(std::size_t place) const {
    return static_cast<double>(counts_[place]) / static_cast<double>(sights_.size());
  }
  [[nodiscard]] double ProbabilityOf(std::size_t place) const {
    const double blind = 1.0 / static_cast<double>(cpus_.size());
    if (sights_.empty()) return blind;
    return kBlindShare * blind + (1 - kBlindShare) * SeenShare(place);
  }

  std::vector<int> allowed_;
  std::vector<int> cpus_;            // those, and where else threads have been seen
  std::deque<std::size_t> sights_;   // places in cpus_, the newest last
  std::vector<std::size_t> counts_;  // of the sights, by place
};

}  // namespace internal
}  // namespace strobe
