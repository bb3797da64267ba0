// What an exporter of files does when the system fails. Its work with the files of a real system is
// tested in tests/platform/file_exporter_test.cc.
#include "strobe/export/directory_exporter.h"

#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/testing/exporter_conformance.h"
#include "strobe/testing/fakes/manual_directories.h"

namespace strobe::testing {

struct ManualDirectoriesHarness {
  using Exporter = DirectoryExporter;
  DirectoryExporter Make() const { return {directories, {.directory = "/profiles"}}; }
  std::vector<std::string> Delivered() const { return directories.Names("/profiles"); }
  std::string Read(const std::string& where) const { return directories.Read(where).value_or(""); }
  void Break() {
    directories.With([](auto& state) { state.room_bytes = 0; });
  }
  void Mend() {
    directories.With([](auto& state) { state.room_bytes = 1 << 30; });
  }

  ManualDirectories directories;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Directory, ExporterConformance, ManualDirectoriesHarness);

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DirectoryExporterTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::string> Export(std::uint64_t sequence, std::string_view bytes = "bytes",
                                     const std::string& window = "") {
    Profile profile;
    profile.window = window;
    profile.program = "server";
    profile.process_id = 77;
    profile.sequence = sequence;
    return exporter_.Export(
        ExportRequest{bytes, ".pb.gz", "application/octet-stream", profile, {}});
  }
  std::vector<std::string> Names() const { return directories_.Names("/profiles"); }
  template <class Body>
  void BeforeEachRename(Body&& body) {
    directories_.With([&](auto& state) { state.before_rename = body; });
  }
  // The profile waits for the next period, and then it is whole.
  void ExpectDeliversAgain(std::uint64_t sequence) {
    const auto path = Export(sequence);
    ASSERT_TRUE(path.ok()) << path.status();
    EXPECT_EQ(directories_.Read(*path), "bytes");
  }

  ManualDirectories directories_;
  DirectoryExporter exporter_{directories_, {.directory = "profiles", .max_files = 3}};
};

TEST_F(DirectoryExporterTest, ACheckCreatesTheDirectoryAndLeavesNoFile) {
  EXPECT_EQ(exporter_.Check(), absl::OkStatus());
  EXPECT_TRUE(
      directories_.With([](auto& state) { return state.directories.contains("/profiles"); }));
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(DirectoryExporterTest, ACheckFindsADirectoryThatIsAFile) {
  directories_.With([](auto& state) {
    state.directories[""] = std::make_shared<ManualDirectories::Files>();
    (*state.directories[""])["profiles"] = {};
  });
  const absl::Status status = exporter_.Check();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("/profiles"), HasSubstr("STROBE_OUTPUT_DIRECTORY")));
}

// A disk that is full now may have room when the period ends.
TEST_F(DirectoryExporterTest, ACheckDoesNotRefuseWhatMayPass) {
  directories_.With([](auto& state) {
    state.write_status = absl::ResourceExhaustedError("No space left on device");
  });
  EXPECT_EQ(exporter_.Check(), absl::OkStatus());
  directories_.With(
      [](auto& state) { state.write_status = absl::PermissionDeniedError("Permission denied"); });
  const absl::Status status = exporter_.Check();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("Permission denied"));
}

// As in a program that has changed its root since.
TEST_F(DirectoryExporterTest, ADirectoryThatIsHeldIsTheOneWhateverItsPathLeadsTo) {
  ASSERT_EQ(exporter_.Check(), absl::OkStatus());
  directories_.With([](auto& state) {
    state.directories["/moved"] = std::move(state.directories["/profiles"]);
    state.directories.erase("/profiles");
  });
  ASSERT_TRUE(Export(0).ok());
  EXPECT_THAT(directories_.Names("/moved"), ElementsAre("server.77.0.pb.gz"));
  EXPECT_THAT(Names(), IsEmpty());
  // A copy, which another thread may use, holds one of its own.
  DirectoryExporter copy = exporter_;
  ASSERT_EQ(copy.Check(), absl::OkStatus());
  EXPECT_TRUE(
      directories_.With([](auto& state) { return state.directories.contains("/profiles"); }));
}

// Where the periods go: also in a program that has changed its root since.
TEST_F(DirectoryExporterTest, WindowsGoToAFolderOfTheDirectoryThatIsHeld) {
  ASSERT_EQ(exporter_.Check(), absl::OkStatus());
  EXPECT_FALSE(directories_.With([](auto& state) {
    return state.directories.contains("/profiles/last");
  })) << "there is no window yet";
  const absl::StatusOr<std::string> path = Export(0, "window", "the last 1.0 s");
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*path, "/profiles/last/server.77.0.pb.gz");
  EXPECT_EQ(directories_.Read(*path), "window");
  EXPECT_THAT(Names(), IsEmpty());
  ASSERT_TRUE(Export(0).ok());
  EXPECT_THAT(Names(), ElementsAre("server.77.0.pb.gz"));
  // Its name is a file's: the periods do not mind.
  directories_.With([](auto& state) {
    state.directories.erase("/profiles/last");
    (*state.directories["/profiles"])["last"] = {};
  });
  EXPECT_FALSE(Export(1, "window", "the last 1.0 s").ok());
  EXPECT_TRUE(Export(1).ok());
}

TEST_F(DirectoryExporterTest, ADirectoryThatIsRemovedIsMadeAgain) {
  ASSERT_TRUE(Export(0).ok());
  directories_.With([](auto& state) { state.directories.erase("/profiles"); });
  ASSERT_TRUE(Export(1).ok());
  EXPECT_THAT(Names(), ElementsAre("server.77.1.pb.gz"));
}

TEST_F(DirectoryExporterTest, NoRoomIsAClearErrorAndLosesNothing) {
  ASSERT_TRUE(Export(0).ok());
  directories_.With([](auto& state) { state.room_bytes = 3; });
  const absl::Status status = Export(1).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_FALSE(RefusesProfile(status)) << "the profile would be dropped";
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("cannot write /profiles/.server.77.1.pb.gz."), HasSubstr("No space left")));
  EXPECT_THAT(Names(), ElementsAre("server.77.0.pb.gz"));
  directories_.With([](auto& state) { state.room_bytes = 5; });
  ExpectDeliversAgain(1);
  EXPECT_THAT(Names(), ElementsAre("server.77.0.pb.gz", "server.77.1.pb.gz"));
}

TEST_F(DirectoryExporterTest, ARenameThatFailsLeavesNoTemporaryFile) {
  // Codes that would refuse a profile come from the system, too: a name that is too long.
  for (const absl::Status& failure :
       {absl::PermissionDeniedError("Permission denied"),
        absl::OutOfRangeError("File name too long"), absl::InvalidArgumentError("Bad name")}) {
    directories_.With([&](auto& state) { state.rename_status = failure; });
    const absl::Status status = Export(4).status();
    EXPECT_FALSE(status.ok());
    EXPECT_FALSE(RefusesProfile(status)) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("/profiles/server.77.4.pb.gz"),
                                                     HasSubstr(std::string(failure.message()))));
    EXPECT_THAT(Names(), IsEmpty());
  }
  directories_.With([](auto& state) { state.rename_status = absl::OkStatus(); });
  ExpectDeliversAgain(4);
  EXPECT_THAT(Names(), ElementsAre("server.77.4.pb.gz"));
}

TEST_F(DirectoryExporterTest, ADirectoryThatVanishesBetweenWriteAndRenameIsMadeAgain) {
  BeforeEachRename([this] { directories_.Vanish("/profiles"); });
  const absl::Status status = Export(0).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/profiles/server.77.0.pb.gz"));
  EXPECT_THAT(Names(), IsEmpty());
  BeforeEachRename(nullptr);
  ExpectDeliversAgain(0);
}

TEST_F(DirectoryExporterTest, MemoryThatRunsOutBeforeTheRenameLeavesNoTemporaryFile) {
  ASSERT_TRUE(Export(0).ok());
  BeforeEachRename([] { throw std::bad_alloc(); });
  EXPECT_THROW((void)Export(1), std::bad_alloc);
  EXPECT_THAT(Names(), ElementsAre("server.77.0.pb.gz"));
  BeforeEachRename(nullptr);
  ExpectDeliversAgain(1);
}

// Another process takes each name first.
TEST_F(DirectoryExporterTest, NamesThatAreAlwaysTakenAreAnErrorAfterSomeAttempts) {
  int attempts = 0;
  directories_.With([&](auto& state) {
    state.rename_status = absl::AlreadyExistsError("File exists");
    state.before_rename = [&] { ++attempts; };
  });
  const absl::Status status = Export(0).status();
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_EQ(attempts, DirectoryExporter::kMaxNameAttempts);
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(DirectoryExporterTest, OldProfilesStayUntilTheNewOneIsDelivered) {
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(Export(i).ok());
  directories_.With([](auto& state) { state.room_bytes = 0; });
  EXPECT_FALSE(Export(3).ok());
  EXPECT_EQ(Names().size(), 3u);
  directories_.With([](auto& state) { state.room_bytes = 100; });
  ASSERT_TRUE(Export(3).ok());
  EXPECT_THAT(Names(), ElementsAre("server.77.1.pb.gz", "server.77.2.pb.gz", "server.77.3.pb.gz"));
}

}  // namespace
}  // namespace strobe::testing
