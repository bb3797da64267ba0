#include "strobe/platform/process_context.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <fstream>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "strobe/base/memory_guard.h"
#include "strobe/platform/machine.h"
#include "strobe/platform/native.h"

namespace strobe {
namespace {

constexpr std::string_view kSignature = "OTEL_CTX";  // and the name of the mapping
constexpr std::uint32_t kVersion = 2;
constexpr int kSetMemoryName = 0x53564d41;  // PR_SET_VMA, since Linux 5.17
constexpr unsigned long kNameOfAnonymous = 0;

std::uint64_t BootTimeNs() {
  timespec time{};
  clock_gettime(CLOCK_BOOTTIME, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

// Whether a mapping of this process has the context's name.
bool IsPublished() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    for (const std::string_view name :
         {"/memfd:OTEL_CTX", "[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]"}) {
      if (line.find(name) != std::string::npos) return true;
    }
  }
  return false;
}

bool MayHaveFile(std::size_t bytes) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= bytes;
}

absl::StatusOr<std::string> Message(const OtlpOptions& options) {
  Profile process;
  process.program = NativePlatform::ProgramName();
  process.process_id = static_cast<std::uint64_t>(getpid());
  process.machine = internal::ReadMachine(process.process_id);
  std::string message = OtlpEncoder(options).EncodeProcessContext(process);
  if (message.size() <= ProcessContext::kMaxMessageBytes) return message;
  return absl::ResourceExhaustedError(
      absl::StrCat("the attributes take ", message.size(), " bytes, more than ",
                   ProcessContext::kMaxMessageBytes, ", which is what readers accept"));
}

}  // namespace

// The memory with the header, and the message that it points to. A fork's child does not have that
// memory: what lies at its address there is not ours.
class ProcessContext::Mapping {
 public:
  static absl::StatusOr<std::unique_ptr<Mapping>> Make(std::string message) {
    const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    // The file's name is what a reader finds where the kernel cannot name memory. A file beyond the
    // process's limit would end the process by a signal.
    const int file = MayHaveFile(bytes) ? memfd_create(kSignature.data(), MFD_CLOEXEC) : -1;
    const bool has_file = file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0;
    const int kind = MAP_PRIVATE | (has_file ? 0 : MAP_ANONYMOUS);
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kind, has_file ? file : -1, 0);
    const int error = errno;
    if (file >= 0) close(file);
    if (memory == MAP_FAILED) return Refused(error);
    std::unique_ptr<Mapping> mapping(new (std::nothrow) Mapping(memory, bytes));
    if (mapping == nullptr) {
      munmap(memory, bytes);
      return Refused(ENOMEM);
    }
    if (madvise(memory, bytes, MADV_DONTFORK) != 0) return Refused(errno);
    mapping->Write(std::move(message));
    std::atomic_thread_fence(std::memory_order_seq_cst);
    std::memcpy(mapping->header_->signature, kSignature.data(), kSignature.size());
    if (!mapping->Name() && !has_file) return Refused(errno);
    return mapping;
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (IsOurs()) munmap(header_, bytes_);
  }

  [[nodiscard]] bool IsOurs() const { return getpid() == process_id_; }

  void Replace(std::string message) {
    header_->published_ns.store(0, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    Write(std::move(message));
    Name();
  }

 private:
  // As the proposal has it: 32 bytes.
  struct Header {
    char signature[8];
    std::uint32_t version;
    std::uint32_t message_bytes;
    // CLOCK_BOOTTIME. A reader that sees 0, or another time at its end than at its begin, reads
    // again.
    std::atomic<std::uint64_t> published_ns;
    const char* message;
  };
  static_assert(sizeof(Header) == 32 && std::atomic<std::uint64_t>::is_always_lock_free);

  Mapping(void* memory, std::size_t bytes)
      : header_(new (memory) Header{}), bytes_(bytes), process_id_(getpid()) {}

  static absl::Status Refused(int error) {
    return absl::UnavailableError(
        absl::StrCat("the process's context cannot be published: ", std::strerror(error)));
  }

  void Write(std::string message) {
    message_ = std::move(message);
    header_->version = kVersion;
    header_->message_bytes = static_cast<std::uint32_t>(message_.size());
    header_->message = message_.data();
    std::atomic_thread_fence(std::memory_order_seq_cst);
    header_->published_ns.store(BootTimeNs(), std::memory_order_seq_cst);
  }

  // Readers may watch for this call, so it is made also where the kernel refuses it.
  bool Name() const {
    return prctl(kSetMemoryName, kNameOfAnonymous, header_, bytes_, kSignature.data()) == 0;
  }

  Header* const header_;
  const std::size_t bytes_;
  const pid_t process_id_;
  std::string message_;
};

ProcessContext::ProcessContext(std::unique_ptr<Mapping> mapping) : mapping_(std::move(mapping)) {}
ProcessContext::ProcessContext(ProcessContext&& other) noexcept = default;
ProcessContext& ProcessContext::operator=(ProcessContext&& other) noexcept = default;
ProcessContext::~ProcessContext() = default;

absl::StatusOr<ProcessContext> ProcessContext::Publish(const OtlpOptions& options) {
  absl::StatusOr<ProcessContext> context;
  if (!internal::HasMemoryFor([&] { context = TryToPublish(options); }))
    context = internal::OutOfMemory();
  return context;
}

absl::Status ProcessContext::Update(const OtlpOptions& options) {
  absl::Status status;
  if (!internal::HasMemoryFor([&] { status = TryToUpdate(options); }))
    status = internal::OutOfMemory();
  return status;
}

absl::StatusOr<ProcessContext> ProcessContext::TryToPublish(const OtlpOptions& options) {
  absl::StatusOr<std::string> message = Message(options);
  if (!message.ok()) return message.status();
  if (IsPublished())
    return absl::AlreadyExistsError("this process has published a context already");
  absl::StatusOr<std::unique_ptr<Mapping>> mapping = Mapping::Make(*std::move(message));
  if (!mapping.ok()) return mapping.status();
  return ProcessContext(*std::move(mapping));
}

absl::Status ProcessContext::TryToUpdate(const OtlpOptions& options) {
  if (!mapping_->IsOurs())
    return absl::FailedPreconditionError("a fork's child publishes a context of its own");
  absl::StatusOr<std::string> message = Message(options);
  if (!message.ok()) return message.status();
  mapping_->Replace(*std::move(message));
  return absl::OkStatus();
}

}  // namespace strobe
