//===- DplrCountersTest.cpp - What RWKV7's launches read, write and multiply, in closed form ---===//
//
// Each launch's bytes are the sum of readings and writings that have names: what must be read or written once
// (compulsory), what is read again, what goes through the workspace from one launch to another.  The emulator's
// counters are held to these sums, to the byte; barriers and bank conflicts to numbers of a program.  Gates are f32 and
// have RWKV7's bound, so that no chunk is looked at; dense calls without states.
//
//===----------------------------------------------------------------------===//
#include "kernels/support/Runner.h"
#include "tests/kernels/Bench.h"
#include "tests/support/TestTier.h"

#include <algorithm>

namespace kiln::test {
namespace {

using namespace kernels;
using Count = std::uint64_t;

constexpr Count C = 64; ///< tokens of a chunk

struct Problem {
  Count B, T, H, K, V;
  Count blockV;          ///< columns of V of a program that walks along a sequence
  bool stagesOut = true; ///< shared memory holds what dplr_out, or a walk backward with Qh, reads of two chunks
  bool saved = false;    ///< forward: what gradients take is saved; backward: it was

  Count chunks() const { return (T + C - 1) / C; }
  Count slots() const { return B * H * chunks(); }
  Count rows() const { return B * T * H; } ///< of a tensor [B, T, H, ..]
  Count slices() const { return K / std::min<Count>(K, 64); }
  Count parts() const { return V / blockV; }
  /// Programs of one chunk have eight warps for wide heads and for gradients.
  Count warps(bool gradients = false) const { return std::max(K, V) > 64 || gradients ? 8 : 4; }
  std::string text() const {
    return "B" + std::to_string(B) + " T" + std::to_string(T) + " H" + std::to_string(H) + " K" + std::to_string(K) +
           " V" + std::to_string(V);
  }
};

enum class Why { Compulsory, Again, Workspace };
struct Term {
  const char *what;
  Why why;
  Count bytes;
};
struct Launch {
  const char *kernel;
  Count programs, warps;
  Count visits; ///< chunks that a program works on, one after the other
  std::vector<Term> reads, writes;
  Count flops;
  bool ownNumbers = false; ///< of `ofPrograms`, since what is saved changes its code
};

constexpr Count act = 2, f32 = 4; ///< bytes

/// 2 m n k.
Count product(Count m, Count n, Count k) {
  return 2 * m * n * k;
}
/// Triangular.h: three doublings inside blocks of 16, then two with blocks of 32 and 64, two products each.
constexpr Count inverse = 2 * 2 * (3 * 4 * 16 * 16 * 16 + 2 * 32 * 32 * 32 + 64 * 64 * 64);

/// What both kinds of maps read: rows for the matrices, and again, slice by slice, gated for the chunk's ends; gates
/// once if there is one slice, whose decays are kept.
std::vector<Term> rowsOfMaps(const Problem &p) {
  const Count keys = p.rows() * p.K;
  return {{"v", Why::Compulsory, p.rows() * p.V * act},
          {"q, k, a, b", Why::Compulsory, 4 * keys * act},
          {"g", Why::Compulsory, keys * f32},
          {"q, k, a, b for the chunk's ends", Why::Again, 4 * keys * act},
          {"g for the chunk's ends", Why::Again, p.slices() > 1 ? keys * f32 : 0}};
}
/// What both kinds write, of every slot.
std::vector<Term> mapsOfSlots(const Problem &p) {
  return {{"F", Why::Workspace, p.slots() * p.K * p.K * act},
          {"R", Why::Workspace, p.slots() * p.K * p.V * act},
          {"e^L", Why::Workspace, p.slots() * p.K * f32}};
}
/// The four matrices, the inverse, W, F, both parts of R, Qh, A_ak V and the inverse of that.
Count flopsOfMaps(const Problem &p) {
  return p.slots() * (4 * product(C, C, p.K) + inverse + product(C, p.K, C) + product(p.K, p.K, C) +
                      2 * product(p.V, p.K, C) + product(C, p.K, C) + 2 * product(C, p.V, C));
}

std::vector<Launch> forward(const Problem &p) {
  const Count qh = p.slots() * C * p.K * act, oh = p.slots() * C * p.V * act;
  Launch maps{"dplr_maps", p.slots(), p.warps(), 1, rowsOfMaps(p), mapsOfSlots(p), flopsOfMaps(p)};
  maps.writes.push_back({"Qh", Why::Workspace, qh});
  maps.writes.push_back({"Oh", Why::Workspace, oh});
  maps.flops += p.slots() * 2 * product(C, p.V, C);
  maps.ownNumbers = p.saved;
  // Every part of V has a program of its own, which needs the whole of F, Qh and the decays.  Where these do not come
  // through shared memory, eight lanes of a warp ask for each decay: rows that have the same columns.
  Launch out{"dplr_out",
             p.B * p.H * p.parts(),
             p.blockV / 16,
             p.chunks(),
             {{"F, by every part of V", Why::Workspace, p.parts() * p.slots() * p.K * p.K * act},
              {"Qh, by every part of V", Why::Workspace, p.parts() * qh},
              {"e^L, by every part of V", Why::Workspace, (p.stagesOut ? 1 : 8) * p.parts() * p.slots() * p.K * f32},
              {"R", Why::Workspace, p.slots() * p.K * p.V * act},
              {"Oh", Why::Workspace, oh}},
             {{"o", Why::Compulsory, p.rows() * p.V * act}},
             p.slots() * (product(C, p.V, p.K) + product(p.V, p.K, p.K)),
             p.saved};
  if (p.saved) {
    maps.writes.push_back({"the matrices", Why::Workspace, p.slots() * 4 * C * C * act});
    out.writes.push_back({"the states", Why::Workspace, p.slots() * p.K * p.V * act});
  }
  return {maps, out};
}

std::vector<Launch> backward(const Problem &p) {
  const Count keys = p.rows() * p.K, values = p.rows() * p.V * act;
  const Count states = p.slots() * p.K * p.V * act, matrices = p.slots() * 4 * C * C * act,
              written = p.slots() * C * p.V * act;

  const Why first = p.saved ? Why::Compulsory : Why::Again; // what dplr_maps_backward reads before

  Launch maps{"dplr_maps_backward", p.slots(), p.warps(), 1, rowsOfMaps(p), mapsOfSlots(p), flopsOfMaps(p)};
  maps.reads.push_back({"dO", Why::Compulsory, values});
  maps.reads.push_back({"dO, by every other slice", Why::Again, (p.slices() - 1) * values});
  maps.writes.push_back({"Qh^T dO", Why::Workspace, states});
  maps.writes.push_back({"the matrices", Why::Workspace, matrices});
  maps.flops += p.slots() * product(p.V, p.K, C);

  // Two directions, and every part of V has a program in each.
  Launch chains{"dplr_chains",
                2 * p.B * p.H * p.parts(),
                p.K > 64 ? 4 : p.blockV / 16,
                p.chunks(),
                {{"F, by every part of V both ways", Why::Workspace, 2 * p.parts() * p.slots() * p.K * p.K * act},
                 {"e^L, by every part of V both ways", Why::Workspace, 2 * p.parts() * p.slots() * p.K * f32},
                 {"R", Why::Workspace, states},
                 {"Qh^T dO", Why::Workspace, states}},
                {{"the states", Why::Workspace, states}, {"their gradients", Why::Workspace, states}},
                2 * p.slots() * product(p.V, p.K, p.K)};
  // The states are there: only their gradients are walked along, and what these gain is made on the way.
  if (p.saved)
    chains = {"dplr_chains",
              p.B * p.H * p.parts(),
              p.K > 64 ? 4 : p.blockV / 16,
              p.chunks(),
              {{"F, by every part of V", Why::Workspace, p.parts() * p.slots() * p.K * p.K * act},
               {"Qh, by every part of V", Why::Workspace, p.parts() * p.slots() * C * p.K * act},
               {"e^L, by every part of V", Why::Workspace, (p.stagesOut ? 1 : 8) * p.parts() * p.slots() * p.K * f32},
               {"dO", Why::Compulsory, values}},
              {{"gradients of the states", Why::Workspace, states}},
              p.slots() * (product(p.V, p.K, p.K) + product(p.V, p.K, C)),
              true};

  // q is not needed: its part of these sums is in the matrices.
  Launch valueGrads{
      "dplr_value_grads",
      p.slots(),
      p.warps(),
      1,
      {{"v", first, values},
       {"dO", Why::Again, values},
       {"a, k, b", first, 3 * keys * act},
       {"g", first, keys * f32},
       {"the matrices", Why::Workspace, matrices},
       {"the states", Why::Workspace, states},
       {"their gradients", Why::Workspace, states}},
      {{"dv", Why::Compulsory, values}, {"Y", Why::Workspace, written}, {"what b wrote", Why::Workspace, written}},
      p.slots() * (6 * product(C, p.V, C) + 3 * product(C, p.V, p.K))};

  // Rows are read where they are needed rather than kept: again after each gradient that was written.  A program has
  // one slice of K and the whole of V.  Neighbours' rows: those of the token before, of all rows of the chunk, also the
  // one after the sequence's end, and those of the token after.
  const Count before = p.B * p.H * (p.T % C ? p.T : p.T - 1) * p.K, after = p.B * p.H * (p.T - 1) * p.K;
  Launch grads{"dplr_grads",
               p.slots() * p.slices(),
               p.warps(/*gradients=*/true),
               1,
               {{"q", first, keys * act},
                {"k, a, b", Why::Again, 3 * keys * act},
                {"g", Why::Again, keys * f32},
                {"v, by every slice", Why::Again, p.slices() * values},
                {"dO, by every slice", Why::Again, p.slices() * values},
                {"Y, by every slice", Why::Workspace, p.slices() * written},
                {"what b wrote, by every slice", Why::Workspace, p.slices() * written},
                {"the states", Why::Workspace, states},
                {"their gradients", Why::Workspace, states},
                {"k and b for dq", Why::Again, 2 * keys * act},
                {"q, k and a for dk", Why::Again, 3 * keys * act},
                {"q and b for db", Why::Again, 2 * keys * act},
                {"a of the token after, for dk and for db", Why::Again, 2 * after * act},
                {"k of the token before, for da", Why::Again, before * act},
                {"b of the token before, for da", Why::Again, before * act}},
               {{"dq, dk, da, db", Why::Compulsory, 4 * keys * act}, {"dg", Why::Compulsory, keys * f32}},
               // The matrices' gradients by every slice; of each row two products with them and one with a state.
               p.slots() * (p.slices() * 4 * product(C, C, p.V) + 8 * product(C, p.K, C) + 4 * product(C, p.K, p.V))};
  if (p.saved)
    return {chains, valueGrads, grads};
  return {maps, chains, valueGrads, grads};
}

Count sumOf(const std::vector<Term> &terms, std::optional<Why> why = {}) {
  Count out = 0;
  for (const Term &term : terms)
    out += !why || term.why == *why ? term.bytes : 0;
  return out;
}
Count bytesOf(const std::vector<Launch> &launches, std::optional<Why> why = {}) {
  Count out = 0;
  for (const Launch &launch : launches)
    out += sumOf(launch.reads, why) + sumOf(launch.writes, why);
  return out;
}
std::string textOf(const std::vector<Term> &terms) {
  std::string out;
  for (const Term &term : terms)
    out += std::string(out.empty() ? "" : " + ") + std::to_string(term.bytes) + " (" + term.what + ")";
  return out;
}

/// Of one program, for each chunk that it works on.  No closed form: they follow from the layouts that the compiler
/// chooses.  Nothing is worse by accident: a change that moves one of these changes it here.
struct OfTarget {
  Count barriers;
  Count conflicts; ///< wavefronts in shared memory that bank conflicts add
  /// Of instructions left out because nothing reads what they make: a quarter of A_ab is above the diagonal, and may
  /// have registers of its own.
  Count hiddenFlops = 0;
};
struct OfProgram {
  std::string_view kernel;
  Count K, blockV;
  OfTarget sm80, sm90a;
  bool saved = false;
};
/// Conflicts: everywhere where the running sums of gates are taken from a chunk's halves (Decay::Decay); on sm_90a also
/// where gated rows are stored for products of warpgroups in tf32 (Decay::products), and of wide heads v (writeMap) and
/// of gradients rows that products with states take.
constexpr OfProgram ofPrograms[] = {
    {"dplr_maps", 64, 0, {31, 160}, {35, 672}},
    {"dplr_maps", 128, 0, {70, 832}, {58, 1984}},
    {"dplr_out", 64, 16, {1, 0}, {1, 0}},
    {"dplr_out", 64, 64, {4, 0}, {4, 0}},
    {"dplr_out", 128, 16, {1, 0}, {1, 0}},
    {"dplr_maps_backward", 64, 0, {35, 160, 131072}, {39, 672}},
    {"dplr_maps_backward", 128, 0, {68, 832}, {62, 1984}},
    {"dplr_chains", 64, 16, {1, 0}, {1, 0}},
    {"dplr_chains", 64, 64, {4, 0}, {3, 0}},
    {"dplr_chains", 128, 16, {6, 0}, {6, 0}},
    {"dplr_value_grads", 64, 0, {14, 160}, {19, 160}},
    {"dplr_value_grads", 128, 0, {26, 384}, {27, 384}},
    {"dplr_grads", 64, 0, {55, 256}, {45, 384}},
    {"dplr_grads", 128, 0, {56, 320}, {49, 576}},
    {"dplr_maps", 64, 0, {33, 160}, {37, 672}, true},
    {"dplr_maps", 128, 0, {72, 832}, {61, 1984}, true},
    {"dplr_out", 64, 16, {1, 0}, {1, 0}, true},
    {"dplr_out", 128, 16, {1, 0}, {1, 0}, true},
    {"dplr_chains", 64, 16, {1, 0}, {1, 0}, true},
    {"dplr_chains", 128, 16, {4, 0}, {4, 0}, true},
};

class DplrCounters : public testing::TestWithParam<std::size_t> {
protected:
  void SetUp() override {
    on = openedDevice(deviceNames()[GetParam()]);
    ASSERT_TRUE(on);
    if (!on->emulated())
      GTEST_SKIP() << "a GPU counts nothing";
  }

  std::string target() const { return deviceNames()[GetParam()]; }
  /// Whether `ofPrograms` has this target.
  bool hasNumbers() const { return target().ends_with("sm_80") || target().ends_with("sm_90a"); }

  void check(const char *name, const Problem &p, const std::vector<Launch> &wanted) {
    SCOPED_TRACE(target() + ": " + name + " " + p.text() + (p.saved ? " saved" : ""));
    const Family &family = familyOf(name);
    OptionValues options{{"lower_bound", -0.60653067}};
    Sample sample;
    if (p.saved && family.name() == "rwkv7")
      options["saved"] = true;
    else if (p.saved)
      sample.made = {"saved"};
    TensorTypes types;
    for (const char *key : {"r", "k", "a", "b"})
      types[key] = {DType::BF16, {p.B, p.T, p.H, p.K}};
    types["w"] = {DType::F32, {p.B, p.T, p.H, p.K}};
    types["v"] = {DType::BF16, {p.B, p.T, p.H, p.V}};
    if (family.name() == "rwkv7_backward")
      types["do"] = types["v"];
    Count compulsory = 0;
    const auto outputs = family.callable->outputs(types, options);
    ASSERT_TRUE(outputs.ok()) << outputs.status().toString();
    for (const TensorTypes &tensors : {types, *outputs})
      for (const auto &[tensor, type] : tensors)
        compulsory += tensor == "saved" ? 0 : type.elements() * dtypeBytes(type.dtype);
    sample.inputs = types, sample.options = options;
    const auto inputs = sampleInputs(*on->jit, family, sample, 5);
    ASSERT_TRUE(inputs.ok()) << inputs.status().toString();

    on->device->takeCounters();
    ASSERT_TRUE(on->device->record({.counters = true}).ok());
    const auto ran = runCall(*on->jit, *family.callable, *inputs, options);
    EXPECT_TRUE(on->device->record({}).ok());
    ASSERT_TRUE(ran.ok()) << ran.status().toString();
    const std::vector<LaunchCounters> got = on->device->takeCounters();
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      checkLaunch(p, wanted[i], got[i]);
    EXPECT_EQ(bytesOf(wanted, Why::Compulsory), compulsory) << "every tensor once";
  }

  void checkLaunch(const Problem &p, const Launch &wanted, const LaunchCounters &got) {
    SCOPED_TRACE(wanted.kernel);
    EXPECT_EQ(got.kernel, wanted.kernel);
    EXPECT_EQ(Count(got.grid[0]) * got.grid[1] * got.grid[2], wanted.programs);
    EXPECT_EQ(got.block[0], 32 * wanted.warps);
    const Counts &c = got.total;
    const auto bytesOf = [&](AccessKind kind) { return c.global[static_cast<unsigned>(kind)].bytes; };
    EXPECT_EQ(bytesOf(AccessKind::Load) + bytesOf(AccessKind::Copy), sumOf(wanted.reads)) << textOf(wanted.reads);
    EXPECT_EQ(bytesOf(AccessKind::Store), sumOf(wanted.writes)) << textOf(wanted.writes);
    for (const AccessKind kind : {AccessKind::Atomic, AccessKind::BulkLoad, AccessKind::BulkStore})
      EXPECT_EQ(c.global[static_cast<unsigned>(kind)].requests, 0u) << accessKindName(kind);
    EXPECT_EQ(c.localRequests, 0u) << "registers are spilled";
    const Count visits = wanted.programs * wanted.visits;
    const auto known = std::ranges::find_if(ofPrograms, [&](const OfProgram &x) {
      return x.kernel == wanted.kernel && x.K == p.K && (x.blockV == 0 || x.blockV == p.blockV) &&
             x.saved == wanted.ownNumbers;
    });
    ASSERT_NE(known, std::end(ofPrograms));
    if (!hasNumbers())
      return;
    const OfTarget &own = target().ends_with("sm_80") ? known->sm80 : known->sm90a;
    EXPECT_EQ(c.barriers, own.barriers * visits * wanted.warps) << "of " << visits * wanted.warps;
    EXPECT_EQ(c.sharedTotal().conflicts, own.conflicts * visits) << "of " << visits;
    EXPECT_EQ(c.matrixFlops, wanted.flops - own.hiddenFlops * visits) << "of " << visits;
  }

  Opened *on = nullptr;
};

TEST_P(DplrCounters, AreAsStated) {
  // Whole chunks, one that is cut, one head and several, two batches.  Few sequences times heads: parts of 16 columns.
  std::vector<Problem> problems{{1, 150, 1, 128, 128, 16}, {2, 70, 1, 64, 64, 16}};
  if (!hasNumbers() && !isFullTier()) // one on each of the others
    problems.erase(problems.begin() + (GetParam() / 2 ? 0 : 1));
  if (hasNumbers() || isFullTier())
    problems.insert(problems.end(), {{1, 128, 1, 64, 64, 16}, {1, 150, 2, 64, 64, 16}, {1, 128, 1, 128, 128, 16}});
  // So many that parts of 64 columns keep every multiprocessor busy.
  if (target().ends_with("sm_90a") || isFullTier())
    problems.push_back({1, 33, on->device->info().multiprocessors, 64, 64, 64});
  if (hasNumbers() || isFullTier())
    for (Problem p : {Problem{1, 150, 1, 128, 128, 16}, {1, 150, 2, 64, 64, 16}}) {
      p.saved = true;
      problems.push_back(p);
    }
  for (Problem p : problems) {
    p.stagesOut = p.K <= 64 || hasNumbers();
    check("rwkv7", p, forward(p));
    check("rwkv7_backward", p, backward(p));
  }
}

/// The table of kernels/dplr/README.md.
TEST(DplrBytes, OfTheReadme) {
  struct Row {
    Count D;
    bool isForward;
    Count compulsory, again, workspace;
    bool saved = false;
  };
  for (const Row &row : {Row{64, true, 1024, 512, 1032},
                         {128, true, 2048, 1536, 3864},
                         {64, false, 1920, 3840, 3212},
                         {128, false, 3840, 8960, 10280},
                         {64, true, 1024, 512, 1672, true},
                         {128, true, 2048, 1536, 4888, true},
                         {64, false, 1920, 2432, 1924, true},
                         {128, false, 3840, 5376, 6160, true}}) {
    const Problem p{1, 1 << 20, 1, row.D, row.D, 64, true, row.saved};
    const std::vector<Launch> launches = row.isForward ? forward(p) : backward(p);
    const auto ofToken = [&](Why why) { return (bytesOf(launches, why) + p.rows() / 2) / p.rows(); };
    EXPECT_EQ(ofToken(Why::Compulsory), row.compulsory);
    EXPECT_EQ(ofToken(Why::Again), row.again);
    EXPECT_EQ(ofToken(Why::Workspace), row.workspace);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DplrCounters, testing::Range<std::size_t>(0, deviceNames().size()),
                         [](const auto &info) { return testName(deviceNames()[info.param]); });

} // namespace
} // namespace kiln::test
