// SymbolFiles: what a symbolizer asks of an operating system. Every Platform has one.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace strobe {

// The bytes of an image, in its file or in memory. ReadAt fills all of `out` from `offset`, or
// returns false. Every read checks its bounds again, because a file may be truncated at any time.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  [[nodiscard]] virtual bool ReadAt(std::uint64_t offset, std::span<std::byte> out) const = 0;
  [[nodiscard]] virtual std::uint64_t size() const = 0;
};

// An open regular file. It is read call by call and never mapped: a mapping raises SIGBUS if
// another program truncates the file.
class FileSource : public ByteSource {
 public:
  // Differs for two files, and for one file before and after a change of its content.
  [[nodiscard]] virtual const std::string& identity() const = 0;
  // Closes the file, for those who keep many. Each read from now on opens it, and fails if it has
  // changed or is gone. Before this, and on systems where this does nothing, it is read until the
  // end, whatever becomes of its path. Not beside a read.
  virtual void LetGo() {}
};

// A function at a code address, and the line there.
struct SourceFrame {
  std::string function;  // as in a symbol table; empty if unknown
  std::string file;      // of `line`; empty if unknown
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::uint32_t function_line = 0;  // where the function begins in `file`; 0 if unknown
  // The line that the function's entry in DWARF has, in whatever file; 0 if unknown.
  std::uint32_t declaration_line = 0;
  // DWARF's discriminator of `line`, as the compiler encodes it; 0 if there is none.
  std::uint32_t discriminator = 0;

  friend auto operator<=>(const SourceFrame&, const SourceFrame&) = default;
};

// The system's files, and its own knowledge of images. Paths and names are UTF-8, or the system's
// bytes where its paths are bytes. Control plane, from any thread.
class SymbolFiles {
 public:
  // The functions and lines at `address`, counted from the image's start, innermost first; none if
  // they are not known. Returns false to end the visit.
  using LineVisitor =
      std::function<bool(std::uint64_t address, std::span<const SourceFrame> frames)>;

  // A function at `address`, counted from the image's start; `bytes` is 0 if its size is not known.
  // The name is valid during the call only. Returns false to end the visit.
  using SymbolVisitor =
      std::function<bool(std::uint64_t address, std::uint64_t bytes, std::string_view name)>;

  // nullptr unless `path` is a regular file that can be read. Never waits for the other end of a
  // pipe.
  [[nodiscard]] virtual std::unique_ptr<FileSource> Open(const std::string& path) const = 0;

  // The image that the kernel has mapped into this process, if the module with that load bias and
  // range is that image; otherwise empty.
  [[nodiscard]] virtual std::span<const std::byte> OwnVdso(std::uint64_t /*load_bias*/,
                                                           std::uint64_t /*start*/,
                                                           std::uint64_t /*limit*/) const {
    return {};
  }

  // The content of `compressed`, which is in the format of xz, by the system's own library. Empty
  // if there is no such library, if the content is broken, or if it has more than `max_bytes`.
  [[nodiscard]] virtual std::vector<std::byte> InflateXz(std::span<const std::byte> /*compressed*/,
                                                         std::size_t /*max_bytes*/) const {
    return {};
  }
  // The same of one in the format of Zstandard (RFC 8878).
  [[nodiscard]] virtual std::vector<std::byte> InflateZstd(
      std::span<const std::byte> /*compressed*/, std::size_t /*max_bytes*/) const {
    return {};
  }

  // Calls `visit` for each function that the system's own library can name in the image at `path`,
  // in no order. For debug information in a format that only the system reads (Windows: DbgHelp and
  // PDB files). Visits nothing if there is no such library, or if it knows no name. False if
  // another thread is using the library: waiting for that thread might never end.
  [[nodiscard]] virtual bool VisitSymbols(const std::string& /*path*/,
                                          const SymbolVisitor& /*visit*/) const {
    return true;
  }
  // The same for the source lines of `addresses`: visits each of them, or none if the library has
  // no lines of the image.
  [[nodiscard]] virtual bool VisitLines(const std::string& /*path*/,
                                        std::span<const std::uint64_t> /*addresses*/,
                                        const LineVisitor& /*visit*/) const {
    return true;
  }

 protected:
  ~SymbolFiles() = default;
};

// A system without files.
class NoSymbolFiles final : public SymbolFiles {
 public:
  [[nodiscard]] std::unique_ptr<FileSource> Open(const std::string& /*path*/) const override {
    return nullptr;
  }
};

}  // namespace strobe
