#include "loaded_profile.h"

#include <algorithm>

#include "strobe/core/thread_info.h"
#include "strobe/encode/iterations.h"

namespace strobe::internal {

void LoadedProfile::CleanTexts() {
  const auto clean = [](std::string& text) { text = SanitizedText(text, text.size()); };
  const auto type = [this](ValueType& column) {
    column = {Keep(SanitizedText(column.type, column.type.size())),
              Keep(SanitizedText(column.unit, column.unit.size()))};
  };
  for (ValueType& column : profile.value_types) type(column);
  type(profile.period_type);
  for (std::string& comment : comments) clean(comment);
  clean(profile.program);
  // A module's path names a file, whatever its bytes are.
  for (Module& module : profile.modules) clean(module.build_id);
  for (std::string& zone : profile.zones) clean(zone);
  for (FunctionSymbol& function : symbols.functions) {
    clean(function.name);
    clean(function.system_name);
    clean(function.file);
  }
  clean(symbols.partly_named);
  for (auto& [key, unit] : number_units) clean(unit);
  clean(drop_frames);
  clean(keep_frames);
}

double LoadedProfile::Iterations() const {
  double found = 0;
  for (const std::string& comment : comments) {
    const double iterations = IterationsIn(comment);
    if (iterations > 0 && found > 0 && iterations != found) return 0;
    if (iterations > 0) found = iterations;
  }
  return found;
}

void LoadedProfile::SetIterations(double iterations) {
  std::erase_if(comments, [](const std::string& comment) { return IterationsIn(comment) > 0; });
  if (iterations > 0) comments.push_back(IterationsComment(iterations));
}

}  // namespace strobe::internal
