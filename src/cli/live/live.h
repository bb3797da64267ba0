// RunLive: a table of what runs, again each period.
#pragma once

#include "commands/command.h"
#include "record/record.h"
#include "ui/terminal.h"

namespace strobe::internal {

// Watches what `recording` names, until it ends or for as long as that says. `request` says what
// the table is of. On a terminal the table is drawn in its place and keys choose; elsewhere there
// is one after another, or a line of JSON each. Returns the status to exit with. Linux on x86-64
// only.
int RunLive(const RecordOptions& recording, const Request& request, const Terminal& terminal);

}  // namespace strobe::internal
