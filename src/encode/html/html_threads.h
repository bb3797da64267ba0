// WriteThreads, WriteLives: what a page says of the threads of a profile.
#pragma once

#include "html_columns.h"
#include "html_tree.h"
#include "strobe/core/profile.h"

namespace strobe::internal {

// Each writes its part of PageData: see html_data.h.

// The threads by their ids. Several lives of an id are one thread.
void WriteThreads(const Profile& profile, PageTexts& texts, ColumnWriter& columns);
// The lives of threads, those with the most CPU time first.
void WriteLives(const Profile& profile, PageTexts& texts, ColumnWriter& columns);

}  // namespace strobe::internal
