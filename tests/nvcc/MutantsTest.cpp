//===- MutantsTest.cpp - The emulator finds mistakes made by machine ------------===//
//
// Every mutant of nvcc's optimised PTX ends in a finding, a refusal or a wrong result, or stands in
// equivalent-mutants.txt with the reason why it behaves like the original.  A mutant runs the cases that launch its
// function: in order first, then under a few seeds.  Samples of about 12 and (full tier) 30 a file; with
// KILN_TEST_MUTANTS=all in the environment every mutant, which takes five minutes on two cores, and what the list holds
// must have survived.
//
//===----------------------------------------------------------------------===//
#include "tests/mutants/Mutants.h"
#include "support/Text.h"
#include "tests/nvcc/Bench.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <thread>

namespace kiln::test {
namespace {

constexpr const char *listFile = KILN_SOURCE_DIR "/tests/nvcc/equivalent-mutants.txt";

/// "file entry kind number" -> instruction and reason.
struct Known {
  std::string instruction, reason;
};
std::map<std::string, Known> equivalents() {
  std::map<std::string, Known> out;
  std::ifstream stream(listFile);
  for (std::string line; std::getline(stream, line);) {
    const auto first = line.find(" | "), second = line.find(" | ", first + 3);
    if (line.starts_with("#") || second == std::string::npos)
      continue;
    out[line.substr(0, first)] = {line.substr(first + 3, second - first - 3), line.substr(second + 3)};
  }
  return out;
}

/// A schedule to run under.
struct Order {
  Schedule schedule;
  std::uint64_t seed;
};

/// The kernels of one file, the original and its mutants.
class Subject {
public:
  explicit Subject(const std::string &file) {
    for (const NvccCase &c : allCases())
      if (c.file == file)
        cases.push_back(c);
    target = cases.front().builds == Builds::All ? "sm_80" : "sm_90a";
    std::ifstream stream(std::string(KILN_SOURCE_DIR "/tests/nvcc/ptx/") + file + "." + target + ".O3.ptx");
    std::stringstream all;
    all << stream.rdbuf();
    text = all.str();
  }

  /// The first defect that anybody notices, empty if none.  `entry`: only cases that launch it, all if empty.
  std::string judge(const std::string &ptx, const std::string &entry, const Order &order) const {
    for (const NvccCase &c : cases) {
      const auto used = launched.find(c.name);
      if (!entry.empty() && used != launched.end() && !used->second.count(entry))
        continue;
      if (std::string defect = run(ptx, c, order, nullptr); !defect.empty())
        return defect;
    }
    return {};
  }
  /// The original; learns which case launches what.
  std::string original() {
    std::string defect = runAll();
    // A kernel may leave that fence out, as compilers do: then its mutants are judged without it.
    if (defect.find("proxy.overwrite") != std::string::npos) {
      isStrict = false;
      defect = runAll();
    }
    return defect;
  }

  std::string text, target;

private:
  std::string runAll() {
    for (const NvccCase &c : cases)
      if (std::string defect = run(text, c, {Schedule::InOrder, 0}, &launched[c.name]); !defect.empty())
        return defect;
    return {};
  }
  std::string run(const std::string &ptx, const NvccCase &c, const Order &order, std::set<std::string> *entries) const {
    EmulatorOptions options;
    options.hostThreads = 1;
    options.instructionBudget = 3'000'000;
    options.secondsBudget = 20;
    options.schedule = order.schedule;
    options.seed = order.seed;
    options.strictProxy = isStrict;
    auto device = openDevice("emulator:" + target, options);
    if (!device.ok())
      return device.status().toString();
    auto module = (*device)->loadPtx(ptx, "mutant.ptx");
    if (!module.ok())
      return "refused: " + module.status().toString();
    Bench bench(**device, **module, 20260101);
    c.run(bench);
    if (entries)
      *entries = bench.launchedKernels();
    return bench.failures().empty() ? std::string() : bench.failures().front();
  }

  std::vector<NvccCase> cases;
  std::map<std::string, std::set<std::string>> launched;
  bool isStrict = true;
};

enum class Verdict : unsigned char { Found, Unreached, Survived };
struct Judged {
  Verdict verdict = Verdict::Survived;
  std::string defect;
};

/// The id of a finding, "wrong result", "refused" at load.
std::string shortened(const std::string &defect) {
  if (defect.find(", expected ") != std::string::npos)
    return "wrong result";
  auto at = defect.find("finding ");
  at = at != std::string::npos ? at + 8 : defect.find(">>>: ") != std::string::npos ? defect.find(">>>: ") + 5 : 0;
  return defect.substr(at, defect.find(':', at) - at);
}

Judged judge(const Subject &subject, const Mutant &m) {
  const std::string text = edited(subject.text, m.change);
  // Of functions that are not entries every case may be a user.
  const std::string &entry = subject.text.find(".entry " + m.entry + "(") != std::string::npos ? m.entry : "";
  const Order inOrder{Schedule::InOrder, 0};
  if (std::string defect = subject.judge(text, entry, inOrder); !defect.empty())
    return {Verdict::Found, std::move(defect)};
  if (subject.judge(edited(subject.text, m.trap), entry, inOrder).empty())
    return {Verdict::Unreached, {}};
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    for (Schedule schedule : {Schedule::Random, Schedule::Adversarial})
      if (std::string defect = subject.judge(text, entry, {schedule, seed}); !defect.empty())
        return {Verdict::Found, "under a seed: " + defect};
  return {};
}

/// Several threads; the order of the results is that of the mutants.
std::vector<Judged> judgeAll(const Subject &subject, const std::vector<Mutant> &mutants) {
  std::vector<Judged> judged(mutants.size());
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < std::max(1u, std::min(4u, std::thread::hardware_concurrency())); ++t)
    threads.emplace_back([&] {
      for (std::size_t i; (i = next++) < mutants.size();)
        judged[i] = judge(subject, mutants[i]);
    });
  for (std::thread &thread : threads)
    thread.join();
  return judged;
}

class NvccMutants : public testing::TestWithParam<std::string> {};

TEST_P(NvccMutants, AreFound) {
  const std::string &file = GetParam();
  Subject subject(file);
  const std::string wrong = subject.original();
  ASSERT_EQ(wrong, "") << "the original";

  std::vector<Mutant> mutants = mutantsOf(subject.text);
  const bool all = std::getenv("KILN_TEST_MUTANTS") != nullptr;
  if (!all) { // a sample that changes with the file
    std::vector<Mutant> sample;
    const std::size_t step = std::max<std::size_t>(1, mutants.size() / pick(12u, 30u));
    for (std::size_t i = file.size() % step; i < mutants.size(); i += step)
      sample.push_back(mutants[i]);
    mutants = std::move(sample);
  }
  const std::vector<Judged> judged = judgeAll(subject, mutants);

  const std::map<std::string, Known> known = equivalents();
  std::set<std::string> survived;
  std::map<std::string, std::map<std::string, unsigned>> report; // kind -> outcome -> how many
  for (std::size_t i = 0; i < mutants.size(); ++i) {
    const Mutant &m = mutants[i];
    const Judged &j = judged[i];
    report[m.kind][j.verdict == Verdict::Found       ? "found"
                   : j.verdict == Verdict::Unreached ? "not reached"
                                                     : "equivalent"]++;
    if (j.verdict == Verdict::Found)
      report[m.kind]["  " + shortened(j.defect)]++;
    if (j.verdict != Verdict::Survived)
      continue;
    const std::string key = format("%s %s %s %u", file.c_str(), m.entry.c_str(), m.kind.c_str(), m.number);
    survived.insert(key);
    const auto entry = known.find(key);
    if (entry == known.end())
      ADD_FAILURE() << "nobody noticed: " << key << " | " << m.instruction << " | " << m.location << " (PTX line "
                    << m.line << ")";
    else
      EXPECT_EQ(entry->second.instruction, m.instruction) << key << ": the list was made for other PTX";
  }
  if (all)
    for (const auto &[key, entry] : known)
      if (key.starts_with(file + " "))
        EXPECT_TRUE(survived.count(key)) << "in the list, but found: " << key;
  for (const auto &[kind, outcomes] : report) {
    std::cout << file << " " << kind << ":";
    for (const auto &[outcome, count] : outcomes)
      std::cout << " " << outcome << " " << count << ";";
    std::cout << "\n";
  }
}

/// Files whose mutants run: those of the asynchronous kernels, and shared memory with barriers.
std::vector<std::string> files() {
  std::set<std::string> all = {"matmul", "transpose", "roles", "scan"};
  for (auto cases : {matrixCases(), pipelineCases(), tensorCases(), warpgroupCases(), clusterCases()})
    for (const NvccCase &c : cases)
      all.insert(c.file);
  return {all.begin(), all.end()};
}

INSTANTIATE_TEST_SUITE_P(Files, NvccMutants, testing::ValuesIn(files()), [](const auto &info) { return info.param; });

} // namespace
} // namespace kiln::test
