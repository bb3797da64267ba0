// Completion scripts for shells, made of the command's own description.
#include "command_line.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace strobe::internal {
namespace {

std::string WithoutQuotes(std::string text) {
  std::erase_if(text, [](char c) { return c == '\'' || c == '[' || c == ']' || c == ':'; });
  return text.substr(0, text.find('\n'));
}

std::vector<std::string> NamesOfOptions(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::string Bash(const CLI::App& app, const std::vector<std::string>& names) {
  std::string script = "_strobe() {\n  local word=${COMP_WORDS[COMP_CWORD]} options=\n";
  absl::StrAppend(&script, "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    COMPREPLY=($(compgen -W '",
                  absl::StrJoin(names, " "), "' -- \"$word\"))\n    return\n  fi\n",
                  "  case ${COMP_WORDS[1]} in\n");
  for (const std::string& name : names) {
    absl::StrAppend(&script, "    ", name, ") options='",
                    absl::StrJoin(NamesOfOptions(*app.get_subcommand(name)), " "), "' ;;\n");
  }
  return script +
         "  esac\n"
         "  case $word in\n"
         "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
         "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
         "  esac\n"
         "}\n"
         "complete -o filenames -F _strobe strobe\n";
}

std::string Zsh(const CLI::App& app, const std::vector<std::string>& names) {
  std::string script = "#compdef strobe\n_strobe() {\n  local -a commands=(\n";
  for (const std::string& name : names) {
    absl::StrAppend(&script, "    '", name, ":",
                    WithoutQuotes(app.get_subcommand(name)->get_description()), "'\n");
  }
  absl::StrAppend(&script, "  )\n  if (( CURRENT == 2 )); then\n",
                  "    _describe command commands\n    return\n  fi\n  case $words[2] in\n");
  for (const std::string& name : names) {
    absl::StrAppend(&script, "    ", name, ") _arguments");
    for (const CLI::Option* option : app.get_subcommand(name)->get_options()) {
      for (const std::string& one : option->get_lnames()) {
        absl::StrAppend(&script, " '--", one, "[", WithoutQuotes(option->get_description()), "]",
                        option->get_items_expected_max() == 0 ? "" : ":value:_files", "'");
      }
    }
    absl::StrAppend(&script, " '*:file:_files' ;;\n");
  }
  return script + "  esac\n}\ncompdef _strobe strobe\n";
}

std::string Fish(const CLI::App& app, const std::vector<std::string>& names) {
  std::string script;
  for (const std::string& name : names) {
    const CLI::App* const command = app.get_subcommand(name);
    absl::StrAppend(&script, "complete -c strobe -n __fish_use_subcommand -f -a ", name, " -d '",
                    WithoutQuotes(command->get_description()), "'\n");
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& one : option->get_lnames()) {
        absl::StrAppend(&script, "complete -c strobe -n '__fish_seen_subcommand_from ", name,
                        "' -l ", one, option->get_items_expected_max() == 0 ? "" : " -r", " -d '",
                        WithoutQuotes(option->get_description()), "'\n");
      }
    }
  }
  return script;
}

Text CompletionScript(const std::string& shell, const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  if (shell == "bash") return Bash(app, names);
  if (shell == "zsh") return Zsh(app, names);
  if (shell == "fish") return Fish(app, names);
  return absl::InvalidArgumentError(absl::StrCat("no completion for the shell ", shell));
}

}  // namespace

void AddCompletion(CommandLine& line) {
  CLI::App* const completion =
      line.AddText("completion", "Prints a script that lets a shell complete the arguments",
                   [&line] { return CompletionScript(line.request().shell, line.app()); });
  completion->add_option("SHELL", line.request().shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->footer(
      "  source <(strobe completion bash)          in ~/.bashrc\n"
      "  source <(strobe completion zsh)           in ~/.zshrc, after compinit\n"
      "  strobe completion fish | source           in config.fish");
}

}  // namespace strobe::internal
