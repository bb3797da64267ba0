#include "strobe/worker/shared/profile_bytes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace strobe::internal {
namespace {

// The fields of each struct, for the writer and the reader.
template <class Archive>
void Visit(Archive& archive, Module& module) {
  archive(module.start, module.limit, module.file_offset, module.load_bias, module.path,
          module.build_id, module.kind, module.format, module.unwind_address,
          module.eh_frame_address, module.eh_frame_bytes, module.pdata_address, module.pdata_bytes,
          module.stack_end, module.file_version, module.code_number);
}
template <class Archive>
void Visit(Archive& archive, Frame& frame) {
  archive(frame.address, frame.module);
}
template <class Archive>
void Visit(Archive& archive, StackNode& node) {
  archive(node.parent, node.frame);
}
template <class Archive>
void Visit(Archive& archive, ProfileThread& thread) {
  archive(thread.id, thread.name, thread.begin_ns, thread.end_ns, thread.cpu_ns, thread.samples);
}
template <class Archive>
void Visit(Archive& archive, ProfileSample& sample) {
  archive(sample.stack, sample.labels);
}
template <class Archive>
void Visit(Archive& archive, ProfileMoment& moment) {
  archive(moment.sample, moment.time_ns);
}
template <class Archive>
void Visit(Archive& archive, SpoolStats& spool) {
  archive(spool.found, spool.left, spool.waiting, spool.waiting_bytes);
}
template <class Archive>
void Visit(Archive& archive, OutputStats& output) {
  archive(output.name, output.exports, output.exports_failed, output.exports_dropped, output.drops,
          output.amount_dropped, output.delivered, output.spool, output.last_export_error,
          output.last_export_path);
}
template <class Archive>
void Visit(Archive& archive, Stats& stats) {
  archive(stats.threads_registered, stats.threads_ended, stats.threads_refused,
          stats.threads_on_timers, stats.threads_on_random_timers, stats.threads_at_instants,
          stats.threads_blocking, stats.signal_number, stats.samples, stats.drops, stats.stack_ends,
          stats.signals_foreign, stats.signals_stale, stats.handler_replaced, stats.handler_time_ns,
          stats.requested_rate_hz, stats.measured_rate_hz, stats.max_overhead,
          stats.measured_samples, stats.measured_ns);
  archive(stats.drains, stats.collector_cpu_ns, stats.process_cpu_ns, stats.stacks_overflowed,
          stats.labels_overflowed, stats.moments_dropped, stats.spans_overflowed,
          stats.threads_unlisted, stats.dumps, stats.dumps_failed, stats.dumps_skipped,
          stats.stacks_deferred, stats.unwind_tables, stats.module_refreshes, stats.unread_module,
          stats.waits_abandoned, stats.instants, stats.waits_walked, stats.waits_interrupted,
          stats.waits_hidden, stats.polls_put_off, stats.sums_cut);
  archive(stats.exports, stats.exports_failed, stats.exports_dropped, stats.amount_dropped,
          stats.periods_extended, stats.last_export_error, stats.last_export_path, stats.outputs,
          stats.partly_named_module, stats.memory_bytes, stats.out_of_memory, stats.program_end);
}
template <class Archive>
void Visit(Archive& archive, Profile& profile) {
  archive(profile.value_types, profile.default_value_type, profile.modules, profile.frames,
          profile.zones, profile.stacks, profile.label_sets, profile.threads, profile.samples,
          profile.values, profile.moments, profile.moment_values);
  archive(profile.time_ns, profile.duration_ns, profile.period_type, profile.period,
          profile.program, profile.process_id, profile.machine, profile.sequence, profile.window,
          profile.stats);
}

template <class T>
concept Number = std::is_arithmetic_v<T> || std::is_enum_v<T>;

// Each number takes 8 bytes; a text and a list begin with their lengths.
class Writer {
 public:
  template <class... Fields>
  void operator()(Fields&... fields) {
    (Put(fields), ...);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  template <Number T>
  void Put(const T& number) {
    std::uint64_t word = 0;
    if constexpr (std::is_floating_point_v<T>) {
      word = std::bit_cast<std::uint64_t>(static_cast<double>(number));
    } else {
      word = static_cast<std::uint64_t>(number);
    }
    bytes_.append(reinterpret_cast<const char*>(&word), sizeof(word));
  }
  void Put(std::string_view text) {
    Put(text.size());
    bytes_.append(text);
  }
  void Put(const ValueType& type) {
    Put(type.type);
    Put(type.unit);
  }
  void Put(const LabelSet& set) {
    Put(set.labels().size());
    for (const Label& label : set.labels()) {
      Put(std::string_view(label.key));
      Put(label.value.index());
      std::visit([this](const auto& value) { Put(value); }, label.value);
    }
  }
  template <class T>
  void Put(std::vector<T>& list) {
    Put(list.size());
    for (T& element : list) Put(element);
  }
  template <class T, std::size_t size>
  void Put(std::array<T, size>& list) {
    for (T& element : list) Put(element);
  }
  template <class T>
  void Put(T& fields) requires requires(Writer& writer) {
    Visit(writer, fields);
  }
  { Visit(*this, fields); }

  std::string bytes_;
};

// After the first field that is wrong or missing, all fields stay as they are, and is_good() is
// false. A list grows as its elements are read: a wrong length takes no memory.
class Reader {
 public:
  Reader(std::string_view bytes, std::span<const ValueType> known) : rest_(bytes), known_(known) {}

  template <class... Fields>
  void operator()(Fields&... fields) {
    (Get(fields), ...);
  }
  // True if all bytes were read and each was as it has to be.
  [[nodiscard]] bool is_whole() const { return is_good_ && rest_.empty(); }

 private:
  std::string_view Take(std::uint64_t bytes) {
    is_good_ = is_good_ && bytes <= rest_.size();
    if (!is_good_) return {};
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  template <Number T>
  void Get(T& number) {
    const std::string_view bytes = Take(sizeof(std::uint64_t));
    if (!is_good_) return;
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof(word));
    if constexpr (std::is_floating_point_v<T>) {
      number = static_cast<T>(std::bit_cast<double>(word));
    } else {
      number = static_cast<T>(word);
    }
  }
  void Get(std::string& text) {
    std::uint64_t bytes = 0;
    Get(bytes);
    text = Take(bytes);
  }
  void Get(ValueType& type) {
    std::string name;
    std::string unit;
    (*this)(name, unit);
    const auto found = std::ranges::find(known_, ValueType{name, unit});
    is_good_ = is_good_ && (found != known_.end() || name.empty());
    type = is_good_ && found != known_.end() ? *found : ValueType();
  }
  void Get(LabelSet& set) {
    std::uint64_t count = 0;
    Get(count);
    std::vector<Label> labels;
    for (std::uint64_t i = 0; i < count && is_good_; ++i) {
      Label& label = labels.emplace_back();
      std::uint64_t is_text = 0;
      (*this)(label.key, is_text);
      if (is_text != 0) {
        Get(label.value.emplace<std::string>());
      } else {
        Get(label.value.emplace<std::int64_t>());
      }
    }
    set = Joined(std::move(labels));
  }
  template <class T>
  void Get(std::vector<T>& list) {
    std::uint64_t count = 0;
    Get(count);
    for (std::uint64_t i = 0; i < count && is_good_; ++i) Get(list.emplace_back());
  }
  template <class T, std::size_t size>
  void Get(std::array<T, size>& list) {
    for (T& element : list) Get(element);
  }
  template <class T>
  void Get(T& fields) requires requires(Reader& reader) {
    Visit(reader, fields);
  }
  { Visit(*this, fields); }

  // A set of a profile may have more labels than one that a thread sets.
  static LabelSet Joined(std::vector<Label> labels) {
    LabelSet set;
    for (std::size_t first = 0; first < labels.size(); first += LabelSet::kMaxLabels) {
      const std::size_t limit = std::min(first + LabelSet::kMaxLabels, labels.size());
      const auto part = [&](std::size_t i) {
        return std::make_move_iterator(labels.begin() + static_cast<std::ptrdiff_t>(i));
      };
      set = set.Joined(LabelSet(std::vector<Label>(part(first), part(limit))));
    }
    return set;
  }

  std::string_view rest_;
  const std::span<const ValueType> known_;
  bool is_good_ = true;
};

// True if each index of the profile is in range.
bool IsConsistent(const Profile& profile) {
  const std::size_t types = profile.value_types.size();
  const auto is_frame = [&](const Frame& frame) {
    return frame.module < profile.modules.size() || frame.module == Frame::kNoModule ||
           frame.module == Frame::kPseudo;
  };
  const auto is_sample = [&](const ProfileSample& sample) {
    return sample.stack < profile.stacks.size() && sample.labels < profile.label_sets.size();
  };
  const auto is_moment = [&](const ProfileMoment& moment) {
    return moment.sample < profile.samples.size();
  };
  for (std::size_t i = 0; i < profile.stacks.size(); ++i) {
    const StackNode& node = profile.stacks[i];
    const bool is_root = i == 0 && node.parent == 0;
    if (!is_root && (node.parent >= i || node.frame >= profile.frames.size())) return false;
  }
  return (types == 0 || profile.default_value_type < types) &&
         std::ranges::all_of(profile.frames, is_frame) &&
         std::ranges::all_of(profile.samples, is_sample) &&
         std::ranges::all_of(profile.moments, is_moment) &&
         profile.values.size() == profile.samples.size() * types &&
         profile.moment_values.size() == profile.moments.size() * types;
}

}  // namespace

std::string ProfileBytes(const Profile& profile) {
  Writer writer;
  // The writer changes nothing; the reader has the same list of fields.
  Visit(writer, const_cast<Profile&>(profile));
  return writer.Take();
}

absl::StatusOr<Profile> ProfileFrom(std::string_view bytes, std::span<const ValueType> known) {
  Profile profile;
  Reader reader(bytes, known);
  Visit(reader, profile);
  if (!reader.is_whole() || !IsConsistent(profile))
    return absl::InvalidArgumentError("what the worker has recorded is no whole profile");
  return profile;
}

}  // namespace strobe::internal
