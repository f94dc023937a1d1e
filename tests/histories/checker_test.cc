// Histories that must fail stand beside those that must pass, in examples/: fails_<invariant>_...
// and passes_...
#include "histories/checker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "histories/history_file.h"
#include "journal/testing/temporary_directory.h"

namespace lockd::histories {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> examples() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(LOCKD_HISTORY_EXAMPLES)) {
    names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string path_of(const std::string& name) {
  return std::string(LOCKD_HISTORY_EXAMPLES) + "/" + name + ".jsonl";
}

std::string show(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += finding.invariant + " " + finding.what + "\n";
  }
  return text;
}

// "fails_I3_..." -> "I3".
std::string expected(const std::string& name) {
  if (!name.starts_with("fails_")) return "";
  return name.substr(6, name.find('_', 6) - 6);
}

class Example : public testing::TestWithParam<std::string> {};

TEST_P(Example, IsJudgedAsItsNameSays) {
  const std::vector<Finding> findings = check(read_history(path_of(GetParam())));
  const std::string invariant = expected(GetParam());
  if (invariant.empty()) {
    EXPECT_TRUE(findings.empty()) << show(findings);
    return;
  }
  const auto found = std::find_if(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.invariant == invariant;
  });
  ASSERT_NE(found, findings.end()) << show(findings);
  EXPECT_FALSE(found->lines.empty());
}

// What is written is read as it was.
TEST_P(Example, IsJudgedTheSameWhenWrittenAgain) {
  History history = read_history(path_of(GetParam()));
  const TemporaryDirectory directory;
  const std::string copy = directory.path() + "/copy.jsonl";
  const std::string before = show(check(history));
  write_history(history, copy);
  EXPECT_EQ(show(check(read_history(copy))), before);
}

INSTANTIATE_TEST_SUITE_P(All, Example, testing::ValuesIn(examples()),
                         [](const auto& info) { return info.param; });

TEST(HistoryFile, NamesTheLineThatIsWrong) {
  const std::string good = R"({"f":"heal","call":1,"ret":1})";
  for (const std::string& bad : std::vector<std::string>{
           "{", R"({"f":"acquire","call":2,"ret":1,"res":"ok"})", R"({"f":"acquire","res":"what"})",
           R"({"f":"acquire","call":-1})", R"({"call":1})", R"({"f":{}})", R"({"f":"a\"b"})"}) {
    try {
      parse_history(good + "\n" + bad + "\n", "history");
      ADD_FAILURE() << bad;
    } catch (const std::runtime_error& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("history:2: ")) << error.what();
    }
  }
}

}  // namespace
}  // namespace lockd::histories
