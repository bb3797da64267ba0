#include "html_data.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "../profile_comments.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "html_columns.h"
#include "html_threads.h"
#include "html_tree.h"
#include "strobe/base/amounts.h"
#include "strobe/encode/html_encoder.h"

namespace strobe::internal {
namespace {

constexpr std::uint64_t kVersion = 3;
constexpr std::size_t kNoColumn = 0xFFFFFFFF;
constexpr std::int64_t kNsPerMs = 1'000'000;

using Numbers = std::vector<std::uint64_t>;

// Of a count or a time.
std::uint64_t Amount(std::int64_t value) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0));
}

using Values = std::vector<std::int64_t>;

// Of all functions of a page, in a value type: in them, and with what they call.
struct FunctionAmounts {
  Values self, total;
};

// One profile of the page.
struct Side {
  explicit Side(const ProfileView& profile_view) : view(profile_view) {}

  const ProfileView& view;
  std::vector<std::size_t> columns;        // the profile's column of each of the page's value types
  std::vector<std::uint32_t> labels;       // the page's number of each label set
  std::vector<std::uint32_t> sample_node;  // of each sample: its node in the tree
  std::vector<std::uint32_t> sample_row;   // of each sample: its row in the page
  std::vector<FunctionAmounts> functions;  // of each value type, if stacks are left out
};

class Writer {
 public:
  Writer(const ProfileView& profile, const ProfileView* base) : code_(texts_) {
    sides_.emplace_back(profile);
    if (base != nullptr) sides_.emplace_back(*base);
  }

  absl::StatusOr<std::string> Run() {
    if (absl::Status status = MatchColumns(); !status.ok()) return status;
    for (Side& side : sides_) {
      if (absl::Status status = AddStacks(side); !status.ok()) return status;
      AddLabels(side);
    }
    CutTree();
    // The texts come first, and are complete only at the end.
    WriteHead();
    WriteCode();
    WriteTree();
    WriteLabels();
    for (Side& side : sides_) {
      WriteAbout(side.view.profile());
      WriteThreads(side.view.profile(), texts_, columns_);
      WriteLives(side.view.profile(), texts_, columns_);
      WriteRows(side);
      WriteFunctionAmounts(side);
    }
    WriteMoments(sides_.front());
    ColumnWriter texts;
    texts.Texts(texts_.texts());
    return texts.bytes() + columns_.bytes();
  }

 private:
  [[nodiscard]] const Profile& profile() const { return sides_.front().view.profile(); }
  [[nodiscard]] std::size_t type_count() const { return profile().value_types.size(); }
  // The value of a row or moment for each of the page's value types.
  static std::int64_t Value(const Side& side, std::span<const std::int64_t> values,
                            std::size_t type) {
    return side.columns[type] == kNoColumn ? 0 : values[side.columns[type]];
  }
  void WriteValues(std::span<const std::int64_t> values);
  void AddFunctions(Side& side, std::span<const std::uint32_t> functions,
                    const std::vector<bool>& is_outermost) const;
  void WriteFunctionAmounts(const Side& side);
  absl::Status MatchColumns();
  absl::Status AddStacks(Side& side);
  void AddLabels(Side& side);
  void CutTree();
  void WriteHead();
  void WriteCode();
  void WriteTree();
  void WriteLabels();
  void WriteAbout(const Profile& profile);
  void WriteRows(Side& side);
  void WriteMoments(const Side& side);

  std::vector<Side> sides_;
  PageTexts texts_;
  PageCode code_;
  PageTree tree_;
  std::vector<LabelSet> label_sets_;
  absl::flat_hash_map<LabelSet, std::uint32_t> label_numbers_;
  ColumnWriter columns_;
};

absl::Status Writer::MatchColumns() {
  for (Side& side : sides_) {
    const auto& types = side.view.profile().value_types;
    bool has_column = false;
    for (const ValueType& type : profile().value_types) {
      const auto column = std::find(types.begin(), types.end(), type);
      has_column = has_column || column != types.end();
      side.columns.push_back(
          column == types.end() ? kNoColumn : static_cast<std::size_t>(column - types.begin()));
    }
    if (!has_column && type_count() != 0)
      return absl::InvalidArgumentError("the two profiles have no value type in common");
  }
  return absl::OkStatus();
}

absl::Status Writer::AddStacks(Side& side) {
  const Profile& profile = side.view.profile();
  const auto frame_sites = code_.AddFrames(side.view);
  std::vector<bool> is_used(profile.stacks.size());
  for (const ProfileSample& sample : profile.samples) is_used[sample.stack] = true;
  for (std::size_t i = profile.stacks.size(); i-- > 1;)
    if (is_used[i]) is_used[profile.stacks[i].parent] = true;
  tree_.Reserve(static_cast<std::size_t>(std::count(is_used.begin(), is_used.end(), true)));
  std::vector<std::uint32_t> nodes(profile.stacks.size());
  for (std::size_t i = 1; i < profile.stacks.size(); ++i) {
    if (!is_used[i]) continue;
    nodes[i] = nodes[profile.stacks[i].parent];
    for (const std::uint32_t site : frame_sites[profile.stacks[i].frame])
      nodes[i] = tree_.Child(nodes[i], site);
    if (tree_.is_full())
      return absl::ResourceExhaustedError("the profile has too many stacks for a page");
  }
  side.sample_node.reserve(profile.samples.size());
  for (const ProfileSample& sample : profile.samples)
    side.sample_node.push_back(nodes[sample.stack]);
  return absl::OkStatus();
}

void Writer::AddLabels(Side& side) {
  for (const LabelSet& set : side.view.profile().label_sets) {
    const auto next = static_cast<std::uint32_t>(label_sets_.size());
    const auto [entry, is_new] = label_numbers_.try_emplace(set, next);
    if (is_new) label_sets_.push_back(set);
    side.labels.push_back(entry->second);
  }
}

// Sums of each function and value type, of all stacks: those that are going to be left out, too.
void Writer::AddFunctions(Side& side, std::span<const std::uint32_t> functions,
                          const std::vector<bool>& is_outermost) const {
  const std::vector<PageTree::Node>& nodes = tree_.nodes();
  for (std::size_t type = 0; type < type_count(); ++type) {
    Values amounts(nodes.size());
    for (std::size_t i = 0; i < side.sample_node.size(); ++i) {
      std::int64_t& amount = amounts[side.sample_node[i]];
      amount = SaturatedSum(amount, Value(side, side.view.profile().Values(i), type));
    }
    FunctionAmounts& sums = side.functions.emplace_back();
    sums.self.resize(code_.functions().size());
    sums.total.resize(code_.functions().size());
    for (std::size_t node = nodes.size() - 1; node > 0; --node) {
      std::int64_t& self = sums.self[functions[node]];
      self = SaturatedSum(self, amounts[node]);
    }
    for (std::size_t node = nodes.size() - 1; node > 0; --node) {
      std::int64_t& total = sums.total[functions[node]];
      if (is_outermost[node]) total = SaturatedSum(total, amounts[node]);
      amounts[nodes[node].parent] = SaturatedSum(amounts[nodes[node].parent], amounts[node]);
    }
  }
}

void Writer::CutTree() {
  const bool is_small = tree_.nodes().size() - 1 <= HtmlEncoder::kMaxNodes;
  const std::uint32_t site = is_small ? 0 : code_.PseudoSite("[small stacks]");
  std::vector<double> amounts(tree_.nodes().size());
  for (const Side& side : sides_) {
    for (std::size_t i = 0; i < side.sample_node.size() && type_count() != 0; ++i) {
      amounts[side.sample_node[i]] += static_cast<double>(
          Magnitude(Value(side, side.view.profile().Values(i), profile().default_value_type)));
    }
  }
  if (!is_small) {
    std::vector<std::uint32_t> functions(tree_.nodes().size());
    for (std::size_t node = 1; node < functions.size(); ++node)
      functions[node] = code_.sites()[tree_.nodes()[node].site].function;
    const std::vector<bool> is_outermost = tree_.Outermost(functions, code_.functions().size());
    for (Side& side : sides_) AddFunctions(side, functions, is_outermost);
  }
  const auto places = tree_.Cut(HtmlEncoder::kMaxNodes, amounts, site);
  for (Side& side : sides_)
    for (std::uint32_t& node : side.sample_node) node = places[node];
}

void Writer::WriteHead() {
  const std::size_t moments = profile().moments.size();
  const std::size_t stride = (moments + HtmlEncoder::kMaxMoments - 1) / HtmlEncoder::kMaxMoments;
  columns_.Column(Numbers{kVersion, sides_.size(), profile().default_value_type,
                          std::max<std::size_t>(stride, 1)});
  Numbers types, units;
  for (const ValueType& type : profile().value_types) {
    types.push_back(texts_.Index(type.type));
    units.push_back(texts_.Index(type.unit));
  }
  columns_.Column(types);
  columns_.Column(units);
}

void Writer::WriteCode() {
  // One column for each member, of the elements of a table.
  const auto write = [this](const auto& table, auto... members) {
    const auto column = [&](auto member) {
      Numbers numbers;
      numbers.reserve(table.size());
      for (const auto& element : table) numbers.push_back(element.*member);
      columns_.Column(numbers);
    };
    (column(members), ...);
  };
  write(code_.modules(), &PageModule::path, &PageModule::build_id);
  write(code_.functions(), &PageFunction::name, &PageFunction::short_name, &PageFunction::file,
        &PageFunction::line, &PageFunction::module, &PageFunction::is_pseudo);
  write(code_.sites(), &PageSite::function, &PageSite::line, &PageSite::is_inlined);
}

void Writer::WriteTree() {
  const std::vector<std::uint32_t> order = tree_.Preorder();
  std::vector<std::uint32_t> numbers(tree_.nodes().size()), depths(tree_.nodes().size());
  Numbers levels_up, sites;
  std::uint32_t depth_before = 0;
  for (std::size_t i = 1; i < order.size(); ++i) {
    const PageTree::Node& node = tree_.nodes()[order[i]];
    numbers[order[i]] = static_cast<std::uint32_t>(i);
    const std::uint32_t depth = depths[order[i]] = depths[node.parent] + 1;
    levels_up.push_back(depth_before + 1 - depth);
    depth_before = depth;
    sites.push_back(node.site);
  }
  columns_.Column(levels_up);
  columns_.Column(sites);
  for (Side& side : sides_)
    for (std::uint32_t& node : side.sample_node) node = numbers[node];
}

void Writer::WriteLabels() {
  Numbers counts, keys, values;
  for (const LabelSet& set : label_sets_) {
    counts.push_back(set.labels().size());
    for (const Label& label : set.labels()) {
      keys.push_back(texts_.Index(label.key));
      const auto* const number = std::get_if<std::int64_t>(&label.value);
      values.push_back(number != nullptr ? texts_.Index(absl::StrCat(*number))
                                         : texts_.Index(std::get<std::string>(label.value)));
    }
  }
  columns_.Column(counts);
  columns_.Column(keys);
  columns_.Column(values);
}

void Writer::WriteAbout(const Profile& profile) {
  Numbers about = {texts_.Index(profile.program),
                   profile.process_id,
                   profile.sequence,
                   Amount(profile.time_ns / kNsPerMs),
                   Amount(profile.duration_ns),
                   Amount(profile.period),
                   texts_.Index(profile.period_type.type),
                   texts_.Index(profile.period_type.unit)};
  for (const std::string& comment : ProfileComments(profile))
    about.push_back(texts_.Index(comment));
  columns_.Column(about);
}

void Writer::WriteValues(std::span<const std::int64_t> values) {
  Numbers sizes, negative;
  sizes.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    sizes.push_back(Magnitude(values[i]));
    if (values[i] < 0) negative.push_back(i);
  }
  columns_.Column(sizes);
  columns_.Column(negative);
}

void Writer::WriteFunctionAmounts(const Side& side) {
  for (std::size_t type = 0; type < type_count(); ++type) {
    const bool has_amounts = !side.functions.empty();
    WriteValues(has_amounts ? side.functions[type].self : Values());
    WriteValues(has_amounts ? side.functions[type].total : Values());
  }
}

void Writer::WriteRows(Side& side) {
  const Profile& profile = side.view.profile();
  std::vector<std::uint32_t> order(profile.samples.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto key = [&](std::uint32_t sample) {
    return std::pair(side.sample_node[sample], side.labels[profile.samples[sample].labels]);
  };
  std::sort(order.begin(), order.end(), [&key](std::uint32_t a, std::uint32_t b) {
    return std::pair(key(a), a) < std::pair(key(b), b);
  });
  Numbers nodes, labels;
  std::vector<Values> values(type_count());
  side.sample_row.resize(order.size());
  std::uint32_t node_before = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto [node, set] = key(order[i]);
    if (i == 0 || key(order[i - 1]) != key(order[i])) {
      nodes.push_back(node - std::exchange(node_before, node));
      labels.push_back(set);
      for (Values& column : values) column.push_back(0);
    }
    side.sample_row[order[i]] = static_cast<std::uint32_t>(nodes.size() - 1);
    for (std::size_t type = 0; type < type_count(); ++type) {
      std::int64_t& sum = values[type].back();
      sum = SaturatedSum(sum, Value(side, profile.Values(order[i]), type));
    }
  }
  columns_.Column(nodes);
  columns_.Column(labels);
  for (const Values& column : values) WriteValues(column);
}

void Writer::WriteMoments(const Side& side) {
  const Profile& profile = side.view.profile();
  const std::size_t count = profile.moments.size();
  const std::size_t stride =
      std::max<std::size_t>((count + HtmlEncoder::kMaxMoments - 1) / HtmlEncoder::kMaxMoments, 1);
  Numbers rows, times;
  std::vector<Values> values(type_count());
  std::int64_t time_before = profile.time_ns;
  for (std::size_t i = 0; i < count; i += stride) {
    const ProfileMoment& moment = profile.moments[i];
    rows.push_back(side.sample_row[moment.sample]);
    // Two's complement: the difference of any two times fits.
    times.push_back(moment.time_ns > time_before ? static_cast<std::uint64_t>(moment.time_ns) -
                                                       static_cast<std::uint64_t>(time_before)
                                                 : 0);
    time_before = std::max(time_before, moment.time_ns);
    for (std::size_t type = 0; type < type_count(); ++type)
      values[type].push_back(Value(side, profile.MomentValues(i), type));
  }
  columns_.Column(rows);
  columns_.Column(times);
  for (const Values& column : values) WriteValues(column);
}

}  // namespace

absl::StatusOr<std::string> PageData(const ProfileView& profile, const ProfileView* base) {
  return Writer(profile, base).Run();
}

}  // namespace strobe::internal
