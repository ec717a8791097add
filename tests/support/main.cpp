// doctest's main, for which a choice of test cases that chooses none is a fault: CTest chooses them
// by their file's name, and one that were spelled otherwise would pass without having run.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

namespace {

bool none_chosen = false;

struct counts_chosen : doctest::IReporter {
  explicit counts_chosen(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& stats) override {
    none_chosen = stats.numTestCasesPassingFilters == 0;
  }
  void test_case_start(const doctest::TestCaseData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};

REGISTER_LISTENER("counts_chosen", 1, counts_chosen);

}  // namespace

int main(int count, char** arguments) {
  doctest::Context context(count, arguments);
  const int failed = context.run();
  if (none_chosen) {
    std::fprintf(stderr, "no test case is chosen by these arguments\n");
    return 1;
  }
  return failed;
}
