// Tables of options: how a row binds a member of an options struct to environment variables and to
// the values that it accepts.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/charconv.h"
#include "strobe/core/options.h"
#include "strobe/core/settings/secret.h"

namespace strobe::internal {

// The values that an option accepts, as a predicate and as a text. tests/core/options_test.cc
// checks that each `text` agrees with its predicate.
template <class T>
struct Between {
  T least;
  T most;
  std::string_view text;
  // Refuses NaN too, because no comparison with it is true.
  [[nodiscard]] bool Accepts(T value) const { return value >= least && value <= most; }
};

struct Path {
  static constexpr std::size_t kMaxBytes = 4095;
  std::string_view text;
  bool may_be_empty = false;
  [[nodiscard]] bool Accepts(const std::string& value) const {
    return (may_be_empty || !value.empty()) && value.size() <= kMaxBytes &&
           value.find('\0') == std::string::npos;
  }
};

struct Switch {
  std::string_view text;
  [[nodiscard]] bool Accepts(bool /*value*/) const { return true; }
};
inline constexpr Switch kSwitch{"0 or 1 (or false or true)"};

// The texts of an enumeration's values, in their order, from 0: specialised for each that an option
// has.
template <class Enumeration>
struct OptionNames;

template <class Enumeration>
struct AnyOf {
  std::string_view text;
  [[nodiscard]] bool Accepts(Enumeration value) const {
    return static_cast<std::size_t>(value) < OptionNames<Enumeration>::kNames.size();
  }
};

// Parses all of `text`, or fails: it accepts no spaces, no sign but '-', and nothing behind the
// number. It accepts "inf" and "nan", which the range check refuses.
template <class T>
bool ParseOption(std::string_view text, T& value) {
  if constexpr (std::same_as<T, bool>) {
    value = text == "1" || text == "true";
    return value || text == "0" || text == "false";
  } else if constexpr (std::same_as<T, std::string> || std::same_as<T, Secret>) {
    value = std::string(text);
    return true;
  } else if constexpr (std::is_enum_v<T>) {
    const auto& names = OptionNames<T>::kNames;
    const auto* const name = std::ranges::find(names, text);
    if (name == names.end()) return false;
    value = static_cast<T>(name - names.begin());
    return true;
  } else {
    const char* const text_end = text.data() + text.size();
    if constexpr (std::same_as<T, double>) {
      // libc++ before 20 reads no double. Abseil also reads hexadecimal ones.
      const auto [end, error] = absl::from_chars(text.data(), text_end, value);
      return error == std::errc() && end == text_end && text.find_first_of("xX") == text.npos;
    } else {
      const auto [end, error] = std::from_chars(text.data(), text_end, value);
      return error == std::errc() && end == text_end;
    }
  }
}

inline std::string FormatOption(bool value) { return value ? "1" : "0"; }
inline std::string FormatOption(const std::string& value) { return value; }
inline std::string FormatOption(const Secret& value) { return value.empty() ? "" : "(secret)"; }
inline std::string FormatOption(std::int64_t value) { return std::to_string(value); }
inline std::string FormatOption(double value) {
  std::array<char, 32> buffer{};
  return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr};
}

template <class T>
requires(std::is_enum_v<T>) std::string FormatOption(T value) {
  const auto& names = OptionNames<T>::kNames;
  const auto index = static_cast<std::size_t>(value);
  return std::string(index < names.size() ? names[index] : "unknown");
}

// The value of an option of a type that Option may hold.
template <class T>
bool SetFromText(Option<T>& option, std::string_view text, const auto& accepted,
                 OptionSource source = OptionSource::kEnvironment) {
  T value{};
  if (!ParseOption(text, value) || !accepted.Accepts(value)) return false;
  if (source == OptionSource::kCode) {
    option = Option<T>(std::move(value));
  } else if (!option.is_set()) {
    option = typename Option<T>::Default{std::move(value)};
  }
  return true;
}

// The row of the option `kField` of Options. `kAccepted` has the members `text` and Accepts.
template <class Options, auto kField, const auto& kAccepted>
constexpr BasicOptionRow<Options> FieldRow(std::string_view variable, std::string_view field,
                                           std::string_view description) {
  using Value = std::remove_cvref_t<decltype(*(std::declval<Options&>().*kField))>;
  return {.variable = variable,
          .field = field,
          .accepted = kAccepted.text,
          .description = description,
          .get = [](const Options& options) { return FormatOption(*(options.*kField)); },
          .set =
              [](Options& options, std::string_view text, OptionSource source) {
                return SetFromText(options.*kField, text, kAccepted, source);
              },
          .valid = [](const Options& options) { return kAccepted.Accepts(*(options.*kField)); },
          .is_set = [](const Options& options) { return (options.*kField).is_set(); },
          .is_secret = std::same_as<Value, Secret>};
}

// Returns a variable's value, if the environment has it.
using Environment = std::function<std::optional<std::string>(const char*)>;
// Gets one line for people.
using Warn = std::function<void(const std::string&)>;

// The line for a variable whose value is not accepted. A secret value is left out.
std::string IgnoredVariable(std::string_view variable, std::string_view value,
                            std::string_view accepted, bool is_secret);
// The status for a field whose value is not accepted.
absl::Status WrongField(std::string_view field, std::string_view value, std::string_view accepted);

// Applies the environment to the options that code has not set: see strobe::ApplyEnvironment.
// Several rows may have the same field: of their variables, the last in the table counts.
template <class Options>
void ApplyRows(std::span<const BasicOptionRow<Options>> table, Options& options,
               const Environment& environment, const Warn& warn) {
  for (const BasicOptionRow<Options>& row : table) {
    // NUL-terminated, because it is a literal.
    const std::optional<std::string> value = environment(row.variable.data());
    if (!value || row.set(options, *value, OptionSource::kEnvironment)) continue;
    warn(IgnoredVariable(row.variable, *value, row.accepted, row.is_secret));
  }
}

// InvalidArgument with the field's name for the first option out of its range.
template <class Options>
absl::Status CheckRows(std::span<const BasicOptionRow<Options>> table, const Options& options) {
  for (const BasicOptionRow<Options>& row : table) {
    if (!row.valid(options)) return WrongField(row.field, row.get(options), row.accepted);
  }
  return absl::OkStatus();
}

}  // namespace strobe::internal
