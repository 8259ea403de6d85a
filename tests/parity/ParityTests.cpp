//===- ParityTests.cpp - The emulator against the host and a GPU's bits ----===//
//
// One test an opcode: every form runs on the emulator and is compared with the host's oracle and with the committed
// results of a GPU.  Forms without committed results are listed by HardwareResults.Coverage.
//
//===----------------------------------------------------------------------===//
#include "support/Text.h"
#include "tests/parity/Generator.h"
#include "tests/parity/Oracle.h"
#include "tests/parity/Session.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <set>

namespace kiln::parity {

namespace {

constexpr const char *emulator = "emulator:sm_90a";
const std::string dataFolder = KILN_SOURCE_DIR "/tests/parity/data";
constexpr std::size_t shownForms = 8; ///< failures printed an opcode

class Parity : public testing::TestWithParam<std::string> {};

TEST_P(Parity, EmulatorAgrees) {
  Runner runner(emulator);
  Status opened = runner.open();
  ASSERT_TRUE(opened.ok()) << opened.toString();
  auto records = readRecords(recordPath(dataFolder, "sm_90", GetParam()));
  if (!records.ok()) // no file: not recorded yet; a damaged file is a failure
    ASSERT_EQ(records.status().code(), StatusCode::NotFound) << records.status().toString();
  std::size_t failed = 0, forms = 0;
  auto report = [&](const std::string &text) {
    if (failed++ < shownForms)
      ADD_FAILURE() << text;
  };
  for (const Form &form : allForms()) {
    if (form.opcode() != GetParam())
      continue;
    ++forms;
    Cases cases = makeCases(form, test::pick(std::size_t(2048), recordedRandom), test::pick<std::size_t>(4096, 65536));
    auto results = runner.run(form, cases);
    if (!results.ok()) {
      report(form.name + ": " + results.status().toString());
      continue;
    }
    Difference d = compareOracle(form, cases, *results);
    if (d.compared == 0)
      report(form.name + ": the host has no reference for this form");
    if (d.cases)
      report(format("%zu of %zu differ from the host; %s", d.cases, d.compared, d.first.c_str()));
    if (!records.ok())
      continue;
    auto found = records->forms.find(form.name);
    if (found == records->forms.end() || found->second.recipe != recipeHash(form, cases))
      continue; // HardwareResults.Coverage lists it
    Difference hardware = compareRecord(form, cases, *results, found->second);
    if (hardware.cases)
      report(format("%zu differences from %s; %s", hardware.cases, records->device.c_str(), hardware.first.c_str()));
  }
  if (failed > shownForms)
    ADD_FAILURE() << failed << " failures over " << forms << " forms; the first " << shownForms << " are shown";
}

INSTANTIATE_TEST_SUITE_P(Opcodes, Parity, testing::ValuesIn(allOpcodes()), [](const auto &info) { return info.param; });

TEST(HardwareResults, Coverage) {
  std::size_t missing = 0, stale = 0, current = 0;
  std::string list; // forms by name where a part of an opcode is missing, else the opcode
  for (const std::string &opcode : allOpcodes()) {
    auto records = readRecords(recordPath(dataFolder, "sm_90", opcode));
    std::size_t forms = 0;
    std::vector<std::string> notRun;
    for (const Form &form : allForms()) {
      if (form.opcode() != opcode)
        continue;
      ++forms;
      const Record *record = nullptr;
      if (records.ok())
        if (auto found = records->forms.find(form.name); found != records->forms.end())
          record = &found->second;
      bool fresh = record && record->recipe == recipeHash(form, makeCases(form, 0, 0));
      ++(fresh ? current : record ? stale : missing);
      if (!fresh)
        notRun.push_back(form.name);
    }
    if (!notRun.empty())
      list += "\n  " + opcode + ": " + (notRun.size() == forms ? format("all %zu", forms) : join(notRun));
  }
  std::printf("%zu forms have a GPU's results; %zu have none, %zu have results of an older generator\n", current,
              missing, stale);
  if (missing + stale)
    GTEST_SKIP() << missing + stale
                 << " forms were not run on hardware (tests/parity/README.md: how to record):" << list;
}

TEST(Forms, NamesAreUniqueAndEveryFormHasAReference) {
  std::set<std::string> names;
  for (const Form &form : allForms()) {
    EXPECT_TRUE(names.insert(form.name).second) << form.name;
    Cases cases = makeCases(form, blockThreads, blockThreads);
    EXPECT_TRUE(form.approximate() || !expected(form, cases).empty()) << form.name;
  }
}

TEST(Forms, PatternsExpand) {
  EXPECT_EQ(expandBraces("a{b,c}{,.d}").size(), 4u);
  std::vector<Form> forms = expandRow({"mul.wide{.u16,.s32}", "T T -> X"});
  ASSERT_EQ(forms.size(), 2u);
  EXPECT_EQ(forms[0].outputs[0], Type::U32);
  EXPECT_EQ(forms[1].outputs[0], Type::S64);
  EXPECT_EQ(forms[1].body, "mul.wide.s32 %d, %a, %b;");
  EXPECT_EQ(expandRow({"cvt.u8.f32", "T -> D"})[0].outputs[0], Type::U32);
}

TEST(Cases, LongerRunsExtendShorterOnes) {
  const Form &form = allForms().front();
  Cases few = makeCases(form, 1024), many = makeCases(form, 4096);
  ASSERT_EQ(few.edges, many.edges);
  for (std::size_t k = 0; k < few.inputs.size(); ++k)
    EXPECT_TRUE(std::equal(few.inputs[k].begin(), few.inputs[k].end(), many.inputs[k].begin()));
}

TEST(Records, RoundTripAndDetection) {
  std::vector<Form> forms = expandRow({"add.rn.f32", "T T -> T"});
  const Form &form = forms[0];
  Cases cases = makeCases(form, 2048);
  Columns results = expected(form, cases);
  test::TemporaryDirectory directory;
  std::string path = recordPath(directory.path(), "sm_90", "add");
  OpcodeRecords records;
  records.device = "a GPU";
  records.forms[form.name] = makeRecord(form, cases, results);
  Status written = writeRecords(path, records);
  ASSERT_TRUE(written.ok()) << written.toString();
  auto read = readRecords(path);
  ASSERT_TRUE(read.ok()) << read.status().toString();
  EXPECT_EQ(read->device, "a GPU");
  const Record &record = read->forms.at(form.name);
  EXPECT_EQ(record.recipe, recipeHash(form, cases));
  EXPECT_EQ(compareRecord(form, cases, results, record).cases, 0u);
  for (std::size_t index : {std::size_t(0), cases.edges - 1, cases.edges, cases.count() - 1}) { // raw, hashed, random
    Columns wrong = results;
    wrong[0][index] ^= softfloat::isNan(softfloat::single, wrong[0][index]) ? 0x80000000 | 0x7fffffff : 1;
    EXPECT_EQ(compareRecord(form, cases, wrong, record).cases, 1u) << index;
  }
  EXPECT_FALSE(readRecords(directory.path() + "/none").ok());
}

} // namespace

} // namespace kiln::parity
