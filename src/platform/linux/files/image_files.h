// The files that loaded images come from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strobe/base/address.h"

namespace strobe::internal {

// The running program's file. Without /proc, by the name that it was started by.
std::string ProgramPath();

// The paths of loaded images, as they are when the first relative name is asked for. A process may
// have thousands of those, and the kernel's list of mappings is long, so it is read once.
class ImagePaths {
 public:
  // The file that is mapped at `address`, by the loader's `name` for it. A relative name may belong
  // to an earlier working directory, so it is looked up in the kernel's list. Without /proc it is
  // resolved in the current directory, if the file is there.
  std::string Of(const std::string& name, Address address);

  // By the kernel's list alone; empty if that has none.
  std::string At(Address address);

 private:
  struct MappedFile {
    Address start;
    Address limit;
    std::string path;
  };
  void Read();

  bool is_read_ = false;
  std::vector<MappedFile> files_;  // by their addresses
};

// A number that changes when the file is written again; 0 if there is no such file.
std::uint64_t FileVersionOf(const std::string& path);

// Where a file's section headers say that .eh_frame is: for images without an index of it, which a
// segment would name, as musl-gcc, ld alone, and gcc with plain -static link them. ElfFile finds it
// as well, but a program whose profiles a worker writes has no reader of symbols.
struct EhFrameSection {
  Address address = 0;      // in the file's own space
  std::uint64_t bytes = 0;  // 0 if there is none
};
EhFrameSection ReadEhFrameSection(const std::string& path);

}  // namespace strobe::internal
