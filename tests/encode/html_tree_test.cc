#include "../../src/encode/html/html_tree.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/encode/html_encoder.h"
#include "strobe/testing/profiles.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(PageTextsTest, EachTextHasOneNumberAndTheEmptyOneIsZero) {
  PageTexts texts;
  EXPECT_EQ(texts.Index(""), 0U);
  EXPECT_EQ(texts.Index("main"), 1U);
  EXPECT_EQ(texts.Index("leaf"), 2U);
  EXPECT_EQ(texts.Index("main"), 1U);
  EXPECT_THAT(texts.texts(), ElementsAre("", "main", "leaf"));
}

TEST(PageTextsTest, HoldNoByteThatAPageCannotShow) {
  PageTexts texts;
  EXPECT_EQ(texts.Index(std::string_view("a\0\xFF\n", 4)), 1U);
  EXPECT_THAT(texts.texts()[1], "a ? ");
  const std::string longest(HtmlEncoder::kMaxTextBytes, 'x');
  EXPECT_EQ(texts.Index(longest + "1"), 2U);
  EXPECT_EQ(texts.Index(longest + "2"), 2U) << "what is cut cannot be told apart";
  EXPECT_EQ(texts.texts()[2], longest);
}

// A profile of `frames` in order, whose symbols each test completes.
struct PageProfile {
  Profile profile;
  Symbols symbols;

  void Add(Frame frame, FrameSymbols names) {
    profile.frames.push_back(frame);
    symbols.frames.push_back(names);
  }
  // The sites of the frames.
  std::vector<std::vector<std::uint32_t>> AddTo(PageCode& code) const {
    const absl::StatusOr<ProfileView> view = ProfileView::Make(profile, symbols);
    EXPECT_TRUE(view.ok()) << view.status();
    return code.AddFrames(*view);
  }
};

PageProfile OneFunctionAt(std::string module, std::string file) {
  PageProfile page;
  page.profile.modules = {
      {.start = 0x1000, .limit = 0x2000, .path = std::move(module), .build_id = ""}};
  page.symbols.functions = {
      {.name = "f(int)", .system_name = "_Z1fi", .file = std::move(file), .line = 3}};
  page.Add({0x1000, 0}, {.function = 0, .line = 5});
  return page;
}

TEST(PageCodeTest, FilesAndModulesAreKnownByTheirBaseNames) {
  PageTexts texts;
  PageCode code(texts);
  EXPECT_THAT(OneFunctionAt("/old/libf.so", "/old/f.cc").AddTo(code), ElementsAre(ElementsAre(0U)));
  EXPECT_THAT(OneFunctionAt("C:\\new\\libf.so", "C:\\new\\f.cc").AddTo(code),
              ElementsAre(ElementsAre(0U)))
      << "the same function of another build";
  EXPECT_THAT(OneFunctionAt("/old/libf.so", "/old/g.cc").AddTo(code), ElementsAre(ElementsAre(1U)));
  EXPECT_THAT(OneFunctionAt("/old/libg.so", "/old/f.cc").AddTo(code), ElementsAre(ElementsAre(2U)));
  ASSERT_THAT(code.functions(), SizeIs(3));
  const PageFunction& first = code.functions()[0];
  EXPECT_EQ(texts.texts()[first.name], "f(int)");
  EXPECT_EQ(texts.texts()[first.short_name], "f") << "as tables have it";
  EXPECT_EQ(texts.texts()[first.file], "/old/f.cc") << "the path is that of the first";
  EXPECT_EQ(first.line, 3U);
  EXPECT_FALSE(first.is_pseudo);
  ASSERT_THAT(code.modules(), SizeIs(3)) << "module 0 is none";
  EXPECT_EQ(first.module, 1U);
  EXPECT_EQ(texts.texts()[code.modules()[1].path], "/old/libf.so");
}

TEST(PageCodeTest, AFrameHasTheSitesOfItsInlinedFunctionsFromTheOutermost) {
  PageProfile page = OneFunctionAt("/bin/program", "f.cc");
  page.symbols.functions.push_back({.name = "g", .system_name = "g"});
  page.symbols.functions.push_back({.name = "h", .system_name = "h"});
  page.symbols.inlined = {{.function = 2, .line = 9}, {.function = 1, .line = 8}};
  page.symbols.frames[0].inlined_count = 2;
  PageTexts texts;
  PageCode code(texts);
  EXPECT_THAT(page.AddTo(code), ElementsAre(ElementsAre(0U, 1U, 2U)));
  EXPECT_THAT(code.sites(),
              ElementsAre(PageSite{0, 5, false}, PageSite{1, 8, true}, PageSite{2, 9, true}));
}

TEST(PageCodeTest, FunctionsInlinedBeyondTheLimitAreLeftOut) {
  PageProfile page = OneFunctionAt("/bin/program", "f.cc");
  page.symbols.inlined.resize(HtmlEncoder::kMaxInlined + 1, {.function = 0, .line = 1});
  page.symbols.inlined.front().line = 2;  // the innermost
  page.symbols.frames[0].inlined_count = HtmlEncoder::kMaxInlined + 1;
  PageTexts texts;
  PageCode code(texts);
  EXPECT_THAT(page.AddTo(code), ElementsAre(SizeIs(1 + HtmlEncoder::kMaxInlined)));
  EXPECT_THAT(code.sites(), SizeIs(2)) << "the outer ones are kept";
}

TEST(PageCodeTest, PseudoFramesAndCodeWithoutANameAreFunctionsOfNoModule) {
  PageProfile page;
  page.Add({static_cast<Address>(PseudoFrame::kTruncated), Frame::kPseudo}, {});
  page.Add({0x1234, Frame::kNoModule}, {});
  PageTexts texts;
  PageCode code(texts);
  EXPECT_THAT(page.AddTo(code), ElementsAre(ElementsAre(0U), ElementsAre(1U)));
  EXPECT_EQ(texts.texts()[code.functions()[0].name], "[truncated]");
  EXPECT_TRUE(code.functions()[0].is_pseudo);
  EXPECT_EQ(texts.texts()[code.functions()[1].name], "0x1234");
  EXPECT_FALSE(code.functions()[1].is_pseudo);
  EXPECT_EQ(code.functions()[1].module, 0U);
  EXPECT_EQ(code.PseudoSite("[truncated]"), 0U) << "the page's own is the profile's";
  EXPECT_EQ(code.PseudoSite("[small stacks]"), 2U);
}

TEST(PageTreeTest, AParentHasOneChildForEachSite) {
  PageTree tree;
  EXPECT_THAT(tree.nodes(), SizeIs(1)) << "the root";
  EXPECT_EQ(tree.Child(0, 7), 1U);
  EXPECT_EQ(tree.Child(1, 7), 2U);
  EXPECT_EQ(tree.Child(0, 8), 3U);
  EXPECT_EQ(tree.Child(0, 7), 1U);
  tree.Reserve(100);
  EXPECT_THAT(tree.nodes(), SizeIs(4));
  EXPECT_EQ(tree.nodes()[2].parent, 1U);
  EXPECT_EQ(tree.nodes()[2].site, 7U);
  EXPECT_FALSE(tree.is_full());
}

TEST(PageTreeTest, EachNodeStandsBeforeItsChildrenAndThoseStandTogether) {
  PageTree tree;
  EXPECT_THAT(tree.Preorder(), ElementsAre(0U));
  const std::uint32_t a = tree.Child(0, 1);
  const std::uint32_t b = tree.Child(0, 2);
  const std::uint32_t aa = tree.Child(a, 1);
  const std::uint32_t ba = tree.Child(b, 1);
  const std::uint32_t ab = tree.Child(a, 2);
  EXPECT_THAT(tree.Preorder(), ElementsAre(0U, a, aa, ab, b, ba));
}

constexpr std::uint32_t kSmallSite = 99;

TEST(PageTreeTest, CutKeepsTheHeaviestAndGivesTheRestToTheNearestCaller) {
  PageTree tree;
  const std::uint32_t heavy = tree.Child(0, 1);
  const std::uint32_t leaf = tree.Child(heavy, 2);
  const std::uint32_t light = tree.Child(heavy, 3);
  const std::uint32_t below = tree.Child(light, 4);
  const std::uint32_t other = tree.Child(0, 5);
  const std::vector<double> amounts = {0, 1, 10, 2, 3, 4};
  const std::vector<std::uint32_t> places = tree.Cut(2, amounts, kSmallSite);
  const std::uint32_t small = tree.Child(heavy, kSmallSite);
  const std::uint32_t small_of_root = tree.Child(0, kSmallSite);
  EXPECT_THAT(places, ElementsAre(0U, heavy, leaf, small, small, small_of_root));
  EXPECT_THAT(tree.Preorder(), ElementsAre(0U, heavy, leaf, small, small_of_root));
  EXPECT_EQ(below, 4U);
  EXPECT_EQ(other, 5U);
}

TEST(PageTreeTest, OfARecursionTheFirstCallIsTheOutermost) {
  PageTree tree;
  const std::uint32_t f = tree.Child(0, 0), g = tree.Child(f, 1), again = tree.Child(g, 0);
  const std::uint32_t h = tree.Child(again, 2), beside = tree.Child(0, 1),
                      below = tree.Child(beside, 0);
  // The sites are of the functions of the same numbers.
  std::vector<std::uint32_t> functions(tree.nodes().size());
  for (std::size_t i = 1; i < functions.size(); ++i) functions[i] = tree.nodes()[i].site;
  const std::vector<bool> is_outermost = tree.Outermost(functions, 3);
  for (const std::uint32_t node : {f, g, h, beside, below}) EXPECT_TRUE(is_outermost[node]) << node;
  EXPECT_FALSE(is_outermost[again]);
}

TEST(PageTreeTest, CutLeavesATreeWithinTheLimitAsItIs) {
  PageTree tree;
  tree.Child(tree.Child(0, 1), 2);
  const std::vector<double> amounts = {0, 0, 0};
  EXPECT_THAT(tree.Cut(2, amounts, kSmallSite), ElementsAre(0U, 1U, 2U));
  EXPECT_THAT(tree.nodes(), SizeIs(3));
}

TEST(PageTreeTest, CutToNothingLeavesTheRootAndTheRest) {
  PageTree tree;
  tree.Child(tree.Child(0, 1), 2);
  const std::vector<double> amounts = {0, 1, 1};
  EXPECT_THAT(tree.Cut(0, amounts, kSmallSite), ElementsAre(0U, 3U, 3U));
  EXPECT_THAT(tree.Preorder(), ElementsAre(0U, 3U));
}

TEST(PageTreeTest, OfEqualNodesTheFirstAreKept) {
  PageTree tree;
  for (std::uint32_t site = 1; site <= 4; ++site) tree.Child(0, site);
  const std::vector<double> amounts = {0, 5, 5, 5, 5};
  const std::uint32_t small = 5;
  EXPECT_THAT(tree.Cut(2, amounts, kSmallSite), ElementsAre(0U, 1U, 2U, small, small));
}

// A profile that was read of a page may have such frames.
TEST(PageTreeTest, SmallStacksThatTheProfileHasAreKeptWhereTheyAreNeeded) {
  PageTree tree;
  const std::uint32_t heavy = tree.Child(0, 1);
  const std::uint32_t small = tree.Child(0, kSmallSite);
  const std::uint32_t light = tree.Child(0, 2);
  const std::vector<double> amounts = {0, 10, 1, 2};
  EXPECT_THAT(tree.Cut(1, amounts, kSmallSite), ElementsAre(0U, heavy, small, small));
  EXPECT_THAT(tree.Preorder(), ElementsAre(0U, heavy, small));
  EXPECT_EQ(light, 3U);
}

}  // namespace
}  // namespace strobe::internal
