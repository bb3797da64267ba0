// strobe: looks at profiles, and writes them in other formats. See README.md.
#include "run_command.h"

int main(int argc, char** argv) { return strobe::internal::RunCommand(argc, argv); }
