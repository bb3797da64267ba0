// ServerProfile: a profile as a busy server would have it, with threads, labels, source lines,
// inlined functions and moments. Equal arguments give equal profiles on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "strobe/testing/profiles.h"

namespace strobe::testing {

struct ServerOptions {
  std::uint64_t seed = 1;
  std::size_t captures = 20'000;
  std::uint64_t parse_weight = 20;  // of json::Parser::Parse among what a handler calls
  bool has_moments = true;
  Address load_bias = 0x555500000000;  // a second run has its code elsewhere
};

// The functions of the server, and how often each calls which.
class Server {
 public:
  struct Call {
    std::size_t function;
    std::uint64_t weight;
  };
  struct Code {
    const char* name;
    const char* file;  // in /src/server; empty in libraries without lines
    std::size_t module;
    bool is_inlined;
    std::vector<Call> calls;
    std::uint64_t self_weight;
  };
  enum Name : std::size_t {
    kMain,
    kRun,
    kHandle,
    kRoute,
    kParse,
    kParseValue,
    kSkipSpace,
    kRender,
    kAppend,
    kQuery,
    kExecute,
    kScan,
    kCompare,
    kHash,
    kCompress,
    kDeflate,
    kEncrypt,
    kSeal,
    kWrite,
    kMemcpy,
    kMalloc,
    kFree,
    kPoll,
    kNameCount
  };

  explicit Server(std::uint64_t parse_weight)
      : codes_{
            {"main", "main.cc", 0, false, {{kRun, 1}}, 0},
            {"server::EventLoop::Run(std::stop_token)",
             "event_loop.cc",
             0,
             false,
             {{kHandle, 90}, {kPoll, 10}},
             1},
            {"server::Connection::Handle(server::Request const&, server::Response&)",
             "connection.cc",
             0,
             false,
             {{kRoute, 60}, {kParse, parse_weight}, {kCompress, 25}, {kEncrypt, 15}, {kWrite, 8}},
             3},
            {"server::Router<server::Method, std::string_view>::Dispatch(server::Request const&)",
             "router.h",
             0,
             true,
             {{kQuery, 50}, {kRender, 40}, {kHash, 6}},
             3},
            {"json::Parser::Parse(std::string_view)",
             "json_parser.cc",
             0,
             false,
             {{kParseValue, 10}},
             1},
            {"json::Parser::ParseValue<(json::Kind)3>(char const*&)",
             "json_parser.cc",
             0,
             false,
             {{kParseValue, 6}, {kSkipSpace, 5}, {kMalloc, 3}, {kMemcpy, 1}},
             6},
            {"json::(anonymous namespace)::SkipSpace(char const*)",
             "json_parser.cc",
             0,
             true,
             {},
             1},
            {"html::Template::Render(html::Values const&) const",
             "template.cc",
             0,
             false,
             {{kAppend, 8}, {kMalloc, 2}, {kFree, 1}},
             4},
            {"std::basic_string<char>::append(char const*, unsigned long)",
             "string.h",
             0,
             true,
             {{kMemcpy, 3}},
             2},
            {"store::Index::Query(store::Key const&)",
             "index.cc",
             0,
             false,
             {{kExecute, 8}, {kHash, 2}},
             1},
            {"store::Plan::Execute(store::Cursor*)::{lambda(store::Row const&)#1}::operator()"
             "(store::Row const&) const",
             "plan.cc",
             0,
             false,
             {{kScan, 10}},
             2},
            {"store::Cursor::Scan(unsigned int)",
             "cursor.cc",
             0,
             false,
             {{kCompare, 7}, {kMemcpy, 2}},
             4},
            {"bool store::operator< <store::Key>(store::Key const&, store::Key const&)",
             "key.h",
             0,
             true,
             {},
             1},
            {"absl::hash_internal::MixingHashState::combine<int>(unsigned long)",
             "hash.h",
             0,
             true,
             {},
             1},
            {"compress2", "", 1, false, {{kDeflate, 9}}, 1},
            {"deflate", "", 1, false, {{kMemcpy, 2}}, 8},
            {"SSL_write", "", 2, false, {{kSeal, 9}, {kWrite, 3}}, 1},
            {"aes_gcm_seal", "", 2, false, {}, 1},
            {"__libc_write", "", 3, false, {}, 1},
            {"__memcpy_avx_unaligned_erms", "", 3, false, {}, 1},
            {"malloc", "", 3, false, {}, 1},
            {"cfree", "", 3, false, {}, 1},
            {"epoll_wait", "", 3, false, {}, 1},
        } {}

  [[nodiscard]] const std::vector<Code>& codes() const { return codes_; }

 private:
  std::vector<Code> codes_;
};

class ServerRun {
 public:
  explicit ServerRun(const ServerOptions& options)
      : options_(options), server_(options.parse_weight), state_(options.seed) {
    Profile& profile = sample_.profile;
    profile = ProfileHead();
    profile.program = "server";
    profile.duration_ns = 30'000'000'000;
    static constexpr const char* kPaths[] = {"/opt/server/bin/server", "/usr/lib/libz.so.1",
                                             "/usr/lib/libssl.so.3", "/usr/lib/libc.so.6"};
    for (std::size_t i = 0; i < 4; ++i) {
      const Address start = options.load_bias + i * 0x1000000;
      profile.modules.push_back(
          {start, start + 0x1000000, 0, start, kPaths[i], absl::StrCat("ab", i, i, "cd")});
    }
    AddCode();
    AddLabels();
  }

  SampleProfile Take() {
    for (std::size_t i = 0; i < options_.captures; ++i) Capture(i);
    for (ProfileThread& thread : sample_.profile.threads)
      sample_.profile.stats.samples += thread.samples;
    return std::move(sample_);
  }

 private:
  static constexpr std::int64_t kSecondNs = 1'000'000'000;
  static constexpr std::size_t kThreads = 6, kLinesPerFunction = 3, kEndpoints = 3;

  std::uint64_t Random(std::uint64_t bound) {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return (state_ >> 33) % bound;
  }

  // Frame kLinesPerFunction * f + l is the l-th line of function f, which contains the inlined
  // functions that it calls as frames of their own: see Node.
  void AddCode() {
    for (const Server::Code& code : server_.codes()) {
      const bool has_lines = *code.file != '\0';
      sample_.symbols.functions.push_back(
          {.name = code.name,
           .system_name = code.name,
           .file = has_lines ? absl::StrCat("/src/server/", code.file) : "",
           .line = has_lines ? 100U : 0U});
    }
  }

  void AddLabels() {
    Profile& profile = sample_.profile;
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      const std::string name = thread == 0 ? "acceptor" : "worker";
      // The last worker lives from second 10 to second 20.
      const bool is_last = thread == kThreads - 1;
      profile.threads.push_back({.id = 9000 + thread,
                                 .name = name,
                                 .begin_ns = profile.time_ns + (is_last ? 10 : -1) * kSecondNs,
                                 .end_ns = is_last ? profile.time_ns + 20 * kSecondNs : 0,
                                 .cpu_ns = static_cast<std::int64_t>(thread) * kSecondNs / 2});
      for (std::size_t endpoint = 0; endpoint < kEndpoints; ++endpoint) {
        static constexpr const char* kNames[] = {"/api/items", "/api/search", "/index.html"};
        profile.label_sets.push_back(
            ThreadLabels(9000 + thread, name)
                .Joined(LabelSet(std::vector<Label>{{"endpoint", kNames[endpoint]}})));
      }
    }
  }

  // The frame of `path`: a function with the functions inlined into it, each at a line.
  std::uint32_t Frame(const std::vector<std::pair<std::size_t, std::uint32_t>>& path) {
    const auto [entry, is_new] =
        frames_.try_emplace(path, static_cast<std::uint32_t>(sample_.profile.frames.size()));
    if (!is_new) return entry->second;
    const std::size_t module = server_.codes()[path.front().first].module;
    sample_.profile.frames.push_back(
        {sample_.profile.modules[module].start + 0x1000 + 16 * entry->second,
         static_cast<std::uint32_t>(module)});
    FrameSymbols symbols{
        .function = static_cast<std::uint32_t>(path.front().first),
        .line = path.front().second,
        .inlined_begin = static_cast<std::uint32_t>(sample_.symbols.inlined.size()),
        .inlined_count = static_cast<std::uint32_t>(path.size() - 1)};
    for (std::size_t i = path.size(); i-- > 1;) {
      sample_.symbols.inlined.push_back(
          {.function = static_cast<std::uint32_t>(path[i].first), .line = path[i].second});
    }
    sample_.symbols.frames.push_back(symbols);
    return entry->second;
  }

  // A stack, from the root to the leaf.
  std::uint32_t Stack(bool is_slow) {
    std::uint32_t node = 0;
    std::vector<std::pair<std::size_t, std::uint32_t>> path;
    std::size_t function = Server::kMain;
    while (true) {
      const Server::Code& code = server_.codes()[function];
      if (!code.is_inlined && !path.empty()) node = Child(node, Frame(std::exchange(path, {})));
      const std::uint32_t line =
          *code.file == '\0' ? 0 : 101 + static_cast<std::uint32_t>(Random(kLinesPerFunction));
      path.emplace_back(function, line);
      std::uint64_t sum = code.self_weight;
      for (const Server::Call& call : code.calls) sum += Weight(call, is_slow);
      std::uint64_t choice = Random(sum);
      if (choice < code.self_weight) return Child(node, Frame(path));
      choice -= code.self_weight;
      for (const Server::Call& call : code.calls) {
        if (choice < Weight(call, is_slow)) {
          function = call.function;
          break;
        }
        choice -= Weight(call, is_slow);
      }
    }
  }
  // In the slow part of the time, the store scans more.
  static std::uint64_t Weight(const Server::Call& call, bool is_slow) {
    return is_slow && call.function == Server::kQuery ? 20 * call.weight : call.weight;
  }

  std::uint32_t Child(std::uint32_t parent, std::uint32_t frame) {
    Profile& profile = sample_.profile;
    const auto [entry, is_new] = children_.try_emplace(
        std::pair(parent, frame), static_cast<std::uint32_t>(profile.stacks.size()));
    if (is_new) profile.stacks.push_back({parent, frame});
    return entry->second;
  }

  // The server is twice as busy from 18 s to 21 s, and idle from 9 s to 10 s.
  [[nodiscard]] std::int64_t TimeOf(std::size_t index) const {
    const double busy_s =
        32.0 * static_cast<double>(index) / static_cast<double>(options_.captures);
    double time_s = busy_s;
    if (busy_s >= 9) time_s = busy_s + 1;
    if (time_s >= 18) time_s = 18 + (time_s - 18) / 2;
    if (time_s >= 21) time_s = busy_s - 2;
    return static_cast<std::int64_t>(time_s * 1e9);
  }

  void Capture(std::size_t index) {
    Profile& profile = sample_.profile;
    const std::int64_t time = TimeOf(index);
    const bool is_slow = time >= 18'000'000'000 && time < 21'000'000'000;
    const std::size_t thread = Random(10) == 0 ? 0 : 1 + Random(kThreads - 1);
    const auto labels = static_cast<std::uint32_t>(thread * kEndpoints + Random(kEndpoints));
    const std::uint32_t stack = Stack(is_slow);
    const auto [entry, is_new] = rows_.try_emplace(
        std::pair(stack, labels), static_cast<std::uint32_t>(profile.samples.size()));
    if (is_new) {
      profile.samples.push_back({stack, labels});
      profile.values.insert(profile.values.end(), {0, 0});
    }
    // A clock is never as even as a period.
    const std::int64_t amount = 9'900'000 + static_cast<std::int64_t>(Random(200'000));
    profile.values[2 * entry->second] += 1;
    profile.values[2 * entry->second + 1] += amount;
    ++profile.threads[thread].samples;
    if (!options_.has_moments) return;
    profile.moments.push_back({entry->second, profile.time_ns + time});
    profile.moment_values.insert(profile.moment_values.end(), {1, amount});
  }

  ServerOptions options_;
  Server server_;
  std::uint64_t state_;
  SampleProfile sample_{"server", {}, {}};
  std::map<std::vector<std::pair<std::size_t, std::uint32_t>>, std::uint32_t> frames_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> children_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> rows_;
};

inline SampleProfile ServerProfile(const ServerOptions& options) {
  return ServerRun(options).Take();
}

}  // namespace strobe::testing
