#include "eh_frame_reader.h"

#include <algorithm>

#include "cfi_machine.h"
#include "strobe/base/page.h"

namespace strobe::internal {

std::span<const std::uint8_t> EhFrameReader::Bytes(Address address, std::size_t count) {
  if (address < address_ || address - address_ > bytes_.size() ||
      bytes_.size() - (address - address_) < count) {
    if (read_ == nullptr) return {};
    window_.resize(std::max(count, window_bytes_));
    std::size_t got = (*read_)(address, window_);
    // Some readers give all or nothing: then what lies before the first page that may not be there.
    if (got == 0)
      got = (*read_)(address, std::span(window_).first(std::min<std::size_t>(
                                  window_.size(), kPageBytes - address % kPageBytes)));
    bytes_ = std::span(window_).first(got);
    address_ = address;
    if (got < count) {
      has_failed_ = true;
      return {};
    }
  }
  return bytes_.subspan(static_cast<std::size_t>(address - address_), count);
}

std::optional<EhFrameEntry> EhFrameReader::At(Address address) {
  constexpr std::size_t kShortLength = 4;
  constexpr std::size_t kLongLength = 12;
  DwarfReader head(Bytes(address, kShortLength), address);
  std::uint64_t length = head.Read<std::uint32_t>();
  if (!head.ok()) return std::nullopt;
  if (length == 0)
    return EhFrameEntry{
        .is_terminator = true, .cie = 0, .next = address + kShortLength, .body = {}};
  std::size_t header = kShortLength;
  if (length == 0xFFFFFFFF) {
    header = kLongLength;
    head = DwarfReader(Bytes(address, kLongLength), address);
    head.Skip(kShortLength);
    length = head.Read<std::uint64_t>();
  }
  if (!head.ok() || length > kMaxEntryBytes) return std::nullopt;
  DwarfReader whole(Bytes(address, header + static_cast<std::size_t>(length)), address);
  whole.Skip(header);
  const Address id_address = whole.address();
  const auto id = whole.Read<std::uint32_t>();
  if (!whole.ok()) return std::nullopt;
  return EhFrameEntry{.is_terminator = false,
                      .cie = id == 0 ? 0 : id_address - id,
                      .next = address + header + length,
                      .body = whole};
}

const CfiEntry* CieCache::At(EhFrameReader& reader, Address address) {
  auto found = cies_.find(address);
  if (found == cies_.end()) {
    Cie cie;
    std::optional<EhFrameEntry> raw = reader.At(address);
    if (raw && !raw->is_terminator && raw->cie == 0) {
      const std::span<const std::uint8_t> bytes = raw->body.ReadBytes(raw->body.remaining());
      cie.bytes.assign(bytes.begin(), bytes.end());
      cie.entry = Parse(DwarfReader(cie.bytes, raw->next - bytes.size()));
    }
    if (!cie.entry) ++broken_;
    found = cies_.emplace(address, std::move(cie)).first;
  }
  return found->second.entry ? &*found->second.entry : nullptr;
}

std::optional<CfiEntry> CieCache::Parse(DwarfReader body) const {
  const auto version = body.Read<std::uint8_t>();
  if (version != 1 && version != 3 && version != 4) return std::nullopt;
  char augmentation[16] = {};
  for (std::size_t i = 0;; ++i) {
    if (i == sizeof(augmentation)) return std::nullopt;
    augmentation[i] = static_cast<char>(body.Read<std::uint8_t>());
    if (augmentation[i] == 0) break;
  }
  if (version == 4) body.Skip(2);  // sizes of an address and of a segment
  CfiEntry entry;
  entry.code_alignment = body.ReadUleb();
  entry.data_alignment = body.ReadSleb();
  entry.return_register = version == 1 ? body.Read<std::uint8_t>() : body.ReadUleb();
  if (augmentation[0] == 'z') {
    entry.has_augmentation_data = true;
    DwarfReader data = body.Sub(body.ReadUleb());
    for (const char* letter = augmentation + 1; *letter != 0; ++letter) {
      switch (*letter) {
        case 'R': entry.pointer_encoding = data.Read<std::uint8_t>(); break;
        case 'P': data.ReadPointer(data.Read<std::uint8_t>() & 0x7F); break;
        case 'L': data.Read<std::uint8_t>(); break;
        case 'S': entry.is_signal_frame = true; break;
        default:
          // 'B' signs pointers with the other key; others end in the data that is skipped as a
          // whole.
          break;
      }
    }
    if (!data.ok()) return std::nullopt;
  } else if (augmentation[0] != 0) {
    return std::nullopt;  // "eh" of compilers before 3.0, whose fields cannot be skipped
  }
  if (!body.ok()) return std::nullopt;
  CfiMachine machine(entry, registers_);
  if (!machine.Run(body, 0, [](Address, const CfiState&) {})) return std::nullopt;
  entry.initial = machine.state();
  return entry;
}

}  // namespace strobe::internal
