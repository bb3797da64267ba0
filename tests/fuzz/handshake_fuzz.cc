// The handshake from both ends: what a worker is told, with memory that may be anything, and what a
// program is answered. Each is refused or read, and leaves no descriptor and no mapping behind.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "fuzz_input.h"
#include "strobe/default_traits.h"
#include "strobe/worker/serve/serve_program.h"
#include "support/check.h"
#include "worker/next_descriptor.h"
#include "worker/send_descriptors.h"

namespace strobe::internal {
namespace {

using testing::FuzzInput;
using testing::NextDescriptor;
using Arena = ChannelArena<WorkerTraitsOf<DefaultTraits>>;

constexpr std::uint8_t kMaxPatches = 8;

// Overwrites some of the bytes.
void Patch(FuzzInput& input, std::string& bytes) {
  for (int left = input.Take<std::uint8_t>() % kMaxPatches; left > 0 && !bytes.empty(); --left) {
    const std::size_t at = input.Take<std::uint8_t>() % bytes.size();
    const auto value =
        input.TakeBytes(std::min<std::size_t>(input.Take<std::uint8_t>() % 9, bytes.size() - at));
    if (!value.empty()) std::memcpy(bytes.data() + at, value.data(), value.size());
  }
}

std::size_t RingBytes() { return static_cast<std::size_t>(*ProfilerOptions().threads.ring_bytes); }

// The header of a good area, with patches, in a file that may be too short or not sealed.
int AreaFile(FuzzInput& input) {
  static const SharedArea area =
      *SharedArea::Create(1, Arena::kChannelsPerChunk, Arena::ChunkBytes(RingBytes()));
  std::string header(reinterpret_cast<const char*>(&area.header()), sizeof(SharedAreaHeader));
  Patch(input, header);
  const auto how = input.Take<std::uint8_t>();
  const std::size_t good_bytes = static_cast<std::size_t>(lseek(area.descriptor(), 0, SEEK_END));
  const int file = memfd_create("fuzzed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  const std::size_t bytes = how % 4 == 0 ? input.Take<std::uint32_t>() : good_bytes;
  testing::Check(ftruncate(file, static_cast<off_t>(bytes)) == 0, "no memory");
  testing::Check(pwrite(file, header.data(), std::min(bytes, header.size()), 0) >= 0, "no memory");
  if (how % 8 != 1) fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK);
  return file;
}

// Bytes as a good program sends them, with patches, or any bytes.
std::string PacketOf(FuzzInput& input, bool is_any) {
  const auto kind = static_cast<MessageKind>(input.Take<std::uint8_t>() % 17);  // an offer is 16
  static constexpr auto kTypes = DefaultTraits::Providers::AllValueTypes();
  const std::string types = JoinValueTypes(kTypes);
  Hello hello{.process_id = static_cast<std::uint64_t>(getpid()),
              .channel_bytes = sizeof(Arena::Channel),
              .cells = DefaultTraits::Providers::kCellCount,
              .type_bytes = static_cast<std::uint32_t>(types.size()),
              .chunk_bytes = Arena::ChunkBytes(RingBytes()),
              .tables_address = 0x5000'0000'0000,
              .store_address = 0x6000'0000'0000};
  std::string fixed(reinterpret_cast<const char*>(&hello), sizeof(hello));
  fixed += types;
  if (!is_any) Patch(input, fixed);
  const auto rest = input.TakeRest();
  std::string text(reinterpret_cast<const char*>(rest.data()), rest.size());
  if (is_any) return text;
  text = fixed + text;
  const MessageHead head{.kind = kind, .text_bytes = static_cast<std::uint32_t>(text.size())};
  return std::string(reinterpret_cast<const char*>(&head), sizeof(head)) + text;
}

void Send(int socket, const std::string& packet, std::span<const int> files) {
  static_cast<void>(testing::SendDescriptors(socket, packet, files));
  for (const int file : files) close(file);
}

void AsWorker(const WorkerSocket& socket) {
  absl::StatusOr<Message> message = socket.Receive(0);
  if (!message.ok()) return;
  absl::StatusOr<AskedSession> asked = ReadHello<DefaultTraits>(*std::move(message));
  if (!asked.ok()) return;
  SharedArea area = asked->program.area;
  // What a worker reads first.
  area.VisitChanged([&](std::uint32_t slot) {
    testing::Check(area.At(slot) != nullptr, "a slot beyond the area");
  });
  testing::Check(!area.Chunk(0).empty(), "an area without a chunk");
  area.Unmap();
}

void AsProgram(const WorkerSocket& socket) {
  const absl::StatusOr<Message> answer = socket.Receive(0);
  if (!answer.ok()) return;
  if (answer->kind == MessageKind::kOffer) return static_cast<void>(AdoptOffer(*answer).ok());
  for (const MessageKind kind :
       {MessageKind::kWelcome, MessageKind::kFlushed, MessageKind::kStopped})
    static_cast<void>(StatusOf(*answer, kind).ToString());
  CloseDescriptors(*answer);
}

void Run(FuzzInput input) {
  const auto how = input.Take<std::uint8_t>();
  static const bool is_warm = [] {
    FuzzInput none(nullptr, 0);
    return close(AreaFile(none)) == 0;  // makes the good area, which stays
  }();
  testing::Check(is_warm, "no area");
  const int next = NextDescriptor();
  std::array<int, 2> ends{};
  testing::Check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0, "socket");
  {
    const WorkerSocket peer(ends[0]);
    const WorkerSocket own(ends[1]);
    // A hello has one descriptor, an offer has two.
    const std::array<int, 2> files{AreaFile(input), (how & 4) != 0 ? AreaFile(input) : -1};
    Send(peer.descriptor(), PacketOf(input, (how & 1) != 0),
         std::span(files).first(files[1] >= 0 ? 2 : 1));
    (how & 2) != 0 ? AsProgram(own) : AsWorker(own);
  }
  testing::Check(NextDescriptor() == next, "a descriptor is left open");
}

}  // namespace
}  // namespace strobe::internal

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  strobe::internal::Run(strobe::testing::FuzzInput(data, size));
  return 0;
}
