// What a program in C can rely on only on Linux. The end of a thread ends its registration. A
// session in a program and one in its child after a fork have profiles with their own process ids
// in the names.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <strobe/c.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures = 0;

static void Expect(int code, int expected, int line) {
  char text[STROBE_STATUS_BYTES];
  if (code == expected) return;
  strobe_last_status(text, sizeof text);
  fprintf(stderr, "line %d, process %ld: code %d, not %d: \"%s\"\n", line, (long)getpid(), code,
          expected, text);
  ++failures;
}
#define EXPECT(call, code) Expect(call, code, __LINE__)

static void* RegisterAndEnd(void* unused) {
  (void)unused;
  EXPECT(strobe_register_thread("forgetful"), STROBE_OK);
  return NULL;
}

// More threads than can be registered at a time, one after the other.
static void RunForgetfulThreads(void) {
  for (int i = 0; i < 10; ++i) {
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, RegisterAndEnd, NULL), 0);
    pthread_join(thread, NULL);
  }
}

static void RunChild(void) {
  EXPECT(strobe_stop(), STROBE_FAILED_PRECONDITION);  // the session is the parent's
  EXPECT(strobe_start("exporter.directory=elsewhere"), STROBE_FAILED_PRECONDITION);
  EXPECT(strobe_start(NULL), STROBE_OK);  // with the parent's options
  EXPECT(strobe_register_thread("child"), STROBE_OK);
  EXPECT(strobe_register_thread("child"), STROBE_ALREADY_EXISTS);
  EXPECT(strobe_pop_label(), STROBE_OK);  // a child begins with the labels of the thread that forks
  EXPECT(strobe_unregister_thread(), STROBE_OK);
  EXPECT(strobe_stop(), STROBE_OK);
  _exit(failures == 0 ? 0 : 1);
}

// Removes the only profile of a process, or says that it is not there.
static void ExpectProfile(const char* directory, long process) {
  char path[200];
  snprintf(path, sizeof path, "%s/c_linux.%ld.0.pb.gz", directory, process);
  EXPECT(unlink(path), 0);
}

int main(void) {
  char directory[] = "/tmp/strobe_c_linux_XXXXXX";
  if (mkdtemp(directory) == NULL) return 2;
  char options[100];
  snprintf(options, sizeof options, "exporter.directory=%s\nthreads.max_threads=4", directory);
  EXPECT(strobe_start(options), STROBE_OK);
  EXPECT(strobe_register_thread("parent"), STROBE_OK);
  RunForgetfulThreads();
  EXPECT(strobe_push_text_label("role", "server"), STROBE_OK);
  const pid_t child = fork();
  if (child < 0) return 2;
  if (child == 0) RunChild();
  int status = 0;
  if (waitpid(child, &status, 0) != child) return 2;
  EXPECT(status, 0);
  EXPECT(strobe_pop_label(), STROBE_OK);
  EXPECT(strobe_stop(), STROBE_OK);
  EXPECT(strobe_unregister_thread(), STROBE_OK);
  ExpectProfile(directory, (long)getpid());
  ExpectProfile(directory, (long)child);
  EXPECT(rmdir(directory), 0);
  return failures == 0 ? 0 : 1;
}
