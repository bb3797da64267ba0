// strobe pgo: a profile of a program, for the compiler or the linker that builds it anew.
#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "code_samples.h"
#include "commands/command_line.h"
#include "function_samples.h"
#include "gcc_profile.h"
#include "llvm_profile.h"
#include "pgo_report.h"
#include "strobe/platform/native.h"
#include "symbol_order.h"
#include "ui/progress.h"

namespace strobe::internal {
namespace {

// What the command writes: see `strobe pgo --help`.
struct PgoFormat {
  const char* name;
  const char* suffix;  // of its files
  const char* use;
  DiscriminatorKind discriminators;  // of the compiler that reads it, and has built the program
  std::string (*encode)(const FunctionSamplesMap& functions, const BinarySamples& samples);
};

std::string EncodeLlvm(const FunctionSamplesMap& functions, const BinarySamples& samples) {
  return LlvmProfileText(functions, samples.sample_amount);
}
std::string EncodeGcc(const FunctionSamplesMap& functions, const BinarySamples& samples) {
  return GccProfile(functions, samples.sample_amount);
}
std::string EncodeOrder(const FunctionSamplesMap& /*functions*/, const BinarySamples& samples) {
  const auto current = std::ranges::find(samples.builds, true, &BuildSamples::is_current);
  return SymbolOrderText(current == samples.builds.end() ? samples.builds[0].code : current->code);
}

// The first is that of standard output.
constexpr std::array<PgoFormat, 3> kPgoFormats{{
    {"llvm", ".prof", "clang -fprofile-sample-use=FILE", DiscriminatorKind::kClang, &EncodeLlvm},
    {"gcc", ".afdo", "gcc -fauto-profile=FILE (GCC 12 to 15)", DiscriminatorKind::kPlain,
     &EncodeGcc},
    {"order", ".order", "lld --symbol-ordering-file=FILE", DiscriminatorKind::kClang, &EncodeOrder},
}};

std::string PgoSuffixes() {
  return absl::StrJoin(kPgoFormats, ", ", [](std::string* text, const PgoFormat& format) {
    absl::StrAppend(text, format.suffix);
  });
}

absl::StatusOr<PgoFormat> PgoFormatOf(const Request& request) {
  if (request.format.empty() && (request.output.empty() || request.output == "-"))
    return kPgoFormats.front();
  for (const PgoFormat& format : kPgoFormats) {
    if (request.format.empty() ? request.output.ends_with(format.suffix)
                               : request.format == format.name)
      return format;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(request.output, ": which format? Say it by --format, or end the name in one of ",
                   PgoSuffixes()));
}

// The column of CPU time, unless --type names another. InvalidArgument if it counts memory.
absl::StatusOr<std::size_t> ColumnOf(const FilteredProfile& subject, const Request& request) {
  const std::vector<ValueType>& types = subject.profile().value_types;
  std::size_t column = subject.column;
  const auto cpu = std::ranges::find(types, "cpu", &ValueType::type);
  if (request.type.empty() && cpu != types.end())
    column = static_cast<std::size_t>(cpu - types.begin());
  if (types[column].unit != "bytes") return column;
  return absl::InvalidArgumentError(
      absl::StrCat("the profile is of ", std::string(types[column].type),
                   ", which does not say how often code is executed: record CPU time"));
}

Text Pgo(CommandLine& line, const std::string& binary) {
  const Request& request = line.request();
  const absl::StatusOr<PgoFormat> format = PgoFormatOf(request);
  if (!format.ok()) return format.status();
  const absl::StatusOr<FilteredProfile> subject = line.LoadAll(request.files);
  if (!subject.ok()) return subject.status();
  const absl::StatusOr<std::size_t> column = ColumnOf(*subject, request);
  if (!column.ok()) return column.status();
  Progress progress(line.terminal());
  progress.Print("reading symbols");
  const SymbolFiles& files = NativePlatform::Files();
  const SymbolSearch search = SearchIn(request.debug_directories);
  const absl::StatusOr<Module> module = ModuleOf(binary, files);
  if (!module.ok()) return module.status();
  const absl::StatusOr<BinarySamples> samples =
      CollectCodeSamples(subject->loaded, *column, *module, files, search);
  if (!samples.ok()) return samples.status();
  const absl::StatusOr<PgoProfile> profile =
      MakePgoProfile(*samples, *module, files, search, format->discriminators);
  if (!profile.ok()) return profile.status();
  std::string text = format->encode(profile->functions, *samples);
  for (const std::string& sentence :
       ReportOf(*profile, binary, subject->profile().value_types[*column]))
    SayError(sentence);
  return text;
}

}  // namespace

void AddPgo(CommandLine& line) {
  static std::string binary;
  CLI::App* const pgo =
      line.AddReader("pgo", "Writes what makes the compiler's next build of a program faster",
                     [&line] { return Pgo(line, binary); });
  Request& request = line.request();
  pgo->add_option("--binary", binary, "The program, or the library, that was profiled")->required();
  line.AddFiles(*pgo, 0);
  pgo->add_option("-o,--output", request.output,
                  "The file to write; its name decides the format. Default: standard output");
  std::vector<std::string> names;
  std::string footer = "Formats:";
  for (const PgoFormat& format : kPgoFormats) {
    names.emplace_back(format.name);
    absl::StrAppend(&footer, "\n  ", format.name, " (", format.suffix, "): ", format.use);
  }
  pgo->add_option("--format", request.format, "The format")->check(CLI::IsMember(names));
  line.AddDebugDirectories(*pgo);
  pgo->footer(footer +
              "\n\nBuild the program with -g1 -fdebug-info-for-profiling, by GCC with -g, and keep "
              "that.\n"
              "Samples are those of CPU time, unless --type says otherwise.");
}

}  // namespace strobe::internal
