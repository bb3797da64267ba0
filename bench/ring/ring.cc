// Question: how many 320-byte records go from one thread to another? SpscRing against the
// single-producer queues of boost and rigtorp, whose slots are fixed: once just as large as these
// records, and once as large as the longest stack needs, which is what a fixed slot costs a
// profiler. Every consumer checks every record; every contender gets the same 32 KiB of payload.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <thread>

#include "benchmark/benchmark.h"
#include "strobe/ring/spsc_ring.h"
#if __has_include(<boost/lockfree/spsc_queue.hpp>)
#define STROBE_BENCH_BOOST 1
#include <boost/lockfree/spsc_queue.hpp>
#endif
#if __has_include(<rigtorp/SPSCQueue.h>)
#define STROBE_BENCH_RIGTORP 1
#include <rigtorp/SPSCQueue.h>
#endif

namespace strobe {
namespace {

constexpr std::size_t kRingBytes = 32 * 1024;
constexpr std::size_t kRecordBytes = 320;
constexpr std::size_t kWords = kRecordBytes / sizeof(std::uint64_t);
constexpr std::size_t kLongestWords = 2 + 512;  // a header, a weight and 512 frames
constexpr std::uint64_t kRecordsPerRun = 200000;

template <std::size_t kSlotWords>
using Slot = std::array<std::uint64_t, kSlotWords>;
template <std::size_t kSlotWords>
constexpr std::size_t kSlots = kRingBytes / sizeof(Slot<kSlotWords>);

// What a capture does: words written one after the other. All are equal to the sequence number plus
// their index.
inline void Fill(std::uint64_t* words, std::uint64_t sequence) {
  for (std::size_t i = 0; i < kWords; ++i) words[i] = sequence + i;
}
inline bool Check(const std::uint64_t* words, std::uint64_t sequence) {
  std::uint64_t difference = 0;
  for (std::size_t i = 0; i < kWords; ++i) difference |= words[i] ^ (sequence + i);
  return difference == 0;
}

// A spin that lets the other thread run where there is only one processor for both.
class Backoff {
 public:
  void Wait() {
    if (++spins_ % 256 == 0) std::this_thread::yield();
  }

 private:
  unsigned spins_ = 0;
};

// Each contender: Push(sequence) is false when full; Pop(sequence, good) is false when empty and
// clears `good` for a wrong record.
template <std::size_t kSlotWords>
class StrobeContender {
 public:
  StrobeContender() { ring_.Reset(std::as_writable_bytes(std::span(storage_))); }
  bool Push(std::uint64_t sequence) {
    std::byte* record = ring_.Reserve(sizeof(Slot<kSlotWords>));
    if (record == nullptr) return false;
    Fill(reinterpret_cast<std::uint64_t*>(record), sequence);
    ring_.Commit(kRecordBytes);
    return true;
  }
  bool Pop(std::uint64_t sequence, bool& good) {
    const auto record = ring_.Peek();
    if (record.empty()) return false;
    if (record.size() != kRecordBytes ||
        !Check(reinterpret_cast<const std::uint64_t*>(record.data()), sequence))
      good = false;
    ring_.Pop();
    return true;
  }

 private:
  alignas(64) SpscRing ring_;
  alignas(64) std::array<std::uint64_t, kRingBytes / sizeof(std::uint64_t)> storage_;
};

#ifdef STROBE_BENCH_BOOST
template <std::size_t kSlotWords>
class BoostContender {
 public:
  bool Push(std::uint64_t sequence) {
    Slot<kSlotWords> record;
    Fill(record.data(), sequence);
    return queue_.push(record);
  }
  bool Pop(std::uint64_t sequence, bool& good) {
    return queue_.consume_one([&](const Slot<kSlotWords>& record) {
      if (!Check(record.data(), sequence)) good = false;
    }) != 0;
  }

 private:
  boost::lockfree::spsc_queue<Slot<kSlotWords>, boost::lockfree::capacity<kSlots<kSlotWords>>>
      queue_;
};
#endif

#ifdef STROBE_BENCH_RIGTORP
template <std::size_t kSlotWords>
struct FilledSlot {
  explicit FilledSlot(std::uint64_t sequence) noexcept { Fill(words.data(), sequence); }
  Slot<kSlotWords> words;
};
template <std::size_t kSlotWords>
class RigtorpContender {
 public:
  bool Push(std::uint64_t sequence) { return queue_.try_emplace(sequence); }
  bool Pop(std::uint64_t sequence, bool& good) {
    FilledSlot<kSlotWords>* record = queue_.front();
    if (record == nullptr) return false;
    if (!Check(record->words.data(), sequence)) good = false;
    queue_.pop();
    return true;
  }

 private:
  rigtorp::SPSCQueue<FilledSlot<kSlotWords>> queue_{kSlots<kSlotWords>};
};
#endif

template <class Contender>
void TwoThreads(benchmark::State& state) {
  for (auto _ : state) {
    auto contender = std::make_unique<Contender>();
    bool good = true;
    std::thread consumer([&] {
      Backoff backoff;
      for (std::uint64_t sequence = 0; sequence < kRecordsPerRun;) {
        if (contender->Pop(sequence, good)) {
          ++sequence;
        } else {
          backoff.Wait();
        }
      }
    });
    Backoff backoff;
    for (std::uint64_t sequence = 0; sequence < kRecordsPerRun;) {
      if (contender->Push(sequence)) {
        ++sequence;
      } else {
        backoff.Wait();
      }
    }
    consumer.join();
    if (!good) state.SkipWithError("a record arrived changed");
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kRecordsPerRun));
}

}  // namespace
}  // namespace strobe

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const auto add = [](const char* name, void (*run)(benchmark::State&)) {
    benchmark::RegisterBenchmark(name, run)
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond)
        ->MinTime(0.3);
  };
  add("slots_of_320_bytes/strobe", strobe::TwoThreads<strobe::StrobeContender<strobe::kWords>>);
  add("slots_for_512_frames/strobe",
      strobe::TwoThreads<strobe::StrobeContender<strobe::kLongestWords>>);
#ifdef STROBE_BENCH_BOOST
  add("slots_of_320_bytes/boost", strobe::TwoThreads<strobe::BoostContender<strobe::kWords>>);
  add("slots_for_512_frames/boost",
      strobe::TwoThreads<strobe::BoostContender<strobe::kLongestWords>>);
#else
  std::fprintf(stderr, "skipped: boost (boost/lockfree/spsc_queue.hpp not found)\n");
#endif
#ifdef STROBE_BENCH_RIGTORP
  add("slots_of_320_bytes/rigtorp", strobe::TwoThreads<strobe::RigtorpContender<strobe::kWords>>);
  add("slots_for_512_frames/rigtorp",
      strobe::TwoThreads<strobe::RigtorpContender<strobe::kLongestWords>>);
#else
  std::fprintf(stderr, "skipped: rigtorp (rigtorp/SPSCQueue.h not found)\n");
#endif
  benchmark::RunSpecifiedBenchmarks();
}
