#include "quickstart_workload.h"

#include <sqlite3.h>
#include <zlib.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace {

// Rows and bytes of one round: small enough that a round takes a fraction of a second.
constexpr std::size_t kMaxRowsPerRound = 40000;

bool Passed(Deadline deadline) { return std::chrono::steady_clock::now() >= deadline; }

[[noreturn]] void Fail(const std::string& what) {
  fprintf(stderr, "quickstart: %s\n", what.c_str());
  std::exit(1);
}

using Database = std::unique_ptr<sqlite3, int (*)(sqlite3*)>;
using Statement = std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)>;

void Execute(sqlite3* database, const char* sql) {
  char* error = nullptr;
  if (sqlite3_exec(database, sql, nullptr, nullptr, &error) != SQLITE_OK)
    Fail(absl::StrCat("SQLite: ", error, " in ", sql));
}

Statement Prepare(sqlite3* database, const char* sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database, sql, -1, &statement, nullptr) != SQLITE_OK)
    Fail(absl::StrCat("SQLite: ", sqlite3_errmsg(database)));
  return {statement, sqlite3_finalize};
}

struct Inserted {
  std::int64_t rows = 0;
  std::int64_t bytes = 0;
};

void InsertLine(sqlite3_stmt* insert, std::int64_t file, std::int64_t number,
                absl::string_view line) {
  sqlite3_bind_int64(insert, 1, file);
  sqlite3_bind_int64(insert, 2, number);
  sqlite3_bind_text(insert, 3, line.data(), static_cast<int>(line.size()), SQLITE_STATIC);
  if (sqlite3_step(insert) != SQLITE_DONE) Fail("SQLite: insert");
  sqlite3_reset(insert);
}

// Every line of the files, from file `first` on, as a row.
Inserted InsertLines(sqlite3* database, const std::vector<InputFile>& files, std::size_t first) {
  const Statement insert_file = Prepare(database, "INSERT INTO file VALUES (?, ?)");
  const Statement insert_line = Prepare(database, "INSERT INTO line VALUES (?, ?, ?)");
  Inserted inserted;
  for (std::size_t i = 0;
       i < files.size() && inserted.rows < static_cast<std::int64_t>(kMaxRowsPerRound); ++i) {
    const InputFile& file = files[(first + i) % files.size()];
    const auto id = static_cast<std::int64_t>(i);
    sqlite3_bind_int64(insert_file.get(), 1, id);
    sqlite3_bind_text(insert_file.get(), 2, file.path.data(), static_cast<int>(file.path.size()),
                      SQLITE_STATIC);
    if (sqlite3_step(insert_file.get()) != SQLITE_DONE) Fail("SQLite: insert");
    sqlite3_reset(insert_file.get());
    absl::string_view rest = file.bytes;
    for (std::int64_t number = 1; !rest.empty(); ++number, ++inserted.rows) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      InsertLine(insert_line.get(), id, number, rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    inserted.bytes += static_cast<std::int64_t>(file.bytes.size());
  }
  return inserted;
}

std::int64_t CountRows(sqlite3* database, const char* query) {
  const Statement statement = Prepare(database, query);
  std::int64_t rows = 0;
  while (sqlite3_step(statement.get()) == SQLITE_ROW) ++rows;
  return rows;
}

std::string Deflate(const std::string& bytes, int level) {
  uLongf size = compressBound(bytes.size());
  std::string deflated(size, '\0');
  if (compress2(reinterpret_cast<Bytef*>(deflated.data()), &size,
                reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), level) != Z_OK) {
    Fail("zlib: deflate");
  }
  deflated.resize(size);
  return deflated;
}

std::string Inflate(const std::string& deflated, std::size_t size) {
  std::string bytes(size, '\0');
  uLongf inflated = size;
  if (uncompress(reinterpret_cast<Bytef*>(bytes.data()), &inflated,
                 reinterpret_cast<const Bytef*>(deflated.data()), deflated.size()) != Z_OK) {
    Fail("zlib: inflate");
  }
  bytes.resize(inflated);
  return bytes;
}

bool IsWordByte(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// In the example's own code, so that the profile has a hot function with a known name and a known
// caller.
absl::string_view NextWord(absl::string_view& rest) {
  std::size_t begin = 0;
  while (begin < rest.size() && !IsWordByte(rest[begin])) ++begin;
  std::size_t end = begin;
  while (end < rest.size() && IsWordByte(rest[end])) ++end;
  const absl::string_view word = rest.substr(begin, end - begin);
  rest.remove_prefix(end);
  return word;
}

void CountWords(const InputFile& file,
                absl::flat_hash_map<absl::string_view, std::int64_t>& counts) {
  absl::string_view rest = file.bytes;
  for (absl::string_view word = NextWord(rest); !word.empty(); word = NextWord(rest))
    ++counts[word];
}

}  // namespace

void RoundQueue::Post(Round round) {
  {
    const std::lock_guard lock(mutex_);
    rounds_.push_back(std::move(round));
  }
  posted_.notify_one();
}

std::optional<Round> RoundQueue::WaitUntil(Deadline until) {
  std::unique_lock lock(mutex_);
  if (!posted_.wait_until(lock, until, [this] { return !rounds_.empty(); })) return std::nullopt;
  Round round = std::move(rounds_.front());
  rounds_.pop_front();
  return round;
}

std::string RunDatabase(const std::vector<InputFile>& files, Deadline deadline,
                        RoundQueue& rounds) {
  Inserted total;
  std::int64_t results = 0;
  for (std::size_t first = 0; !Passed(deadline); first += files.size() / 7 + 1) {
    sqlite3* opened = nullptr;
    if (sqlite3_open(":memory:", &opened) != SQLITE_OK) Fail("SQLite: open");
    const Database database(opened, sqlite3_close);
    Execute(opened,
            "CREATE TABLE file (id INTEGER PRIMARY KEY, path TEXT); CREATE TABLE line (file "
            "INTEGER, number INTEGER, text TEXT)");
    Execute(opened, "BEGIN");
    const Inserted inserted = InsertLines(opened, files, first);
    Execute(opened, "COMMIT");
    Execute(opened, "CREATE INDEX line_by_text ON line (text)");
    results += CountRows(opened,
                         "SELECT path, count(*), avg(length(text)) AS mean FROM line JOIN file ON "
                         "file = id GROUP BY path ORDER BY mean");
    results += CountRows(opened,
                         "SELECT text, count(DISTINCT path) AS files FROM line JOIN file ON file = "
                         "id WHERE length(text) > 20 GROUP BY text HAVING files > 1 ORDER BY files "
                         "DESC LIMIT 1000");
    total.rows += inserted.rows;
    total.bytes += inserted.bytes;
    rounds.Post({"database", inserted.bytes});
  }
  return absl::StrCat("inserted ", total.rows, " lines of files into SQLite, queries returned ",
                      results, " rows");
}

std::string RunCompression(const std::vector<InputFile>& files, Deadline deadline,
                           RoundQueue& rounds) {
  std::int64_t in = 0;
  std::int64_t out = 0;
  constexpr int kLevels[] = {1, 6, 9};
  for (std::size_t i = 0; !Passed(deadline); ++i) {
    const InputFile& file = files[i % files.size()];
    const std::string deflated =
        Deflate(file.bytes, kLevels[i / files.size() % std::size(kLevels)]);
    if (Inflate(deflated, file.bytes.size()) != file.bytes)
      Fail("zlib: " + file.path + " came back different");
    in += static_cast<std::int64_t>(file.bytes.size());
    out += static_cast<std::int64_t>(deflated.size());
    rounds.Post({"compression", static_cast<std::int64_t>(file.bytes.size())});
  }
  return absl::StrCat("deflated ", in >> 20, " MiB to ", out >> 20, " MiB and inflated them again");
}

std::string RunWordCount(const std::vector<InputFile>& files, Deadline deadline,
                         RoundQueue& rounds) {
  std::int64_t words = 0;
  std::int64_t distinct = 0;
  while (!Passed(deadline)) {
    absl::flat_hash_map<absl::string_view, std::int64_t> counts;
    std::int64_t bytes = 0;
    for (const InputFile& file : files) {
      CountWords(file, counts);
      bytes += static_cast<std::int64_t>(file.bytes.size());
      if (Passed(deadline)) break;
    }
    distinct = std::max(distinct, static_cast<std::int64_t>(counts.size()));
    for (const auto& [word, count] : counts) words += count;
    rounds.Post({"words", bytes});
  }
  return absl::StrCat("counted ", words, " words, ", distinct, " distinct");
}

std::string RunBookkeeping(Deadline deadline, RoundQueue& rounds) {
  std::map<std::string, std::int64_t> count_by_worker;
  while (!Passed(deadline)) {
    if (const std::optional<Round> round = rounds.WaitUntil(deadline))
      ++count_by_worker[round->worker];
  }
  std::string result = "waited for rounds:";
  for (const auto& [worker, count] : count_by_worker)
    absl::StrAppend(&result, " ", count, " of ", worker);
  return result;
}
