// ProviderList: the providers of one Profiler, and the place of their columns in a row of values.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>

#include "strobe/core/options.h"
#include "strobe/core/part.h"
#include "strobe/core/record.h"
#include "strobe/core/value_type.h"
#include "strobe/provider/sample_provider.h"

namespace strobe {

// The most providers: a capture carries one weight for each.
inline constexpr std::size_t kMaxProviders = 8;

template <SampleProvider... Providers>
class ProviderList {
 public:
  static constexpr std::size_t kCount = sizeof...(Providers);
  static constexpr bool kBringsNoFiles = (BringsNoFiles<Providers> && ...);
  static constexpr std::size_t kValueCount = (Providers::kValueTypes.size() + ... + 0);
  template <std::size_t kIndex>
  using At = std::tuple_element_t<kIndex, std::tuple<Providers...>>;
  template <class Provider>
  static constexpr bool kHas = (std::same_as<Provider, Providers> || ...);
  template <class Provider>
  static constexpr std::size_t kCellsOf = EventProvider<Provider>  ? Provider::kValueTypes.size()
                                          : WaitProvider<Provider> ? 0
                                                                   : 1;
  template <class Provider>
  static constexpr bool HasPollsFor() {
    if constexpr (WaitProvider<Provider>) return kHas<typename Provider::WaitsOf>;
    return true;
  }
  static_assert(kCount >= 1 && kCount <= kMaxProviders, "a ProviderList has from 1 to 8 providers");
  static_assert(((Providers::kValueTypes.size() > 0) && ...),
                "each provider of a ProviderList has a value type");
  static_assert(((EventProvider<Providers> ||
                  Providers::kValueTypes.size() == (internal::kCountsSamples<Providers> ? 2 : 1)) &&
                 ...),
                "a provider that brings no events has one value type, or two with kCountsSamples");
  static_assert((!(EventProvider<Providers> && internal::kCountsSamples<Providers>)&&...),
                "an event brings each of its amounts, also a count");
  static_assert((!(InstantProvider<Providers> && PolledProvider<Providers>)&&...),
                "a provider is sampled at instants or polled, not both");
  static_assert((HasPollsFor<Providers>() && ...),
                "a ProviderList with a WaitProvider has the provider of its polls");
  static_assert(kValueCount <= kMaxValueTypes, "a ProviderList has at most 16 value types");

  // The per-thread states of all providers.
  using ThreadStates = std::tuple<typename internal::ThreadStateOf<Providers>::Type...>;

  static constexpr bool kCanBeMade = (Part<Providers, SamplingOptions>::kCanBeMade && ...);
  // The providers that a program gives, in any order: {.providers = {MyProvider(queue)}}. The
  // others are made from the options.
  class Parts {
   public:
    Parts() requires kCanBeMade = default;
    template <class... Given>
    requires(sizeof...(Given) > 0 && (kHas<Given> && ...))
        // NOLINTNEXTLINE(google-explicit-constructor): providers are given by their values
        Parts(Given... given)
        : parts_(Pick<Providers>(given...)...) {}

    template <class Provider>
    [[nodiscard]] const Part<Provider, SamplingOptions>& Of() const {
      return std::get<Part<Provider, SamplingOptions>>(parts_);
    }

   private:
    template <class Provider, class... Given>
    static Part<Provider, SamplingOptions> Pick(Given&... given) {
      constexpr bool kIsGiven = (std::same_as<Provider, Given> || ...);
      static_assert(kIsGiven || Part<Provider, SamplingOptions>::kCanBeMade,
                    "a provider that cannot be made from the options has to be given");
      if constexpr (kIsGiven) {
        return std::get<Provider&>(std::tie(given...));
      } else {
        return {};
      }
    }

    std::tuple<Part<Providers, SamplingOptions>...> parts_;
  };

  // Constructs each provider in place; none is moved.
  explicit ProviderList(const SamplingOptions& options, const Parts& parts = {})
      : providers_(Source<Providers>{parts.template Of<Providers>(), options}...) {}

  // The columns of provider `index` begin here; FirstColumn(kCount) is one past the last.
  static constexpr std::size_t FirstColumn(std::size_t index) {
    constexpr std::array<std::size_t, kCount> kSizes{Providers::kValueTypes.size()...};
    std::size_t column = 0;
    for (std::size_t i = 0; i < index; ++i) column += kSizes[i];
    return column;
  }

  // The column that provider `index` shows by default: its last, after any count.
  static constexpr std::size_t ShownColumn(std::size_t index) {
    return std::max<std::size_t>(FirstColumn(index + 1), 1) - 1;
  }

  // Captures write amounts into cells: one for a provider's last value type, or one for each value
  // type of an EventProvider, or none for a WaitProvider, in the order of the columns. The cells of
  // provider `index` begin here; FirstCell(kCount) is one past the last.
  static constexpr std::size_t FirstCell(std::size_t index) {
    constexpr std::array<std::size_t, kCount> kCells{kCellsOf<Providers>...};
    std::size_t cell = 0;
    for (std::size_t i = 0; i < index; ++i) cell += kCells[i];
    return cell;
  }
  static constexpr std::size_t kCellCount = (kCellsOf<Providers> + ... + 0);
  // The column of each cell's amount.
  static constexpr std::array<std::size_t, kCellCount> CellColumns() {
    std::array<std::size_t, kCellCount> columns{};
    for (std::size_t i = 0; i < kCount; ++i) {
      const std::size_t cells = FirstCell(i + 1) - FirstCell(i);
      for (std::size_t n = 0; n < cells; ++n)
        columns[FirstCell(i) + n] = FirstColumn(i + 1) - cells + n;
    }
    return columns;
  }

  // The collector has an account for each cell, then one for each WaitProvider. Provider `index`
  // has its first, or only, account here.
  static constexpr std::size_t kAccountCount = kCellCount + (WaitProvider<Providers> + ... + 0);
  static constexpr std::size_t FirstAccount(std::size_t index) {
    constexpr std::array<bool, kCount> kFindWaits{WaitProvider<Providers>...};
    std::size_t account = kCellCount;
    for (std::size_t i = 0; i < index; ++i) account += kFindWaits[i] ? 1 : 0;
    return kFindWaits[index] ? account : FirstCell(index);
  }
  // The column of each account's amount.
  static constexpr std::array<std::size_t, kAccountCount> AccountColumns() {
    constexpr std::array<bool, kCount> kFindWaits{WaitProvider<Providers>...};
    std::array<std::size_t, kAccountCount> columns{};
    constexpr auto kOfCells = CellColumns();
    std::copy(kOfCells.begin(), kOfCells.end(), columns.begin());
    for (std::size_t i = 0; i < kCount; ++i) {
      if (kFindWaits[i]) columns[FirstAccount(i)] = FirstColumn(i);
    }
    return columns;
  }

  // True if there is a WaitProvider.
  static constexpr bool kFindsWaits = (WaitProvider<Providers> || ...);
  // True if the rate of provider `index` can be higher for a time.
  static constexpr bool IsRated(std::size_t index) {
    constexpr std::array<bool, kCount> kAreRated{RatedProvider<Providers>...};
    return kAreRated[index];
  }
  // True if there is an EventProvider: the program's own threads bring its samples.
  static constexpr bool kBringsEvents = (EventProvider<Providers> || ...);
  // True if there is a LevelProvider.
  static constexpr bool kHasLevels = (LevelProvider<Providers> || ...);
  // The number of `Provider`, which must be in the list.
  template <class Provider>
  static constexpr std::size_t IndexOf() {
    static_assert(kHas<Provider>, "no provider of this ProviderList");
    constexpr std::array<bool, kCount> kIsIt{std::same_as<Provider, Providers>...};
    std::size_t index = 0;
    while (!kIsIt[index]) ++index;
    return index;
  }

  // The value types of all providers, in order.
  static constexpr std::array<ValueType, kValueCount> AllValueTypes() {
    std::array<ValueType, kValueCount> types{};
    std::size_t next = 0;
    const auto add = [&](const auto& list) {
      for (const ValueType& type : list) types[next++] = type;
    };
    (add(Providers::kValueTypes), ...);
    return types;
  }

  // The value types that captures write amounts of, as a record has them.
  static constexpr std::uint16_t RecordedValueTypes() {
    std::uint32_t bits = 0;
    for (const std::size_t column : CellColumns()) bits |= std::uint32_t{1} << column;
    return static_cast<std::uint16_t>(bits);
  }

  // How the amounts of a record become columns. A count stands before the column that it counts.
  static constexpr ValueLayout Layout() {
    ValueLayout layout{.value_count = kValueCount, .recorded = RecordedValueTypes()};
    constexpr std::array<bool, kCount> kHaveCounts{internal::kCountsSamples<Providers>...};
    for (std::size_t i = 0; i < kCount; ++i) layout.is_count[FirstColumn(i)] = kHaveCounts[i];
    for (std::size_t column = 0; column < kValueCount; ++column)
      layout.sources[column] =
          static_cast<std::uint8_t>(column + (layout.is_count[column] ? 1 : 0));
    return layout;
  }

  // Calls visit(provider, std::integral_constant<std::size_t, index>) for each provider that is
  // enabled.
  template <class Visitor>
  void ForEachEnabled(Visitor&& visit) {
    ForEachIndexed(visit, std::make_index_sequence<kCount>());
  }

 private:
  // A provider need not be movable, so its own constructor makes it.
  template <class Provider>
  struct Source {
    const Part<Provider, SamplingOptions>& part;
    const SamplingOptions& options;
  };
  template <class Provider>
  struct Holder {
    // NOLINTNEXTLINE(google-explicit-constructor): a tuple makes it
    Holder(const Source<Provider>& source) : provider(source.part.Make(source.options)) {}
    Provider provider;
  };

  template <class Visitor, std::size_t... kIndex>
  void ForEachIndexed(Visitor& visit, std::index_sequence<kIndex...> /*indices*/) {
    (VisitIfEnabled(visit, std::get<kIndex>(providers_).provider,
                    std::integral_constant<std::size_t, kIndex>()),
     ...);
  }
  template <class Visitor, class Provider, class Index>
  static void VisitIfEnabled(Visitor& visit, Provider& provider, Index index) {
    if (provider.enabled()) visit(provider, index);
  }

  static constexpr bool ValueTypesAreDistinct() {
    const auto types = AllValueTypes();
    for (std::size_t i = 0; i < types.size(); ++i) {
      for (std::size_t j = i + 1; j < types.size(); ++j) {
        if (types[i] == types[j]) return false;
      }
    }
    return true;
  }
  static_assert(ValueTypesAreDistinct(),
                "two providers of a ProviderList have the same value type");

  // True if the cells of all providers but EventProviders fit a signal's payload.
  static constexpr bool CellsFitPayloads() {
    constexpr std::array<bool, kCount> kAreEvents{EventProvider<Providers>...};
    for (std::size_t i = 0; i < kCount; ++i) {
      if (!kAreEvents[i] && FirstCell(i) >= kMaxProviders) return false;
    }
    return true;
  }
  static_assert(CellsFitPayloads(),
                "a ProviderList names the providers of events behind the others");

  std::tuple<Holder<Providers>...> providers_;
};

}  // namespace strobe
