#include "strobe/http/open_metrics.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "strobe/core/stack.h"

namespace strobe {
namespace {

// Appends metric families. A family has a type, a help text and one line a sample.
class MetricsWriter {
 public:
  void Counter(const char* name, const char* help, std::uint64_t value) {
    Family(name, "counter", help);
    Line(name, "_total", "", value);
  }
  void Seconds(const char* name, const char* help, std::int64_t value_ns) {
    Family(name, "counter", help);
    Line(name, "_total", "", static_cast<double>(value_ns) / 1e9);
  }
  template <class Value>
  void Gauge(const char* name, const char* help, Value value) {
    Family(name, "gauge", help);
    Line(name, "", "", value);
  }
  // One line for each reason.
  template <class Counts, class Name>
  void ByReason(const char* name, const char* help, const Counts& counts, const Name& name_of) {
    Family(name, "counter", help);
    for (std::size_t i = 0; i < counts.size(); ++i)
      Line(name, "_total", absl::StrCat("reason=\"", std::string(name_of(i)), "\""), counts[i]);
  }
  void Family(const char* name, const char* type, const char* help) {
    absl::StrAppend(&text_, "# TYPE ", name, " ", type, "\n# HELP ", name, " ", help, "\n");
  }
  template <class Value>
  void Line(const char* name, const char* suffix, const std::string& labels, Value value) {
    absl::StrAppend(&text_, name, suffix);
    if (!labels.empty()) absl::StrAppend(&text_, "{", labels, "}");
    absl::StrAppend(&text_, " ", value, "\n");
  }
  std::string Take() {
    text_ += "# EOF\n";
    return std::move(text_);
  }

 private:
  std::string text_;
};

std::string DropName(std::size_t i) {
  return std::string(DropReasonName(static_cast<DropReason>(i)));
}
std::string EndName(std::size_t i) { return std::string(StackEndName(static_cast<StackEnd>(i))); }
std::string ExportDropText(std::size_t i) {
  return std::string(ExportDropName(static_cast<ExportDrop>(i)));
}

void WriteSampling(MetricsWriter& writer, const Stats& stats) {
  writer.Gauge("strobe_threads", "Registered threads.", stats.threads_registered);
  writer.Counter("strobe_threads_ended", "Registrations that have ended.", stats.threads_ended);
  writer.Counter("strobe_threads_refused", "Registrations that ended in an error.",
                 stats.threads_refused);
  writer.Gauge("strobe_threads_on_timers", "Threads with a timer on their CPU clock.",
               stats.threads_on_timers);
  writer.Gauge("strobe_threads_on_random_timers", "Threads with a timer that expires at random.",
               stats.threads_on_random_timers);
  writer.Gauge("strobe_threads_at_instants", "Threads sampled at random instants.",
               stats.threads_at_instants);
  writer.Counter("strobe_instants", "Random instants.", stats.instants);
  writer.Gauge("strobe_threads_blocking", "Threads that block the profiler's signal.",
               stats.threads_blocking);
  writer.Counter("strobe_samples", "Samples taken.", stats.samples);
  writer.ByReason("strobe_sample_drops", "Samples whose weight another one carries.", stats.drops,
                  &DropName);
  writer.ByReason("strobe_stack_ends", "How the samples' stacks end.", stats.stack_ends, &EndName);
  writer.Counter("strobe_stacks_overflowed", "Samples beyond the memory limit.",
                 stats.stacks_overflowed);
  writer.Counter("strobe_labels_overflowed", "Samples whose labels were beyond a limit.",
                 stats.labels_overflowed);
  writer.Counter("strobe_moments_dropped", "Samples whose times were beyond the memory limit.",
                 stats.moments_dropped);
  writer.Counter("strobe_spans_overflowed", "Samples and slow spans beyond a limit on spans.",
                 stats.spans_overflowed);
  writer.Counter("strobe_threads_unlisted", "Threads whose lives were beyond the memory limit.",
                 stats.threads_unlisted);
  writer.Counter("strobe_signals_foreign", "Signals that were not the profiler's.",
                 stats.signals_foreign);
  writer.Counter("strobe_signals_stale", "Signals for a registration that has ended.",
                 stats.signals_stale);
  writer.Seconds("strobe_handler_seconds", "Time in the signal handler, estimated.",
                 stats.handler_time_ns);
  writer.Seconds("strobe_collector_seconds", "CPU time of the collector.", stats.collector_cpu_ns);
  writer.Seconds("strobe_process_seconds", "CPU time of the process while it was sampled.",
                 stats.process_cpu_ns);
  writer.Gauge("strobe_requested_rate_hertz", "The requested sampling rate.",
               stats.requested_rate_hz);
  writer.Gauge("strobe_measured_rate_hertz", "The measured sampling rate.", stats.measured_rate_hz);
  writer.Gauge("strobe_memory_bytes", "Memory of the profiler.", stats.memory_bytes);
  writer.Counter("strobe_out_of_memory", "Calls and tasks that memory ran out in.",
                 stats.out_of_memory);
  writer.Counter("strobe_periods_extended", "Periods that were extended.", stats.periods_extended);
}

template <class Value>
void WriteOfOutputs(MetricsWriter& writer, const Stats& stats, const char* name, const char* suffix,
                    const char* help, const Value& value) {
  writer.Family(name, suffix[0] == '\0' ? "gauge" : "counter", help);
  for (std::size_t i = 0; i < stats.outputs.size(); ++i)
    writer.Line(name, suffix, absl::StrCat("output=\"", i + 1, "\""), value(stats.outputs[i]));
}

void WriteOutputs(MetricsWriter& writer, const Stats& stats) {
  using Output = OutputStats;
  WriteOfOutputs(writer, stats, "strobe_exports", "_total", "Profiles that the exporter took.",
                 [](const Output& output) { return output.exports; });
  WriteOfOutputs(writer, stats, "strobe_exports_failed", "_total", "Exports that failed.",
                 [](const Output& output) { return output.exports_failed; });
  WriteOfOutputs(writer, stats, "strobe_profiles_delivered", "_total", "Profiles that arrived.",
                 [](const Output& output) { return output.delivered; });
  WriteOfOutputs(writer, stats, "strobe_spool_found", "_total",
                 "Profiles on disk that an earlier process left.",
                 [](const Output& output) { return output.spool.found; });
  WriteOfOutputs(writer, stats, "strobe_spool_waiting", "", "Profiles on disk that wait.",
                 [](const Output& output) { return output.spool.waiting; });
  WriteOfOutputs(writer, stats, "strobe_spool_bytes", "", "Bytes of the profiles that wait.",
                 [](const Output& output) { return output.spool.waiting_bytes; });
  writer.Family("strobe_profiles_dropped", "counter", "Profiles that were never delivered.");
  for (std::size_t i = 0; i < stats.outputs.size(); ++i) {
    for (std::size_t reason = 0; reason < kExportDropCount; ++reason) {
      writer.Line("strobe_profiles_dropped", "_total",
                  absl::StrCat("output=\"", i + 1, "\",reason=\"", ExportDropText(reason), "\""),
                  stats.outputs[i].drops[reason]);
    }
  }
}

}  // namespace

std::string OpenMetricsText(const Stats& stats) {
  MetricsWriter writer;
  WriteSampling(writer, stats);
  WriteOutputs(writer, stats);
  return writer.Take();
}

}  // namespace strobe
