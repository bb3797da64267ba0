// The contract of ProfileDirectories as tests. A port to another operating system:
//
//   // In namespace strobe::testing:
//   INSTANTIATE_TYPED_TEST_SUITE_P(MySystem, ProfileDirectoriesConformance,
//                                  PlatformDirectories<MyPlatform>);
//
// Other models of ProfileDirectories need a harness with the members of PlatformDirectories.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/export/profile_directories.h"
#include "strobe/platform/platform.h"

namespace strobe::testing {

// The directories of a platform whose files std::filesystem can read. Constructed anew for each
// test.
template <Platform P>
class PlatformDirectories {
 public:
  PlatformDirectories()
      : root_(std::filesystem::path(::testing::TempDir()) /
              ("strobe_directories_" + std::to_string(P::ProcessId()))) {
    std::filesystem::remove_all(root_);
  }
  ~PlatformDirectories() { std::filesystem::remove_all(root_); }
  PlatformDirectories(const PlatformDirectories&) = delete;
  PlatformDirectories& operator=(const PlatformDirectories&) = delete;

  [[nodiscard]] const ProfileDirectories& Directories() const { return P::Directories(); }
  // An absolute path for this test only. Nothing exists there yet.
  [[nodiscard]] std::string Root() const { return root_.generic_string(); }
  // The bytes of the file at `path`, read by other means; "no file" if there is none.
  [[nodiscard]] std::string Read(const std::string& path) const {
    std::ifstream file(path, std::ios::binary);
    return file ? std::string(std::istreambuf_iterator<char>(file), {}) : "no file";
  }
  // Removes the directory at `path` with its files, by other means. False if the system refuses,
  // because the directory is open.
  [[nodiscard]] bool Vanish(const std::string& path) const {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    return !std::filesystem::exists(path);
  }

 private:
  std::filesystem::path root_;
};

template <class Harness>
class ProfileDirectoriesConformance : public ::testing::Test {
 protected:
  // The directory at Root() + `below`. Ends the test if it cannot be opened.
  std::unique_ptr<ProfileDirectory> Open(const std::string& below = "") {
    absl::StatusOr<std::unique_ptr<ProfileDirectory>> directory =
        harness_.Directories().Open(harness_.Root() + below);
    EXPECT_TRUE(directory.ok()) << directory.status();
    return *std::move(directory);
  }
  static absl::Status WriteAs(const ProfileDirectory& directory, const std::string& name,
                              std::string_view bytes) {
    const auto file = directory.Write("." + name + ".tmp", bytes);
    return file.ok() ? (*file)->RenameTo(name) : file.status();
  }
  static std::vector<DirectoryFile> ListAll(const ProfileDirectory& directory) {
    return directory.List(1000, [](std::string_view /*name*/) { return true; });
  }
  // Checks that the message has the path and the reason.
  static void ExpectSays(const absl::Status& status, const std::string& path) {
    EXPECT_FALSE(status.ok());
    const std::string message(status.message());
    EXPECT_THAT(message, ::testing::StartsWith("cannot "));
    EXPECT_THAT(message, ::testing::ContainsRegex(path + ": .")) << "the system's reason";
  }

  Harness harness_;
};
TYPED_TEST_SUITE_P(ProfileDirectoriesConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ProfileDirectoriesConformance);

TYPED_TEST_P(ProfileDirectoriesConformance, AnAbsolutePathStaysAsItIs) {
  const ProfileDirectories& directories = this->harness_.Directories();
  const std::string path = directories.AbsolutePath("profiles/of/mine");
  EXPECT_NE(path, "profiles/of/mine");
  EXPECT_TRUE(path.ends_with("/profiles/of/mine")) << path;
  EXPECT_EQ(directories.AbsolutePath(path), path);
}

TYPED_TEST_P(ProfileDirectoriesConformance, MissingDirectoriesAreCreated) {
  ASSERT_EQ(this->WriteAs(*this->Open("/a/b"), "file", "bytes"), absl::OkStatus());
  EXPECT_EQ(this->harness_.Read(this->harness_.Root() + "/a/b/file"), "bytes");
  // Existing directories are opened.
  EXPECT_EQ(this->ListAll(*this->Open("/a/b")).size(), 1u);
}

TYPED_TEST_P(ProfileDirectoriesConformance, AnExistingDirectoryIsOpenedAndNoneIsCreated) {
  const ProfileDirectories& directories = this->harness_.Directories();
  const std::string path = this->harness_.Root() + "/a";
  const absl::Status missing = directories.OpenExisting(path).status();
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  this->ExpectSays(missing, path);
  ASSERT_EQ(this->WriteAs(*this->Open("/a"), "file", "bytes"), absl::OkStatus());
  const auto directory = directories.OpenExisting(path);
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ(this->ListAll(**directory).size(), 1u);
}

TYPED_TEST_P(ProfileDirectoriesConformance, AFolderInADirectoryIsMadeOrOpened) {
  const auto directory = this->Open("/a");
  for (const char* const name : {"first", "second"}) {
    const auto folder = directory->OpenFolder("folder");
    ASSERT_TRUE(folder.ok()) << folder.status();
    ASSERT_EQ(this->WriteAs(**folder, name, "bytes"), absl::OkStatus());
    EXPECT_EQ((*folder)->PathOf(name), this->harness_.Root() + "/a/folder/" + name);
    EXPECT_EQ(this->harness_.Read((*folder)->PathOf(name)), "bytes");
  }
  EXPECT_EQ(this->ListAll(*this->Open("/a/folder")).size(), 2u);
  ASSERT_EQ(this->WriteAs(*directory, "file", "bytes"), absl::OkStatus());
  this->ExpectSays(directory->OpenFolder("file").status(), directory->PathOf("file"));
}

TYPED_TEST_P(ProfileDirectoriesConformance, AFileInTheWayIsAnErrorThatNamesIt) {
  ASSERT_EQ(this->WriteAs(*this->Open(), "file", "bytes"), absl::OkStatus());
  const std::string file = this->harness_.Root() + "/file";
  const absl::Status status = this->harness_.Directories().Open(file).status();
  this->ExpectSays(status, file);
  EXPECT_NE(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_FALSE(this->harness_.Directories().Open(file + "/below").ok());
  EXPECT_EQ(this->harness_.Read(file), "bytes");
}

TYPED_TEST_P(ProfileDirectoriesConformance, AFileIsWholeUnderItsFinalName) {
  const auto directory = this->Open();
  std::string every_byte;
  for (int i = 0; i < 256; ++i) every_byte += static_cast<char>(i);
  int number = 0;
  for (const std::string& bytes : {std::string(), every_byte, std::string(3'000'000, 'x')}) {
    const std::string name = "file" + std::to_string(number++);
    ASSERT_EQ(this->WriteAs(*directory, name, bytes), absl::OkStatus());
    EXPECT_EQ(directory->PathOf(name), this->harness_.Root() + "/" + name);
    EXPECT_EQ(this->harness_.Read(directory->PathOf(name)), bytes);
  }
  EXPECT_EQ(this->ListAll(*directory).size(), 3u) << "no temporary file is left";
}

TYPED_TEST_P(ProfileDirectoriesConformance, AFileThatIsNotRenamedIsRemoved) {
  const auto directory = this->Open();
  {
    const auto file = directory->Write("temporary", "bytes");
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(this->ListAll(*directory).size(), 1u);
  }
  EXPECT_TRUE(this->ListAll(*directory).empty());
}

TYPED_TEST_P(ProfileDirectoriesConformance, NothingIsReplaced) {
  const auto directory = this->Open();
  ASSERT_EQ(this->WriteAs(*directory, "first", "1"), absl::OkStatus());
  const absl::Status written = directory->Write("first", "2").status();
  EXPECT_TRUE(absl::IsAlreadyExists(written)) << written;
  this->ExpectSays(written, directory->PathOf("first"));
  const auto file = directory->Write("temporary", "2");
  ASSERT_TRUE(file.ok()) << file.status();
  const absl::Status renamed = (*file)->RenameTo("first");
  EXPECT_TRUE(absl::IsAlreadyExists(renamed)) << renamed;
  this->ExpectSays(renamed, directory->PathOf("first"));
  EXPECT_EQ(this->harness_.Read(directory->PathOf("first")), "1");
  // A rename to another name works.
  EXPECT_EQ((*file)->RenameTo("second"), absl::OkStatus());
  EXPECT_EQ(this->harness_.Read(directory->PathOf("second")), "2");
}

TYPED_TEST_P(ProfileDirectoriesConformance, AListHasTheSizesAndTimesOfWantedFiles) {
  // File systems round times, some to two seconds.
  const std::chrono::nanoseconds now = std::chrono::system_clock::now().time_since_epoch();
  const std::int64_t begin_ns = (now - std::chrono::seconds(3)).count();
  const std::int64_t end_ns = (now + std::chrono::hours(1)).count();
  const auto directory = this->Open();
  (void)this->Open("/wanted_directory");
  ASSERT_EQ(this->WriteAs(*directory, "wanted", "12345"), absl::OkStatus());
  ASSERT_EQ(this->WriteAs(*directory, "other", "123"), absl::OkStatus());
  const auto is_wanted = [](std::string_view name) { return name.starts_with("wanted"); };
  const std::vector<DirectoryFile> files = directory->List(1000, is_wanted);
  ASSERT_EQ(files.size(), 1u) << "a directory is not a file";
  EXPECT_EQ(files[0].name, "wanted");
  EXPECT_EQ(files[0].bytes, 5u);
  EXPECT_GE(files[0].modified_ns, begin_ns);
  EXPECT_LE(files[0].modified_ns, end_ns);
  EXPECT_LE(directory->List(1, [](std::string_view /*name*/) { return true; }).size(), 1u);
}

TYPED_TEST_P(ProfileDirectoriesConformance, AFileIsRemovedOnce) {
  const auto directory = this->Open();
  ASSERT_EQ(this->WriteAs(*directory, "file", "bytes"), absl::OkStatus());
  EXPECT_TRUE(directory->Remove("file"));
  EXPECT_FALSE(directory->Remove("file"));
  EXPECT_EQ(this->harness_.Read(directory->PathOf("file")), "no file");
}

TYPED_TEST_P(ProfileDirectoriesConformance, ADirectoryThatVanishesIsAnErrorUntilItIsOpenedAgain) {
  const auto directory = this->Open();
  const auto file = directory->Write("temporary", "bytes");
  ASSERT_TRUE(file.ok()) << file.status();
  if (!this->harness_.Vanish(this->harness_.Root())) {
    // This system does not remove an open directory.
    EXPECT_EQ(this->WriteAs(*directory, "file", "bytes"), absl::OkStatus());
    return;
  }
  this->ExpectSays((*file)->RenameTo("file"), directory->PathOf("file"));
  this->ExpectSays(directory->Write("another", "bytes").status(), directory->PathOf("another"));
  EXPECT_FALSE(directory->Remove("temporary"));
  EXPECT_TRUE(this->ListAll(*directory).empty());
  ASSERT_EQ(this->WriteAs(*this->Open(), "file", "again"), absl::OkStatus());
  EXPECT_EQ(this->harness_.Read(this->harness_.Root() + "/file"), "again");
}

TYPED_TEST_P(ProfileDirectoriesConformance, AFileIsReadWholeOrNotAtAll) {
  const auto directory = this->Open();
  ASSERT_EQ(this->WriteAs(*directory, "file", std::string("by\0tes", 6)), absl::OkStatus());
  const auto bytes = directory->Read("file", 6);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, std::string("by\0tes", 6));
  EXPECT_TRUE(absl::IsOutOfRange(directory->Read("file", 5).status()));
  const absl::Status missing = directory->Read("missing", 6).status();
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  this->ExpectSays(missing, directory->PathOf("missing"));
}

TYPED_TEST_P(ProfileDirectoriesConformance, AFileIsRenamedAndReplacesNone) {
  const auto directory = this->Open();
  ASSERT_EQ(this->WriteAs(*directory, "first", "1"), absl::OkStatus());
  ASSERT_EQ(this->WriteAs(*directory, "second", "2"), absl::OkStatus());
  EXPECT_TRUE(absl::IsAlreadyExists(directory->Rename("first", "second")));
  EXPECT_EQ(directory->Rename("first", "third"), absl::OkStatus());
  EXPECT_EQ(this->harness_.Read(directory->PathOf("third")), "1");
  EXPECT_EQ(this->harness_.Read(directory->PathOf("second")), "2");
  EXPECT_EQ(this->harness_.Read(directory->PathOf("first")), "no file");
}

TYPED_TEST_P(ProfileDirectoriesConformance, FilesAndNamesAreSynced) {
  const auto directory = this->Open();
  const auto file = directory->Write("temporary", "bytes");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->Sync(), absl::OkStatus());
  EXPECT_EQ((*file)->RenameTo("file"), absl::OkStatus());
  EXPECT_EQ(directory->Sync(), absl::OkStatus());
}

TYPED_TEST_P(ProfileDirectoriesConformance, ADirectoryIsLockedForOneObject) {
  auto first = this->Open();
  const auto second = this->Open();
  EXPECT_TRUE(first->TryLock());
  EXPECT_TRUE(first->TryLock()) << "it has it";
  EXPECT_FALSE(second->TryLock());
  EXPECT_TRUE(this->Open("/below")->TryLock()) << "another directory";
  ASSERT_EQ(this->WriteAs(*second, "file", "bytes"), absl::OkStatus()) << "a lock keeps no file";
  first.reset();
  EXPECT_TRUE(second->TryLock());
}

REGISTER_TYPED_TEST_SUITE_P(ProfileDirectoriesConformance, AnAbsolutePathStaysAsItIs,
                            MissingDirectoriesAreCreated,
                            AnExistingDirectoryIsOpenedAndNoneIsCreated,
                            AFolderInADirectoryIsMadeOrOpened, AFileInTheWayIsAnErrorThatNamesIt,
                            AFileIsWholeUnderItsFinalName, AFileThatIsNotRenamedIsRemoved,
                            NothingIsReplaced, AListHasTheSizesAndTimesOfWantedFiles,
                            AFileIsRemovedOnce, AFileIsReadWholeOrNotAtAll,
                            AFileIsRenamedAndReplacesNone, FilesAndNamesAreSynced,
                            ADirectoryIsLockedForOneObject,
                            ADirectoryThatVanishesIsAnErrorUntilItIsOpenedAgain);

}  // namespace strobe::testing
