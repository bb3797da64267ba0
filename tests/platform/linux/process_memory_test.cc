#include "../../../src/platform/linux/memory/process_memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

// Pages of memory of which each byte is the number of its page plus 1; the page behind them cannot
// be read.
class Pages {
 public:
  static constexpr std::size_t kCount = 5;
  Pages() : page_bytes_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    start_ = static_cast<std::uint8_t*>(mmap(nullptr, bytes() + page_bytes_, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (std::size_t i = 0; i < kCount; ++i)
      std::memset(start_ + i * page_bytes_, static_cast<int>(i + 1), page_bytes_);
    mprotect(start_ + bytes(), page_bytes_, PROT_NONE);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { munmap(start_, bytes() + page_bytes_); }

  [[nodiscard]] std::size_t page_bytes() const { return page_bytes_; }
  [[nodiscard]] std::size_t bytes() const { return kCount * page_bytes_; }
  [[nodiscard]] std::uint8_t* start() const { return start_; }
  [[nodiscard]] std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(start_); }

 private:
  const std::size_t page_bytes_;
  std::uint8_t* start_;
};

class ReadPagesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<std::uint8_t, 1> byte;
    if (ReadPages<1>(getpid(), pages_.address(), byte) == 0)
      GTEST_SKIP() << "process_vm_readv: " << std::strerror(errno);
  }
  // What is read by calls of 1, 2 and many pages, which agree.
  std::vector<std::uint8_t> Read(std::uint64_t address, std::size_t bytes) {
    std::vector<std::uint8_t> one(bytes);
    std::vector<std::uint8_t> two(bytes);
    std::vector<std::uint8_t> many(bytes);
    one.resize(ReadPages<1>(getpid(), address, one));
    two.resize(ReadPages<2>(getpid(), address, two));
    many.resize(ReadPages<kPagesPerRead>(getpid(), address, many));
    EXPECT_EQ(one, two);
    EXPECT_EQ(one, many);
    return one;
  }

  Pages pages_;
};

TEST_F(ReadPagesTest, CopiesAcrossPages) {
  const std::vector<std::uint8_t> all = Read(pages_.address(), pages_.bytes());
  EXPECT_EQ(all, std::vector<std::uint8_t>(pages_.start(), pages_.start() + pages_.bytes()));
  const std::vector<std::uint8_t> edge = Read(pages_.address() + pages_.page_bytes() - 1, 3);
  EXPECT_EQ(edge, (std::vector<std::uint8_t>{1, 2, 2}));
  EXPECT_TRUE(Read(pages_.address(), 0).empty());
}

TEST_F(ReadPagesTest, EndsBeforeWhatCannotBeRead) {
  const std::vector<std::uint8_t> end =
      Read(pages_.address() + pages_.bytes() - 10, 2 * pages_.page_bytes());
  EXPECT_EQ(end, std::vector<std::uint8_t>(10, 5));
  EXPECT_TRUE(Read(pages_.address() + pages_.bytes(), 10).empty());
  EXPECT_TRUE(Read(0, 10).empty());
  EXPECT_TRUE(Read(~std::uint64_t{0} - 4, 10).empty()) << "the end of the address space";
}

TEST_F(ReadPagesTest, AProcessThatDoesNotExistHasNoMemory) {
  std::array<std::uint8_t, 8> bytes;
  EXPECT_EQ(ReadPages<1>(0x3FFFFFFF, pages_.address(), bytes), 0u);
}

TEST(AdvisePagesTest, OnlyWholePagesGetTheAdvice) {
  const Pages pages;
  const std::size_t page = pages.page_bytes();
  AdvisePages(pages.start() + 1, 3 * page, MADV_DONTNEED);  // the second and third
  EXPECT_EQ(pages.start()[0], 1);
  EXPECT_EQ(pages.start()[page - 1], 1);
  EXPECT_EQ(pages.start()[page], 0) << "given back";
  EXPECT_EQ(pages.start()[3 * page - 1], 0);
  EXPECT_EQ(pages.start()[3 * page], 4);
  AdvisePages(pages.start() + 3 * page + 1, page, MADV_DONTNEED);
  EXPECT_EQ(pages.start()[3 * page + 1], 4) << "it holds no whole page";
  AdvisePages(pages.start() + 4 * page, page, MADV_DONTNEED);
  EXPECT_EQ(pages.start()[4 * page], 0);
}

TEST(BlockedSignalsTest, AreThoseOfTheThread) {
  sigset_t signals;
  sigset_t before;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  sigaddset(&signals, SIGRTMAX);
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  const std::uint64_t blocked = BlockedSignalsIn("/proc/thread-self");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_NE(blocked >> (SIGUSR1 - 1) & 1, 0u);
  EXPECT_NE(blocked >> (SIGRTMAX - 1) & 1, 0u);
  EXPECT_EQ(blocked >> (SIGUSR2 - 1) & 1, 0u);
  EXPECT_EQ(BlockedSignalsIn("/proc/thread-self") >> (SIGUSR1 - 1) & 1, 0u);
  EXPECT_EQ(BlockedSignalsIn("/no/such/thread"), 0u);
}

}  // namespace
}  // namespace strobe::internal
