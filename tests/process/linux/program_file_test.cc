#include "../../../src/process/linux/program_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "elf_bytes.h"
#include "platform/test_system.h"

namespace strobe::internal {
namespace {

class JudgeProgramFileTest : public ::testing::Test {
 protected:
  std::string Write(const char* name, const std::string& bytes, mode_t mode = 0755) {
    const std::string path = (directory_.path() / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    chmod(path.c_str(), mode);
    return path;
  }
  ProgramKind KindOfBytes(const std::string& bytes) {
    return JudgeProgramFile(Write("program", bytes).c_str()).kind;
  }

  testing::TemporaryDirectory directory_;
};

TEST_F(JudgeProgramFileTest, TheLoaderTellsWhatCanBePreloadedInto) {
  EXPECT_EQ(KindOfBytes(ElfBytes("/lib64/ld-linux-x86-64.so.2")), ProgramKind::kPreloadable);
  EXPECT_EQ(KindOfBytes(ElfBytes("/opt/own/ld-linux-x86-64.so.2")), ProgramKind::kPreloadable);
  EXPECT_EQ(KindOfBytes(ElfBytes("/lib/ld-musl-x86_64.so.1")), ProgramKind::kOtherLibrary);
  EXPECT_EQ(KindOfBytes(ElfBytes()), ProgramKind::kStatic);
  const std::string loader = Write("ld-linux-x86-64.so.2", ElfBytes());
  EXPECT_EQ(JudgeProgramFile(loader.c_str()).kind, ProgramKind::kPreloadable) << "it is the loader";
}

TEST_F(JudgeProgramFileTest, OtherFilesAreNoSuchPrograms) {
  std::string narrow = ElfBytes();
  narrow[EI_CLASS] = ELFCLASS32;
  EXPECT_EQ(KindOfBytes(narrow), ProgramKind::k32Bit);
  std::string other = ElfBytes();
  other[offsetof(Elf64_Ehdr, e_machine)] = static_cast<char>(EM_ARM);
  EXPECT_EQ(KindOfBytes(other), ProgramKind::kOtherArchitecture);
  EXPECT_EQ(KindOfBytes(ElfBytes().substr(0, 20)), ProgramKind::kIncomplete);
  EXPECT_EQ(KindOfBytes("no program"), ProgramKind::kUnknown);
  EXPECT_EQ(JudgeProgramFile("/no/such/file").kind, ProgramKind::kUnknown);
  std::string segments = ElfBytes("/lib64/ld-linux-x86-64.so.2");
  segments.resize(sizeof(Elf64_Ehdr));
  EXPECT_EQ(KindOfBytes(segments), ProgramKind::kStatic) << "segments that are not there";
}

TEST_F(JudgeProgramFileTest, OfAScriptTheInterpreterIsJudged) {
  const std::string program = Write("static", ElfBytes());
  const std::string script = Write("script", "#! " + program + " -x\n");
  const ProgramFile judged = JudgeProgramFile(script.c_str());
  EXPECT_EQ(judged.kind, ProgramKind::kStatic);
  EXPECT_EQ(judged.interpreter_path(), program);
  EXPECT_TRUE(judged.LoadsNoLibrary());
  const std::string outer = Write("outer", "#!" + script);
  EXPECT_EQ(JudgeProgramFile(outer.c_str()).interpreter_path(), program);
  const std::string circle = (directory_.path() / "circle").string();
  Write("circle", "#!" + circle + "\n");
  EXPECT_EQ(JudgeProgramFile(circle.c_str()).kind, ProgramKind::kUnknown);
}

TEST_F(JudgeProgramFileTest, WhatIsNoRegularFileIsNotOpened) {
  const std::string fifo = (directory_.path() / "fifo").string();
  ASSERT_EQ(mkfifo(fifo.c_str(), 0755), 0);
  EXPECT_EQ(JudgeProgramFile(fifo.c_str()).kind, ProgramKind::kUnknown) << "it has no writer";
  const std::string script = Write("script", "#!" + fifo + "\n");
  EXPECT_EQ(JudgeProgramFile(script.c_str()).kind, ProgramKind::kUnknown);
}

TEST_F(JudgeProgramFileTest, BitsOfTheFileGiveOtherRights) {
  const std::string bytes = ElfBytes("/lib64/ld-linux-x86-64.so.2");
  const std::string own = Write("own", bytes, 04755);
  EXPECT_FALSE(JudgeProgramFile(own.c_str()).has_other_rights) << "its user has these rights";
  const std::string other = Write("other", bytes);
  if (chown(other.c_str(), getuid() + 1, getgid() + 1) != 0) GTEST_SKIP() << "only root may";
  EXPECT_FALSE(JudgeProgramFile(other.c_str()).has_other_rights) << "it has no such bit";
  for (const mode_t mode : {04755, 02755}) {
    chmod(other.c_str(), mode);
    EXPECT_TRUE(JudgeProgramFile(other.c_str()).LoadsNoLibrary()) << mode;
  }
  chmod(other.c_str(), 02745);
  EXPECT_FALSE(JudgeProgramFile(other.c_str()).has_other_rights) << "a mark of locks, no right";
  const std::string script = Write("script", "#!" + own, 0755);
  EXPECT_EQ(chown(script.c_str(), getuid() + 1, getgid()), 0);
  chmod(script.c_str(), 04755);
  EXPECT_FALSE(JudgeProgramFile(script.c_str()).has_other_rights) << "scripts have no rights";
}

}  // namespace
}  // namespace strobe::internal
