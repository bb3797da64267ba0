#include "strobe/symbolize/image_reader.h"

#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "elf_images.h"

namespace strobe {
namespace {

using internal::ElfImage;

class ImageReader {
 public:
  ImageReader(const Module& module, const SymbolFiles& files) : module_(module), files_(files) {}

  std::size_t Read(Address address, std::span<std::uint8_t> bytes) {
    if (!std::exchange(is_opened_, true)) Open();
    if (!image_.has_value()) return 0;
    return internal::ElfFile::ReadMapped(*image_->source, image_->file.segments(),
                                         address - module_.load_bias, bytes);
  }

 private:
  void Open() {
    internal::VisitElfImages(module_, files_, SymbolSearch(), [this](ElfImage&& image) {
      // A file of separate symbols has no code.
      if (image.path == module_.path) image_ = std::move(image);
      return false;
    });
  }

  const Module module_;
  const SymbolFiles& files_;
  std::optional<ElfImage> image_;
  bool is_opened_ = false;
};

}  // namespace

AnyMemoryReader ReadImageOf(const Module& module, const SymbolFiles& files) {
  return
      [reader = std::make_shared<ImageReader>(module, files)](
          Address address, std::span<std::uint8_t> bytes) { return reader->Read(address, bytes); };
}

}  // namespace strobe
