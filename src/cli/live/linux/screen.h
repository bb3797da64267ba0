// Screen: a terminal whose lines are drawn again and again, and whose keys come at once.
#pragma once

#include <termios.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "live/live_view.h"
#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

class Screen {
 public:
  // True if the descriptor is a terminal whose cursor can be moved, as TERM says.
  static bool CanDrawOn(int output);

  // Keys come from `input`; from nowhere if that is no terminal.
  Screen(int input, int output);
  // Leaves it.
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Takes the terminal: its other screen, without a cursor, and with keys that are not echoed. It
  // is done again after a stop.
  void Enter();
  // Gives it back as it was.
  void Leave();

  [[nodiscard]] LiveView::Size size() const;
  // False if the terminal is gone.
  bool Draw(const std::vector<std::string>& lines) const;

  // What a poll is given: readable when keys have come; -1 if there are none.
  [[nodiscard]] int keys_descriptor() const { return has_keys_ ? input_ : -1; }
  // The bytes of the keys that have come; none if the terminal is gone.
  [[nodiscard]] std::optional<std::string> ReadKeys() const;

 private:
  [[nodiscard]] bool Write(std::string_view bytes) const;

  const int input_;
  const int output_;
  bool has_keys_;
  bool is_entered_ = false;
  termios before_{};
};

}  // namespace internal
}  // namespace strobe
