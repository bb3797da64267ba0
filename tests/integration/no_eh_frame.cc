// Compiled without frame information that is loaded, and without frame pointers, for
// odd_stacks_test: only .debug_frame in the file speaks of it.
extern "C" {

// No two of these have frames of one size.
[[gnu::noinline]] int CallWithoutEhFrame(int depth, int (*work)()) {
  volatile int room[40] = {};
  room[1] = depth == 0 ? work() : CallWithoutEhFrame(depth - 1, work);
  return room[1] + 1;
}
[[gnu::noinline]] int StartWithoutEhFrame(int (*work)()) {
  volatile int room[100] = {};
  room[1] = CallWithoutEhFrame(3, work);
  return room[1] + 1;
}

}  // extern "C"
