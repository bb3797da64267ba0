// Whether a session of this benchmark can have a worker process.
#pragma once

namespace strobe::testing {

// If this process was begun as a worker, serves the benchmark, and exits. Else true if there are
// workers.
bool ServeIfAsked(int argc, char** argv);

}  // namespace strobe::testing
