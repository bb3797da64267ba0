// A program that allocates much: SQLite, in memory, inserts and selects by statements that it
// parses each time: bench_allocations_sqlite [off|on|space|threaded]. Prints nanoseconds of CPU
// time, of all threads while it works, and how many rows it has read.
#include <sqlite3.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

#include "sampling.h"

namespace {

constexpr int kRounds = 8;
constexpr int kRows = 10'000;

std::int64_t CpuNs() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

std::int64_t rows_read = 0;
void Execute(sqlite3* database, const std::string& statement) {
  const auto count = [](void* /*context*/, int /*columns*/, char** /*values*/, char** /*names*/) {
    ++rows_read;
    return 0;
  };
  if (sqlite3_exec(database, statement.c_str(), count, nullptr, nullptr) != SQLITE_OK) std::abort();
}

void RunRound(int round) {
  sqlite3* database = nullptr;
  if (sqlite3_open(":memory:", &database) != SQLITE_OK) std::abort();
  Execute(database, "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, about TEXT)");
  Execute(database, "CREATE INDEX names ON users (name)");
  for (int i = 0; i < kRows; ++i) {
    const std::string name = "name " + std::to_string((i * 7919 + round) % kRows);
    Execute(database, "INSERT INTO users (name, about) VALUES ('" + name + "', '" +
                          std::string(static_cast<std::size_t>(i % 300), 'a') + "')");
  }
  for (int i = 0; i < kRows; ++i) {
    const std::string name = "name " + std::to_string(i);
    Execute(database, "SELECT id, upper(about) FROM users WHERE name = '" + name + "'");
  }
  Execute(database, "SELECT substr(name, 1, 6) AS head, count(*) FROM users GROUP BY head");
  Execute(database, "SELECT id, name || about FROM users ORDER BY about, name DESC");
  sqlite3_close(database);
}

}  // namespace

// `threaded`: without sampling, and with a second thread, which sleeps. A process with one thread
// has cheaper locks in its C library, and any profiler with a thread ends that.
int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "off";
  Begin(mode == "threaded" ? "off" : mode);
  if (mode == "threaded") std::thread([] { pause(); }).detach();
  // Long enough for Strobe to have built the unwind tables.
  for (int round = 0; round < kRounds; ++round) RunRound(round);
  const std::int64_t begin_ns = CpuNs();
  for (int round = 0; round < kRounds; ++round) RunRound(round);
  std::printf("%lld %lld\n", static_cast<long long>(CpuNs() - begin_ns),
              static_cast<long long>(rows_read));
}
