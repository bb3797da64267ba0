// A program in C that profiles itself. Leaves two profiles in strobe-profiles, or in the directory
// `c-profiles` with the argument --options. Prints a line for each expectation that does not hold.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strobe/c.h>
#include <time.h>

static int failures = 0;

// `code` is what a call has returned, and the last status of this thread must contain `words`.
static void Expect(int code, int expected, const char* words, int line) {
  char text[STROBE_STATUS_BYTES];
  const int last = strobe_last_status(text, sizeof text);
  if (code == expected && last == code && strstr(text, words) != NULL) return;
  printf("line %d: code %d, not %d; last status %d: \"%s\" (expected: \"%s\")\n", line, code,
         expected, last, text, words);
  ++failures;
}
#define EXPECT(call, code, words) Expect(call, code, words, __LINE__)

static volatile unsigned long sink = 0;

static void Spin(double seconds) {
  const clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
  while (clock() < end) {
    for (int i = 0; i < 10000; ++i) sink = sink * 31 + (unsigned long)i;
  }
}

// Named, and neither inlined nor merged, so that the profile tells them apart.
__attribute__((noinline)) void work_in_main(void) {
  Spin(0.4);
  sink = sink + 1;
}
__attribute__((noinline)) void work_in_worker(void) {
  Spin(0.4);
  sink = sink + 2;
}
__attribute__((noinline)) void work_without_labels(void) {
  Spin(0.2);
  sink = sink + 3;
}

static void* RunWorker(void* unused) {
  (void)unused;
  EXPECT(strobe_last_status(NULL, 0), STROBE_OK, "");  // a thread's own
  EXPECT(strobe_register_thread("c worker"), STROBE_OK, "");
  EXPECT(strobe_push_text_label("endpoint", "/refund"), STROBE_OK, "");
  work_in_worker();
  EXPECT(strobe_unregister_thread(), STROBE_OK, "");
  return NULL;
}

static void CallInTheWrongOrder(void) {
  EXPECT(strobe_stop(), STROBE_FAILED_PRECONDITION, "no session runs");
  EXPECT(strobe_flush(), STROBE_FAILED_PRECONDITION, "no session runs");
  EXPECT(strobe_unregister_thread(), STROBE_FAILED_PRECONDITION, "not registered");
  EXPECT(strobe_pop_label(), STROBE_FAILED_PRECONDITION, "pushed no label");
  EXPECT(strobe_start("nonsense"), STROBE_INVALID_ARGUMENT, "\"nonsense\" is not an option");
  EXPECT(strobe_start("sampling.cpu_frequency_hz=fast"), STROBE_INVALID_ARGUMENT,
         "a number from 0 to 10000");
}

int main(int argc, char** argv) {
  const int has_options = argc == 2 && strcmp(argv[1], "--options") == 0;
  CallInTheWrongOrder();
  EXPECT(strobe_start(has_options ? "exporter.directory=c-profiles\n"
                                    "sampling.cpu_frequency_hz=500\n"
                                    "sampling.max_overhead=1\n"
                                  : NULL),
         STROBE_OK, "");
  EXPECT(strobe_start(NULL), STROBE_FAILED_PRECONDITION, "already running");
  EXPECT(strobe_start("sampling.cpu_frequency_hz=10"), STROBE_FAILED_PRECONDITION, "pass NULL");
  EXPECT(strobe_register_thread("c main"), STROBE_OK, "");
  EXPECT(strobe_register_thread("c main"), STROBE_ALREADY_EXISTS, "registered");

  EXPECT(strobe_push_text_label("endpoint", "/pay"), STROBE_OK, "");
  EXPECT(strobe_push_number_label("shard", 7), STROBE_OK, "");
  work_in_main();
  EXPECT(strobe_pop_label(), STROBE_OK, "");
  EXPECT(strobe_pop_label(), STROBE_OK, "");
  work_without_labels();
  EXPECT(strobe_flush(), STROBE_OK, "");

  pthread_t worker;
  if (pthread_create(&worker, NULL, RunWorker, NULL) != 0) return 2;
  pthread_join(worker, NULL);
  EXPECT(strobe_stop(), STROBE_OK, "");
  EXPECT(strobe_stop(), STROBE_FAILED_PRECONDITION, "not running");
  EXPECT(strobe_unregister_thread(), STROBE_OK, "");
  return failures == 0 ? 0 : 1;
}
