// Writes the pages of the browser's tests into the directory that is its argument, and what they
// must say: <name>.html and truth.json.
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "page_truth.h"
#include "server_profile.h"
#include "strobe/encode/html_encoder.h"
#include "strobe/testing/profiles.h"

namespace strobe::testing {
namespace {

constexpr std::int64_t kWindowBeginNs = 18'000'000'000, kWindowEndNs = 21'000'000'000;
const std::vector<std::string> kPatterns = {"json::", "memcpy|malloc", "^store::.*Scan", "nothing"};

class Writer {
 public:
  explicit Writer(std::string directory) : directory_(std::move(directory)) {}

  void Page(const std::string& name, const absl::StatusOr<std::string>& bytes) {
    std::ofstream file(absl::StrCat(directory_, "/", name, ".html"), std::ios::binary);
    if (!bytes.ok() || !(file << *bytes).flush()) Fail(name);
  }
  void Page(const SampleProfile& sample) {
    Page(sample.name, HtmlEncoder().Encode(sample.profile, sample.symbols));
  }
  void Say(const std::string& name, const std::string& json) {
    absl::StrAppend(&truths_, truths_.empty() ? "" : ",\n", JsonText(name), ": ", json);
  }
  bool Finish() {
    std::ofstream file(directory_ + "/truth.json", std::ios::binary);
    if (!(file << "{" << truths_ << "}\n").flush()) Fail("truth.json");
    return is_ok_;
  }

 private:
  void Fail(const std::string& name) {
    std::fprintf(stderr, "cannot write %s\n", name.c_str());
    is_ok_ = false;
  }

  std::string directory_;
  std::string truths_;
  bool is_ok_ = true;
};

// Names that try to be more than names.
SampleProfile HostileProfile() {
  SampleProfile sample{"hostile", ProfileHead(), {}};
  sample.profile.program = "</title><script>document.title='owned'</script>";
  sample.profile.modules = {
      {0x1000, 0x2000, 0, 0, "/tmp/<img src=x onerror=alert(1)>.so", "\"'><b>"}};
  ProfileBuilder builder(sample.profile);
  builder.AddThread(1, "</script><script>alert(1)</script>");
  builder.AddThread(2,
                    "\xE2\x80\xAE"
                    "daerht");
  const std::vector<std::string> names = {
      "</script><script>alert('name')</script>",
      "<!--<script>",
      "\"><img src=x onerror=alert(1)>",
      "'; alert(1); '",
      "${alert(1)}`{{data}}",
      "\xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D::\xD9\x85\xD8\xB1\xD8\xAD\xD8\xA8\xD8\xA7",
      "evil\xE2\x80\xAE"
      "gnp.exe",
      "\xE5\x87\xBD\xE6\x95\xB0\xF0\x9F\x94\xA5()",
      "__proto__",
      "constructor",
      "bad \xFF\xC3 bytes",
      std::string("null\0byte", 9),
  };
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    sample.symbols.functions.push_back(
        {.name = names[i], .system_name = names[i], .file = names[i]});
    sample.symbols.frames.push_back({.function = i, .line = i});
    const std::uint32_t frame = builder.AddFrame(0x1000 + 16 * i, 0);
    const std::int64_t count = 100 - i;
    builder.AddSample(i % 2, {frame}, {count, count * sample.profile.period});
  }
  sample.profile.label_sets[0] = sample.profile.label_sets[0].Joined(
      LabelSet(std::vector<Label>{{"<i>key</i>", "<u>value</u>"}}));
  return sample;
}

// A comparison in which only chance makes a difference.
void WriteComparisons(Writer& writer, const SampleProfile& base) {
  const auto compare = [&](const std::string& name, const ServerOptions& options) {
    const SampleProfile now = ServerProfile(options);
    writer.Page(
        name, HtmlEncoder().EncodeComparison(now.profile, now.symbols, base.profile, base.symbols));
    const Truth now_truth = TruthBuilder(now).OfRows(1, {});
    const Truth base_truth = TruthBuilder(base).OfRows(1, {});
    writer.Say(name,
               absl::StrCat("{\"now\":", JsonOf(now_truth), ",\n\"base\":", JsonOf(base_truth),
                            ",\n\"changes\":", JsonOfChanges(now_truth, base_truth), "}"));
  };
  compare("slower_parser",
          {.seed = 2, .parse_weight = 28, .has_moments = false, .load_bias = 0x7000'0000'0000});
  compare("equal_runs", {.seed = 3, .has_moments = false});
}

void WriteServer(Writer& writer, const SampleProfile& server) {
  writer.Page(server);
  const TruthBuilder builder(server);
  writer.Say("server samples", JsonOf(builder.OfRows(0, kPatterns)));
  writer.Say("server cpu", JsonOf(builder.OfRows(1, kPatterns)));
  writer.Say("server cpu, worker 9001",
             JsonOf(builder.OfRows(1, kPatterns, [](const LabelSet& set) {
               return set.Number(kThreadIdLabel) == 9001;
             })));
  writer.Say("server cpu, workers, /index.html",
             JsonOf(builder.OfRows(1, kPatterns, [](const LabelSet& set) {
               return set.Text(kThreadNameLabel) == "worker" &&
                      set.Text("endpoint") == "/index.html";
             })));
  const Truth window = builder.OfMoments(1, kPatterns, kWindowBeginNs, kWindowEndNs, true);
  const Truth rest = builder.OfMoments(1, kPatterns, kWindowBeginNs, kWindowEndNs, false);
  writer.Say("server cpu, window", JsonOf(window));
  writer.Say("server cpu, window against the rest", JsonOfChanges(window, rest));
}

// A difference of heaps, as other tools write them: one function has less, one has more.
SampleProfile DifferenceProfile() {
  SampleProfile sample{"difference", ProfileHead(), {}};
  sample.profile.value_types = {{"inuse_space", "bytes"}};
  sample.profile.default_value_type = 0;
  ProfileBuilder builder(sample.profile);
  builder.AddThread(1, "main");
  std::vector<std::uint32_t> frames;
  for (const char* const name : {"main", "freed", "grown(int)"}) {
    const auto number = static_cast<std::uint32_t>(sample.symbols.functions.size());
    sample.symbols.functions.push_back({.name = name, .system_name = name});
    sample.symbols.frames.push_back({.function = number});
    frames.push_back(builder.AddFrame(0x1000 + 16 * number, Frame::kNoModule));
  }
  builder.AddSample(0, {frames[0], frames[1]}, {-3 << 20});
  builder.AddSample(0, {frames[0], frames[2]}, {1 << 20});
  return sample;
}

// More stacks than a page has nodes.
void WriteCut(Writer& writer) {
  SampleProfile sample = RandomProfile(HtmlEncoder::kMaxNodes / 24, 30, 0, 500);
  sample.name = "cut";
  writer.Page(sample);
  Truth truth = TruthBuilder(sample).OfRows(1, {});
  truth.tree.clear();  // 200,000 paths, of which the page has no half
  truth.callers.clear();
  truth.callees.clear();
  writer.Say("cut", JsonOf(truth));
}

bool WriteAll(const std::string& directory) {
  Writer writer(directory);
  for (const SampleProfile& sample : SampleProfiles()) {
    writer.Page(sample);
    for (std::size_t type = 0; type < sample.profile.value_types.size(); ++type)
      writer.Say(absl::StrCat(sample.name, " ", type),
                 JsonOf(TruthBuilder(sample).OfRows(type, {})));
  }
  WriteServer(writer, ServerProfile({}));
  WriteComparisons(writer, ServerProfile({.has_moments = false}));
  writer.Page(HostileProfile());
  writer.Page(DifferenceProfile());
  WriteCut(writer);
  return writer.Finish();
}

}  // namespace
}  // namespace strobe::testing

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
    return 2;
  }
  return strobe::testing::WriteAll(argv[1]) ? 0 : 1;
}
