// The members of Parts (core/part.h): the parts that a user gives a profiler by value.
#pragma once

#include <tuple>

#include "strobe/core/options.h"
#include "strobe/core/part.h"
#include "strobe/export/output_list.h"

namespace strobe {
namespace internal {

// With several outputs, each has its own parts: {.outputs = {{}, {.exporter = MyExporter(url)}}}.
template <class S, class... O, class P>
struct PartsFor<S, OutputList<O...>, P> {
  static constexpr bool kCanBeMade =
      Part<S, SymbolOptions>::kCanBeMade && P::kCanBeMade &&
      (... && (decltype(O::encoder)::kCanBeMade && decltype(O::exporter)::kCanBeMade));

  typename P::Parts providers{};
  Part<S, SymbolOptions> symbolizer{};
  std::tuple<O...> outputs{};

  [[nodiscard]] const std::tuple<O...>& AllOutputs() const { return outputs; }
};
// With one output, its parts are members of Parts: {.exporter = MyExporter(url)}.
template <class S, class E, class X, class P>
struct PartsFor<S, OutputList<Output<E, X>>, P> {
  static constexpr bool kCanBeMade = Part<S, SymbolOptions>::kCanBeMade && P::kCanBeMade &&
                                     Part<E>::kCanBeMade && Part<X, ExporterOptions>::kCanBeMade;

  typename P::Parts providers{};
  Part<S, SymbolOptions> symbolizer{};
  Part<E> encoder{};
  Part<X, ExporterOptions> exporter{};

  [[nodiscard]] std::tuple<Output<E, X>> AllOutputs() const {
    return {Output<E, X>{.encoder = encoder, .exporter = exporter}};
  }
};

}  // namespace internal
}  // namespace strobe
