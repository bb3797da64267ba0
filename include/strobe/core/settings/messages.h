// Messages: where the lines go that Strobe writes for people, and whether it reads the environment.
// A program decides both for the whole process, before it makes a profiler.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace strobe {

// Gets one line for people, without an end of line. Any thread, one of Strobe's own too, and
// several at once. It must not throw. No line comes out of a signal's handler.
using MessageSink = void (*)(std::string_view line);

// From now on lines go to `sink`, in place of what STROBE_MESSAGES says; after nullptr, they go
// there again. Returns the sink before. Each line is a warning: what goes well says nothing. Any
// thread.
MessageSink SetMessageSink(MessageSink sink) noexcept;

// From now on no variable of the environment that begins with STROBE_ is read, not even
// STROBE_ENABLED: for a program whose users must not choose what it does. Any thread.
void IgnoreVariables() noexcept;

namespace internal {

// The variable that says where lines go.
inline constexpr const char* kMessagesVariable = "STROBE_MESSAGES";

// Where lines go that no sink takes.
struct MessageTarget {
  enum class Kind : unsigned char {
    kStandardError,
    kNone,
    kSystemLog,
    kFile,  // each line is added to its end
  };
  Kind kind = Kind::kStandardError;
  std::string path{};  // of kFile

  friend bool operator==(const MessageTarget&, const MessageTarget&) = default;
};

// By the variable's value: "stderr", "none", "syslog", or the path of a file. Without a value, or
// with an empty one, standard error.
MessageTarget ParseMessageTarget(const std::optional<std::string>& value);

// Notes that value for CurrentMessageTarget. Called where a profiler is made, on the caller's
// thread: no thread of Strobe's own reads the environment, which the program may change meanwhile.
void KeepMessageTarget(const std::optional<std::string>& value);
// What was noted last; before, what `environment` says. Valid for ever.
const MessageTarget& CurrentMessageTarget(std::optional<std::string> (*environment)(const char*));

// The sink that the program has set; nullptr for none.
MessageSink CurrentMessageSink() noexcept;

// True if the variable must be taken for one that is not set.
bool IsIgnoredVariable(std::string_view name) noexcept;

}  // namespace internal
}  // namespace strobe
