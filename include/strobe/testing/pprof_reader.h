// ReadPprof: reads profile.proto, gzipped or not, for tests of encoders and of whole programs. It
// shares no code with the encoder, and checks everything that it reads.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/testing/pprof_profile.h"

namespace strobe::testing {

// The content of a gzip file; nullopt if it is damaged.
inline std::optional<std::string> Gunzip(std::string_view bytes) {
  z_stream stream = {};
  if (inflateInit2(&stream, 15 + 16) != Z_OK) return std::nullopt;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string result;
  int status = Z_OK;
  while (status == Z_OK) {
    char chunk[4096];  // a sample that waits for unwind tables has 16 KiB of its stack
    stream.next_out = reinterpret_cast<Bytef*>(chunk);
    stream.avail_out = sizeof(chunk);
    status = inflate(&stream, Z_NO_FLUSH);
    result.append(chunk, sizeof(chunk) - stream.avail_out);
  }
  inflateEnd(&stream);
  if (status != Z_STREAM_END || stream.avail_in != 0) return std::nullopt;
  return result;
}

// Reads the fields of messages. After an error, ok() stays false.
class PprofReader {
 public:
  using Visit =
      std::function<void(std::uint64_t field, std::uint64_t integer, std::string_view bytes)>;

  void Message(std::string_view text, const Visit& visit) {
    while (ok_ && !text.empty()) {
      const std::uint64_t tag = Varint(text);
      std::uint64_t integer = 0;
      std::string_view bytes;
      if ((tag & 7) == 0) {
        integer = Varint(text);
      } else if ((tag & 7) == 2) {
        const std::uint64_t length = Varint(text);
        if (length > text.size()) ok_ = false;
        if (!ok_) return;
        bytes = text.substr(0, length);
        text.remove_prefix(length);
      } else {
        ok_ = false;  // profile.proto has no fields of other kinds
      }
      if (ok_) visit(tag >> 3, integer, bytes);
    }
  }

  // Appends the elements of a packed field.
  template <class T>
  void Packed(std::string_view text, std::vector<T>& elements) {
    while (ok_ && !text.empty()) elements.push_back(static_cast<T>(Varint(text)));
  }

  [[nodiscard]] bool ok() const { return ok_; }

 private:
  std::uint64_t Varint(std::string_view& text) {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (text.empty()) break;
      const auto byte = static_cast<unsigned char>(text.front());
      text.remove_prefix(1);
      value |= shift < 64 ? std::uint64_t{byte & 0x7FU} << shift : 0;
      if (byte < 0x80) return value;
    }
    ok_ = false;
    return 0;
  }

  bool ok_ = true;
};

// Reads one profile. A first pass collects the strings, which may come after their uses.
class PprofParser {
 public:
  std::optional<PprofProfile> Parse(std::string_view message) {
    reader_.Message(message, [this](std::uint64_t field, std::uint64_t, std::string_view bytes) {
      if (field == 6) profile_.strings.emplace_back(bytes);
    });
    if (profile_.strings.empty() || !profile_.strings[0].empty()) return std::nullopt;
    reader_.Message(message, [this](std::uint64_t field, std::uint64_t integer,
                                    std::string_view bytes) { Part(field, integer, bytes); });
    if (!reader_.ok() || !strings_ok_) return std::nullopt;
    return profile_;
  }

 private:
  std::string Text(std::uint64_t index) {
    if (index < profile_.strings.size()) return profile_.strings[index];
    strings_ok_ = false;
    return "";
  }

  void Part(std::uint64_t field, std::uint64_t integer, std::string_view bytes) {
    switch (field) {
      case 1: profile_.sample_types.push_back(ReadValueType(bytes)); break;
      case 2: ReadSample(bytes); break;
      case 3: ReadMapping(bytes); break;
      case 4: ReadLocation(bytes); break;
      case 5: ReadFunction(bytes); break;
      case 9: profile_.time_ns = static_cast<std::int64_t>(integer); break;
      case 10: profile_.duration_ns = static_cast<std::int64_t>(integer); break;
      case 11: profile_.period_type = ReadValueType(bytes); break;
      case 12: profile_.period = static_cast<std::int64_t>(integer); break;
      case 13: {
        std::vector<std::uint64_t> comments;
        reader_.Packed(bytes, comments);
        for (const std::uint64_t comment : comments) profile_.comments.push_back(Text(comment));
        break;
      }
      case 14: profile_.default_sample_type = Text(integer); break;
      default: break;
    }
  }

  PprofProfile::ValueType ReadValueType(std::string_view message) {
    PprofProfile::ValueType result;
    reader_.Message(message, [&](std::uint64_t field, std::uint64_t integer, std::string_view) {
      if (field == 1) result.type = Text(integer);
      if (field == 2) result.unit = Text(integer);
    });
    return result;
  }

  void ReadSample(std::string_view message) {
    PprofProfile::Sample& sample = profile_.samples.emplace_back();
    reader_.Message(message, [&](std::uint64_t field, std::uint64_t, std::string_view bytes) {
      if (field == 1) reader_.Packed(bytes, sample.locations);
      if (field == 2) reader_.Packed(bytes, sample.values);
      if (field != 3) return;
      PprofProfile::Label& label = sample.labels.emplace_back();
      reader_.Message(bytes,
                      [&](std::uint64_t label_field, std::uint64_t integer, std::string_view) {
                        if (label_field == 1) label.key = Text(integer);
                        if (label_field == 2) label.text = Text(integer);
                        if (label_field == 3) label.number = static_cast<std::int64_t>(integer);
                      });
    });
  }

  void ReadMapping(std::string_view message) {
    PprofProfile::Mapping& mapping = profile_.mappings.emplace_back();
    reader_.Message(message, [&](std::uint64_t field, std::uint64_t integer, std::string_view) {
      if (field == 1) mapping.id = integer;
      if (field == 2) mapping.start = integer;
      if (field == 3) mapping.limit = integer;
      if (field == 4) mapping.file_offset = integer;
      if (field == 5) mapping.filename = Text(integer);
      if (field == 6) mapping.build_id = Text(integer);
      if (field == 7) mapping.has_functions = integer != 0;
      if (field == 8) mapping.has_filenames = integer != 0;
      if (field == 9) mapping.has_line_numbers = integer != 0;
      if (field == 10) mapping.has_inline_frames = integer != 0;
    });
  }

  void ReadLocation(std::string_view message) {
    PprofProfile::Location& location = profile_.locations.emplace_back();
    reader_.Message(message, [&](std::uint64_t field, std::uint64_t integer,
                                 std::string_view bytes) {
      if (field == 1) location.id = integer;
      if (field == 2) location.mapping = integer;
      if (field == 3) location.address = integer;
      if (field != 4) return;
      PprofProfile::Line& line = location.lines.emplace_back();
      reader_.Message(bytes, [&](std::uint64_t line_field, std::uint64_t value, std::string_view) {
        if (line_field == 1) line.function = value;
        if (line_field == 2) line.line = static_cast<std::int64_t>(value);
        if (line_field == 3) line.column = static_cast<std::int64_t>(value);
      });
    });
  }

  void ReadFunction(std::string_view message) {
    PprofProfile::Function& function = profile_.functions.emplace_back();
    reader_.Message(message, [&](std::uint64_t field, std::uint64_t integer, std::string_view) {
      if (field == 1) function.id = integer;
      if (field == 2) function.name = Text(integer);
      if (field == 3) function.system_name = Text(integer);
      if (field == 4) function.filename = Text(integer);
      if (field == 5) function.start_line = static_cast<std::int64_t>(integer);
    });
  }

  PprofReader reader_;
  PprofProfile profile_;
  bool strings_ok_ = true;
};

// Nullopt if the bytes are not a profile.
inline std::optional<PprofProfile> ReadPprof(std::string_view bytes) {
  if (!bytes.starts_with("\x1F\x8B")) return PprofParser().Parse(bytes);
  const std::optional<std::string> message = Gunzip(bytes);
  if (!message.has_value()) return std::nullopt;
  return PprofParser().Parse(*message);
}

}  // namespace strobe::testing
