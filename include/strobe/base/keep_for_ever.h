// KeepForEver: objects that are never deleted on purpose are no leaks.
#pragma once

namespace strobe::internal {

// Tells a leak checker, if there is one, that the object and all that it points to are never
// deleted. Any thread may call it.
void KeepForEver(const void* object);

}  // namespace strobe::internal
