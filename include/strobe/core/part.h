// Part: a part of a profiler, given by the program or made by the profiler. Parts: all parts of a
// profiler.
#pragma once

#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>

namespace strobe {

// Holds a T that the program has made, or nothing. In the second case, the profiler makes a T from
// `Arguments`, its options. Converts from a T, so that a part is given by its value:
// {.exporter = MyExporter(url)}.
// * A T that cannot be made from `Arguments`, but without any, is made so.
// * A profiler never uses the given part itself, but a copy for each session. State that the copies
//   share lies behind a pointer or a reference, and must outlive the profiler.
// * A T that cannot be copied cannot be given. A T that cannot be made must be given.
template <class T, class... Arguments>
class Part {
 public:
  static constexpr bool kCanBeGiven = std::copy_constructible<T>;
  static constexpr bool kTakesArguments = std::constructible_from<T, const Arguments&...>;
  static constexpr bool kCanBeMade = kTakesArguments || std::default_initializable<T>;
  static_assert(kCanBeGiven || kCanBeMade,
                "a part is copyable, or the profiler can make it from its options");

  Part() requires kCanBeMade = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a part is given by its value
  Part(T given) requires kCanBeGiven : given_(std::move(given)) {}

  // A copy of the given T, or a new T if none was given.
  [[nodiscard]] T Make(const Arguments&... arguments) const {
    if constexpr (!kCanBeMade) {
      return *given_;
    } else if constexpr (kCanBeGiven) {
      if (given_.has_value()) return *given_;
      return MakeNew(arguments...);
    } else {
      return MakeNew(arguments...);
    }
  }

 private:
  static T MakeNew([[maybe_unused]] const Arguments&... arguments) {
    if constexpr (kTakesArguments) {
      return T(arguments...);
    } else {
      return T();
    }
  }

  struct Nothing {};
  std::conditional_t<kCanBeGiven, std::optional<T>, Nothing> given_{};
};

// A part that brings no open file to the calls of its functions: what they use, they open, or they
// ask whether a number that they have kept is still their file. A session all of whose parts are so
// has files of its own, where the platform can: its threads take no number of the program's.
// Without the mark, the functions are called with the program's files.
template <class P>
concept BringsNoFiles = requires {
  requires P::kBringsNoFiles;
};

namespace internal {
template <class Symbolizer, class Outputs, class Providers>
struct PartsFor;  // export/parts.h
}  // namespace internal

// The parts that a BasicProfiler<Traits> can be given, by name. A part that is left out is made
// from the options.
//
//   strobe::BasicProfiler<MyTraits> profiler({}, {.exporter = MyExporter(connection)});
template <class Traits>
using Parts = internal::PartsFor<typename Traits::Symbolizer, typename Traits::Outputs,
                                 typename Traits::Providers>;

}  // namespace strobe
