#include "traced_process.h"

#include <elf.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

namespace strobe::testing {
namespace {

struct Mapping {
  Address start = 0;
  Address end = 0;
  std::uint64_t offset = 0;
  bool is_code = false;
  std::string path;
};

std::vector<Mapping> MappingsOf(pid_t pid) {
  std::vector<Mapping> mappings;
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    Mapping mapping;
    char permissions[8] = {};
    int path_at = 0;
    unsigned long start = 0, end = 0, offset = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %7s %lx %*s %*s %n", &start, &end, permissions, &offset,
                    &path_at) < 4)
      continue;
    mapping = {.start = start,
               .end = end,
               .offset = offset,
               .is_code = permissions[2] == 'x',
               .path = line.substr(static_cast<std::size_t>(path_at))};
    mappings.push_back(std::move(mapping));
  }
  return mappings;
}

}  // namespace

TracedProcess::~TracedProcess() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

TracedProcess::Stop TracedProcess::Start(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  // The two take turns, so that a second processor only costs its wake-up.
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof(one), &one);
  std::fflush(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    personality(ADDR_NO_RANDOMIZE);  // the same addresses each time, where that is permitted
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(77);
    raise(SIGSTOP);
    execvp(arguments[0], arguments.data());
    std::perror(arguments[0]);
    _exit(127);
  }
  int status = 0;
  if (pid_ < 0 || waitpid(pid_, &status, 0) != pid_) return Stop::kNotPermitted;
  if (!WIFSTOPPED(status)) {
    pid_ = -1;
    return Stop::kNotPermitted;
  }
  if (ptrace(PTRACE_SETOPTIONS, pid_, nullptr, PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC) != 0)
    return Stop::kNotPermitted;
  ptrace(PTRACE_CONT, pid_, nullptr, nullptr);
  return Wait();
}

TracedProcess::Stop TracedProcess::Step() {
  const long signal = pending_signal_;
  pending_signal_ = 0;
  if (ptrace(PTRACE_SINGLESTEP, pid_, nullptr, signal) != 0 && errno != ESRCH)
    return Stop::kNotPermitted;
  return Wait();
}

TracedProcess::Stop TracedProcess::Wait() {
  int status = 0;
  while (waitpid(pid_, &status, __WALL) != pid_) {
    if (errno != EINTR) return Stop::kEnded;
  }
  if (!WIFSTOPPED(status)) {
    end_status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    pid_ = -1;
    return Stop::kEnded;
  }
  ReadRegisters();
  if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8)) {
    ForgetCode();
    return Stop::kNewProgram;
  }
  if (WSTOPSIG(status) == SIGTRAP) return Stop::kStepped;
  pending_signal_ = WSTOPSIG(status);
  return Stop::kSignal;
}

void TracedProcess::ReadRegisters() { ptrace(PTRACE_GETREGS, pid_, nullptr, &registers_); }

std::size_t TracedProcess::Read(Address address, std::span<std::uint8_t> bytes) const {
  iovec local{bytes.data(), bytes.size()};
  iovec remote{reinterpret_cast<void*>(address), bytes.size()};
  const ssize_t got = process_vm_readv(pid_, &local, 1, &remote, 1, 0);
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

Address TracedProcess::ReadWord(Address address) const {
  std::uint8_t bytes[sizeof(Address)] = {};
  Read(address, bytes);
  Address word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

std::uint8_t TracedProcess::CodeByte(Address address) {
  const Address number = address / kPageBytes;
  if (number != last_page_ || pages_.empty()) {
    const auto [page, is_new] = pages_.try_emplace(number);
    if (is_new) Read(number * kPageBytes, page->second);
    last_page_ = number;
    last_bytes_ = &page->second;
  }
  return (*last_bytes_)[address % kPageBytes];
}

InstructionKind TracedProcess::NextInstruction() {
  return KindOfInstruction(registers_.rip, [this](Address at) { return CodeByte(at); });
}

std::vector<Module> TracedProcess::Modules() const {
  const std::vector<Mapping> mappings = MappingsOf(pid_);
  std::map<std::string, Address>
      bases;  // of the images, by path: where the file's beginning is mapped
  std::vector<Module> modules;
  for (const Mapping& mapping : mappings) {
    // Of lld and mold, a second segment may have a part of the file's first page.
    if (mapping.offset == 0 && (mapping.path.starts_with("/") || mapping.path == "[vdso]"))
      bases.try_emplace(mapping.path, mapping.start);
    const auto base = bases.find(mapping.path);
    if (!mapping.is_code || base == bases.end()) continue;
    Elf64_Ehdr header{};
    if (Read(base->second, {reinterpret_cast<std::uint8_t*>(&header), sizeof(header)}) !=
            sizeof(header) ||
        std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
      continue;
    }
    Module module{.start = mapping.start,
                  .limit = mapping.end,
                  .file_offset = mapping.offset,
                  .path = mapping.path,
                  .build_id = ""};
    if (mapping.path == "[vdso]") module.kind = ModuleKind::kVdso;
    bool has_bias = false;
    Address eh_frame_header = 0;
    for (unsigned i = 0; i < header.e_phnum; ++i) {
      Elf64_Phdr segment{};
      Read(base->second + header.e_phoff + i * sizeof(segment),
           {reinterpret_cast<std::uint8_t*>(&segment), sizeof(segment)});
      if (segment.p_type == PT_LOAD && !has_bias) {
        module.load_bias = base->second - (segment.p_vaddr & ~Address{kPageBytes - 1});
        has_bias = true;
      }
      if (segment.p_type == PT_GNU_EH_FRAME) eh_frame_header = segment.p_vaddr;
    }
    if (eh_frame_header != 0) module.unwind_address = module.load_bias + eh_frame_header;
    modules.push_back(std::move(module));
  }
  return modules;
}

Address TracedProcess::StackEnd() const {
  for (const Mapping& mapping : MappingsOf(pid_)) {
    if (registers_.rsp >= mapping.start && registers_.rsp < mapping.end) return mapping.end;
  }
  return 0;
}

}  // namespace strobe::testing
