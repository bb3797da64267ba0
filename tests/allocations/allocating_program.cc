// A program that knows nothing of Strobe, and uses every function that allocates;
// with an argument, all but pvalloc.
#include "every_allocation.h"

int main(int argc, char** /*argv*/) { strobe::testing::UseEveryFunction(argc == 1); }
