// Which hosts no proxy is used for, by the variable that most programs share.
#pragma once

#include <string_view>

namespace strobe::internal {

// Whether a list such as "localhost,.example.com 10.0.0.0/8,[::1]" has the host. Commas and spaces
// separate its entries; "*" stands for all hosts. A name stands for itself and for what is
// below it, in upper and lower case, with a dot before or behind it or without. An address stands
// for itself, or with "/BITS" for its network.
bool IsWithoutProxy(std::string_view list, std::string_view host);

}  // namespace strobe::internal
