#include "firefox_threads.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "strobe/core/label_set.h"
#include "strobe/core/zone.h"

namespace strobe::internal {
namespace {

// A time span, in nanoseconds since the profile's begin.
struct Span {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

// Since the profile's begin. Wraps around for the times of a hostile profile.
std::int64_t Since(const Profile& profile, std::int64_t time_ns) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(time_ns) -
                                   static_cast<std::uint64_t>(profile.time_ns));
}

// The part of a registration's life that lies in the period.
Span LifeOf(const Profile& profile, const ProfileThread& thread) {
  const std::int64_t whole_ns = std::max<std::int64_t>(profile.duration_ns, 0);
  const auto within = [&](std::int64_t time_ns) {
    return std::clamp<std::int64_t>(Since(profile, time_ns), 0, whole_ns);
  };
  return {.begin_ns = thread.begin_ns == 0 ? 0 : within(thread.begin_ns),
          .end_ns = thread.end_ns == 0 ? whole_ns : within(thread.end_ns)};
}

Span LifeOf(const Profile& profile, const ThreadParts& thread) {
  Span life{.begin_ns = 0, .end_ns = std::max<std::int64_t>(profile.duration_ns, 0)};
  if (thread.lives.empty()) return life;
  life = LifeOf(profile, *thread.lives[0]);
  for (const ProfileThread* one : thread.lives) {
    const Span span = LifeOf(profile, *one);
    life.begin_ns = std::min(life.begin_ns, span.begin_ns);
    life.end_ns = std::max(life.end_ns, span.end_ns);
  }
  return life;
}

// Moves samples whose times say nothing to times where they fill `life`, each with its share.
void Spread(std::vector<FirefoxSample>& samples, Span life) {
  std::ranges::sort(samples, {}, [](const FirefoxSample& sample) {
    return std::pair(sample.labels, sample.stack);
  });
  double sum = 0;
  for (const FirefoxSample& sample : samples) sum += static_cast<double>(sample.weight);
  if (!(sum > 0)) return;
  const auto length_ns =
      static_cast<double>(std::max<std::int64_t>(life.end_ns - life.begin_ns, 0));
  double so_far = 0;
  for (FirefoxSample& sample : samples) {
    so_far += static_cast<double>(sample.weight);
    const double share = std::clamp(so_far / sum, 0.0, 1.0);
    sample.time_ns = life.begin_ns + static_cast<std::int64_t>(std::floor(share * length_ns));
  }
}

// Appends the moments, and an idle row in each gap that the CPU time of the next moment does not
// fill by half.
void AddMoments(const std::vector<FirefoxSample>& moments, std::vector<FirefoxSample>& samples) {
  for (const FirefoxSample& moment : moments) {
    const std::int64_t gap_ns = moment.time_ns - samples.back().time_ns;
    if (moment.cpu_ns > 0 && gap_ns / 2 > moment.cpu_ns)
      samples.push_back({.time_ns = moment.time_ns - moment.cpu_ns});
    samples.push_back(moment);
  }
}

template <class Element>
void Column(JsonWriter& json, std::string_view key, const std::vector<FirefoxSample>& samples,
            Element element) {
  json.Key(key);
  json.BeginArray();
  for (const FirefoxSample& sample : samples) element(sample);
  json.EndArray();
}

void WriteSamples(JsonWriter& json, const std::vector<FirefoxSample>& samples,
                  std::string_view weight_type, bool has_cpu) {
  json.BeginObject();
  Column(json, "stack", samples, [&](const FirefoxSample& sample) {
    if (sample.stack < 0) return json.Null();
    json.Number(sample.stack);
  });
  Column(json, "time", samples,
         [&](const FirefoxSample& sample) { json.Millionths(sample.time_ns); });
  Column(json, "weight", samples, [&](const FirefoxSample& sample) {
    if (weight_type == kFirefoxMilliseconds) return json.Millionths(sample.weight);
    json.Number(sample.weight);
  });
  json.Member("weightType", weight_type);
  if (has_cpu) {
    Column(json, "threadCPUDelta", samples,
           [&](const FirefoxSample& sample) { json.Number(sample.cpu_ns); });
  }
  json.Member("length", static_cast<std::int64_t>(samples.size()));
  json.EndObject();
}

// One marker, an interval.
struct Marker {
  std::uint32_t name = 0;
  Span span;
  std::string data;  // JSON
};

Marker LifeMarker(const Profile& profile, FirefoxTables& tables, const ProfileThread& thread) {
  JsonWriter data;
  data.BeginObject();
  data.Member("type", "Thread");
  if (thread.cpu_ns >= 0) data.Member("cpu", thread.cpu_ns);
  data.Member("samples", static_cast<std::int64_t>(thread.samples));
  data.EndObject();
  return {.name = tables.Text("Thread"), .span = LifeOf(profile, thread), .data = data.Take()};
}

// The markers of labels and zones: of each that the program has set, and that samples in a row
// have.
class LabelMarkers {
 public:
  LabelMarkers(const Profile& profile, FirefoxTables& tables, std::vector<Marker>& markers)
      : profile_(profile), tables_(tables), markers_(markers) {}

  // A sample stands for the time since the row before it.
  void Add(const std::vector<FirefoxSample>& samples, std::int64_t begin_ns) {
    std::int64_t last = -1;
    std::int64_t last_end_ns = begin_ns;
    for (const FirefoxSample& sample : samples) {
      if (sample.labels >= 0) {
        if (sample.labels != last)
          Change(profile_.label_sets[static_cast<std::size_t>(sample.labels)], last_end_ns,
                 begin_ns);
        last = sample.labels;
        last_end_ns = sample.time_ns;
      }
      begin_ns = sample.time_ns;
    }
    Change(LabelSet(), last_end_ns, begin_ns);
  }

 private:
  // What a set shows: a label's key and value, or a zone's name and path.
  struct Open {
    bool is_zone = false;
    std::string_view name;
    std::string value;
    std::int64_t begin_ns = 0;

    [[nodiscard]] bool IsSameAs(const Open& other) const {
      return is_zone == other.is_zone && name == other.name && value == other.value;
    }
  };

  static std::vector<Open> ShownOf(const LabelSet& set, std::int64_t begin_ns) {
    std::vector<Open> shown;
    for (const Label& label : set.labels()) {
      if (IsThreadLabel(label)) continue;
      if (label.key != kZoneLabel) {
        shown.push_back({.name = label.key, .value = ValueText(label), .begin_ns = begin_ns});
        continue;
      }
      VisitZones(set.Text(kZoneLabel), [&](std::string_view name, std::string_view path) {
        shown.push_back(
            {.is_zone = true, .name = name, .value = std::string(path), .begin_ns = begin_ns});
      });
    }
    return shown;
  }

  // Those that are not in `set` end, and new ones begin.
  void Change(const LabelSet& set, std::int64_t end_ns, std::int64_t begin_ns) {
    const auto is_in = [](const std::vector<Open>& all, const Open& one) {
      return std::ranges::any_of(all, [&one](const Open& each) { return each.IsSameAs(one); });
    };
    std::vector<Open> shown = ShownOf(set, begin_ns);
    std::erase_if(open_, [&](const Open& open) {
      if (is_in(shown, open)) return false;
      JsonWriter data;
      data.BeginObject();
      data.Member("type", open.is_zone ? "Zone" : "Label");
      data.Member("value", open.value);
      data.EndObject();
      markers_.push_back({.name = tables_.Text(std::string(open.name)),
                          .span = {.begin_ns = open.begin_ns, .end_ns = end_ns},
                          .data = data.Take()});
      return true;
    });
    for (Open& one : shown) {
      if (!is_in(open_, one)) open_.push_back(std::move(one));
    }
  }

  const Profile& profile_;
  FirefoxTables& tables_;
  std::vector<Marker>& markers_;
  std::vector<Open> open_;  // its names are parts of the profile's sets
};

template <class Element>
void Column(JsonWriter& json, std::string_view key, const std::vector<Marker>& markers,
            Element element) {
  json.Key(key);
  json.BeginArray();
  for (const Marker& marker : markers) element(marker);
  json.EndArray();
}

void WriteMarkers(JsonWriter& json, const std::vector<Marker>& markers) {
  constexpr std::int64_t kInterval = 1;  // the format's phase
  json.BeginObject();
  Column(json, "data", markers, [&](const Marker& marker) { json.Raw(marker.data); });
  Column(json, "name", markers, [&](const Marker& marker) { json.Number(marker.name); });
  Column(json, "startTime", markers,
         [&](const Marker& marker) { json.Millionths(marker.span.begin_ns); });
  Column(json, "endTime", markers,
         [&](const Marker& marker) { json.Millionths(marker.span.end_ns); });
  Column(json, "phase", markers, [&](const Marker&) { json.Number(kInterval); });
  Column(json, "category", markers, [&](const Marker&) { json.Number(0); });
  json.Member("length", static_cast<std::int64_t>(markers.size()));
  json.EndObject();
}

}  // namespace

std::vector<FirefoxSample> FirefoxSamples(const Profile& profile, const FirefoxTables& tables,
                                          const ThreadParts& thread,
                                          const FirefoxColumns& columns) {
  const Span life = LifeOf(profile, thread);
  std::vector<FirefoxSample> moments;
  std::vector<FirefoxSample> rests;
  for (const SamplePart& part : thread.parts) {
    const std::int64_t weight = part.values[columns.weight];
    if (weight == 0) continue;
    const ProfileSample& row = profile.samples[part.sample];
    const bool is_moment = part.time_ns != 0;
    // Viewers draw nothing before the begin.
    const std::int64_t time_ns =
        is_moment ? std::max<std::int64_t>(Since(profile, part.time_ns), 0) : life.end_ns;
    (is_moment ? moments : rests)
        .push_back({.time_ns = time_ns,
                    .stack = tables.StackOf(row.stack),
                    .weight = weight,
                    .cpu_ns = columns.cpu.has_value() ? part.values[*columns.cpu] : 0,
                    .labels = row.labels});
  }
  std::vector<FirefoxSample> samples;
  if (moments.empty() && rests.empty()) return samples;
  samples.reserve(2 * moments.size() + rests.size() + 1);
  // Viewers do not count the CPU time of the first row.
  samples.push_back({.time_ns = life.begin_ns});
  if (moments.empty()) {
    Spread(rests, life);
  } else {
    std::ranges::stable_sort(moments, {}, &FirefoxSample::time_ns);
    samples[0].time_ns = std::min(life.begin_ns, moments[0].time_ns);
    AddMoments(moments, samples);
  }
  for (FirefoxSample& rest : rests) {
    if (!moments.empty()) rest.labels = -1;
    rest.time_ns = std::max(rest.time_ns, samples.back().time_ns);
    samples.push_back(rest);
  }
  return samples;
}

void WriteFirefoxThread(JsonWriter& json, const Profile& profile, FirefoxTables& tables,
                        const ThreadParts& thread, const std::vector<FirefoxSample>& samples,
                        std::string_view weight_type) {
  const Span life = LifeOf(profile, thread);
  std::vector<Marker> markers;
  for (const ProfileThread* one : thread.lives)
    markers.push_back(LifeMarker(profile, tables, *one));
  LabelMarkers(profile, tables, markers).Add(samples, life.begin_ns);
  const bool has_cpu =
      std::ranges::any_of(samples, [](const FirefoxSample& sample) { return sample.cpu_ns != 0; });
  json.BeginObject();
  json.Member("processType", "default");
  json.Member("processStartupTime", std::int64_t{0});
  json.Key("processShutdownTime");
  json.Null();
  json.Key("registerTime");
  json.Millionths(life.begin_ns);
  json.Key("unregisterTime");
  const bool has_ended =
      !thread.lives.empty() &&
      std::ranges::all_of(thread.lives, [](const ProfileThread* one) { return one->end_ns != 0; });
  if (has_ended) {
    json.Millionths(life.end_ns);
  } else {
    json.Null();
  }
  json.Key("pausedRanges");
  json.Raw("[]");
  json.Member("name", ThreadText(thread.id, thread.name));
  json.Member("isMainThread", static_cast<std::uint64_t>(thread.id) == profile.process_id);
  json.Member("processName", profile.program);
  json.Member("pid", std::to_string(profile.process_id));
  json.Member("tid", thread.id);
  json.Member("showMarkersInTimeline", true);
  json.Key("samples");
  WriteSamples(json, samples, weight_type, has_cpu);
  json.Key("markers");
  WriteMarkers(json, markers);
  json.EndObject();
}

void WriteFirefoxMarkerSchemas(JsonWriter& json) {
  json.Raw(R"([{"name":"Thread","tooltipLabel":"Registered thread","tableLabel":"registered",)"
           R"("display":["marker-chart","marker-table"],"fields":[)"
           R"({"key":"cpu","label":"CPU time","format":"nanoseconds"},)"
           R"({"key":"samples","label":"Samples","format":"integer"}]},)"
           R"({"name":"Label","tooltipLabel":"{marker.name} = {marker.data.value}",)"
           R"("tableLabel":"{marker.data.value}","chartLabel":"{marker.data.value}",)"
           R"("display":["marker-chart","marker-table"],"fields":[)"
           R"({"key":"value","label":"Value","format":"string"}]},)"
           R"({"name":"Zone","tooltipLabel":"{marker.name}","tableLabel":"{marker.data.value}",)"
           R"("chartLabel":"{marker.name}","display":["marker-chart","marker-table"],"fields":[)"
           R"({"key":"value","label":"Zones","format":"string"}]}])");
}

}  // namespace strobe::internal
