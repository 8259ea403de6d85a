#include "tests/emulator/ClusterPrograms.h"

#include <algorithm>

namespace kiln::test {

using U32 = std::uint32_t;

PlaceInCluster placeInCluster(std::uint64_t linear, const ClusterShape &s) {
  const Dim3 g = s.grid, c = s.cluster;
  const Dim3 at{static_cast<U32>(linear % g.x), static_cast<U32>(linear / g.x % g.y),
                static_cast<U32>(linear / g.x / g.y)};
  const Dim3 in{at.x % c.x, at.y % c.y, at.z % c.z};
  return {{at.x / c.x, at.y / c.y, at.z / c.z}, in, in.x + c.x * (in.y + c.y * in.z)};
}

U32 blockOfRank(const PlaceInCluster &w, U32 rank, const ClusterShape &s) {
  const Dim3 g = s.grid, c = s.cluster;
  const U32 x = w.cluster.x * c.x + rank % c.x, y = w.cluster.y * c.y + rank / c.x % c.y,
            z = w.cluster.z * c.z + rank / c.x / c.y;
  return (z * g.y + y) * g.x + x;
}

std::vector<ClusterShape> clusterShapes() {
  return {{{3}, {1}, {32}},
          {{4}, {2}, {64}},
          {{8}, {4}, {96}},
          {{16}, {8}, {32}},
          {{16}, {16}, {33}},
          {{4, 2}, {2, 2}, {64}},
          {{2, 6}, {1, 3}, {40}},
          {{4, 4, 2}, {2, 2, 2}, {32}},
          {{2, 2, 8}, {1, 1, 8}, {64}},
          {{4, 4, 4}, {4, 1, 4}, {32}},
          {{6, 2, 3}, {3, 1, 1}, {50}},
          {{5, 4}, {5, 2}, {32}}};
}

namespace {

/// A program whose threads store value(block, thread).
template <typename Fn>
ClusterProgram program(std::string name, std::string body, const ClusterShape &shape, Fn value,
                       std::string directives = "") {
  ClusterProgram p{std::move(name), std::move(body), shape, {}, std::move(directives)};
  for (U32 b = 0; b < shape.grid.count(); ++b)
    for (U32 t = 0; t < shape.block.x; ++t)
      p.expected.push_back(value(b, t));
  return p;
}

/// Every thread reads the words of thread t of all blocks of its cluster.
constexpr char exchange[] = R"(
    mad.lo.u32 %r20, %r12, 1000, %r2; st.shared.u32 [%r4], %r20;
    barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
    mov.u32 %r21, 0; mov.u32 %r22, 0;
  LOOP: mapa.shared::cluster.u32 %r23, %r4, %r22; ld.shared::cluster.u32 %r24, [%r23];
    add.u32 %r25, %r22, 1; mad.lo.u32 %r21, %r24, %r25, %r21; add.u32 %r22, %r22, 1;
    setp.lt.u32 %p1, %r22, %r11; @%p1 bra LOOP;
    st.global.u32 [%rd2], %r21;
    barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;
)";

/// Lanes of a warp go to different blocks at once, through generic addresses and .shared::cluster ones.
constexpr char addresses[] = R"(
    st.shared.u32 [%r4], %r12; barrier.cluster.arrive; barrier.cluster.wait;
    rem.u32 %r20, %r2, %r11; cvt.u64.u32 %rd10, %r4; cvta.shared.u64 %rd11, %rd10; mapa.u64 %rd12, %rd11, %r20; ld.u32 %r21, [%rd12];
    getctarank.u64 %r22, %rd12; setp.ne.u32 %p1, %r22, %r20; @%p1 trap;
    isspacep.shared::cta %p2, %rd12; setp.eq.u32 %p3, %r20, %r10; xor.pred %p2, %p2, %p3; @%p2 trap;
    isspacep.shared::cluster %p2, %rd12; @!%p2 trap; mapa.u64 %rd14, %rd11, 11; isspacep.shared::cluster %p2, %rd14; @!%p2 trap; isspacep.shared::cta %p2, %rd14; @%p2 trap;
    mapa.shared::cluster.u32 %r23, %r4, %r20; getctarank.shared::cluster.u32 %r24, %r23; setp.ne.u32 %p1, %r24, %r20; @%p1 trap;
    cvta.to.shared::cluster.u64 %rd13, %rd12; cvt.u32.u64 %r25, %rd13; setp.ne.u32 %p1, %r25, %r23; @%p1 trap;
    ld.shared::cluster.u32 %r26, [%r23]; setp.ne.u32 %p1, %r26, %r21; @%p1 trap;
    mov.u32 %r29, tile; getctarank.shared::cluster.u32 %r27, %r29; setp.ne.u32 %p1, %r27, %r10; @%p1 trap;
    ld.shared::cta.u32 %r28, [%r4]; setp.ne.u32 %p1, %r28, %r12; @%p1 trap;
    st.global.u32 [%rd2], %r21; barrier.cluster.arrive; barrier.cluster.wait;
)";

/// A counter in rank 0, a vector store into the next block.
constexpr char atomics[] = R"(
    setp.eq.u32 %p1, %r2, 0; @%p1 st.shared.u32 [tile+2048], 0; barrier.cluster.arrive; barrier.cluster.wait;
    mov.u32 %r20, tile; add.u32 %r20, %r20, 2048; mapa.shared::cluster.u32 %r20, %r20, 0;
    atom.shared::cluster.add.u32 %r21, [%r20], 3; red.relaxed.cluster.shared::cluster.max.u32 [%r20], 1;
    add.u32 %r22, %r10, 1; rem.u32 %r22, %r22, %r11; shl.b32 %r23, %r2, 4; mov.u32 %r24, tile; add.u32 %r23, %r24, %r23; mapa.shared::cluster.u32 %r23, %r23, %r22;
    st.shared::cluster.v4.u32 [%r23], {%r10, %r2, %r10, %r2};
    barrier.cluster.arrive; barrier.cluster.wait;
    ld.shared::cluster.u32 %r25, [%r20]; shl.b32 %r23, %r2, 4; add.u32 %r23, %r24, %r23; ld.shared.v4.u32 {%r26, %r27, %r28, %r29}, [%r23];
    mad.lo.u32 %r25, %r25, 1000, %r26; mad.lo.u32 %r25, %r25, 1000, %r29; st.global.u32 [%rd2], %r25;
    barrier.cluster.arrive; barrier.cluster.wait;
)";

/// Warps leave at different times; those left go on meeting, in phases that split arrival and wait.
constexpr char raggedExits[] = R"(
    setp.eq.u32 %p1, %r2, 0; @%p1 st.shared.u32 [tile+2048], 0; bar.sync 0;
    shr.u32 %r3, %r2, 5; add.u32 %r20, %r3, %r10; and.b32 %r20, %r20, 3; add.u32 %r20, %r20, 1; mov.u32 %r21, 0; mov.u32 %r22, 0;
  LOOP: setp.ge.u32 %p1, %r22, %r20; @%p1 bra DONE;
    atom.shared.add.u32 %r23, [tile+2048], 1;
    barrier.cluster.arrive.aligned; add.u32 %r21, %r21, 1; barrier.cluster.wait.aligned;
    add.u32 %r22, %r22, 1; bra LOOP;
  DONE: st.global.u32 [%rd2], %r21;
)";

ClusterProgram specialRegisters(const ClusterShape &s) {
  static constexpr const char *names[] = {
      "%clusterid.x",      "%clusterid.y",      "%clusterid.z",     "%nclusterid.x",    "%nclusterid.y",
      "%nclusterid.z",     "%cluster_ctaid.x",  "%cluster_ctaid.y", "%cluster_ctaid.z", "%cluster_nctaid.x",
      "%cluster_nctaid.y", "%cluster_nctaid.z", "%cluster_ctarank", "%cluster_nctarank"};
  std::string body;
  unsigned i = 0;
  for (const char *name : names)
    body += "setp.eq.u32 %p1, %r2, " + std::to_string(i++) + "; @%p1 mov.u32 %r20, " + name + ";\n";
  body += "setp.eq.u32 %p1, %r2, 14; mov.pred %p2, %is_explicit_cluster; selp.u32 %r21, 1, 0, %p2; @%p1 mov.u32 %r20, "
          "%r21;\nsetp.lt.u32 %p1, %r2, 15; @%p1 st.global.u32 [%rd2], %r20;";
  ClusterShape shape = s;
  shape.block = {32};
  return program("SpecialRegisters", body, shape, [&](U32 b, U32 t) {
    const PlaceInCluster w = placeInCluster(b, s);
    const Dim3 g = s.grid, c = s.cluster, in = w.inCluster;
    const U32 values[] = {w.cluster.x,
                          w.cluster.y,
                          w.cluster.z,
                          g.x / c.x,
                          g.y / c.y,
                          g.z / c.z,
                          in.x,
                          in.y,
                          in.z,
                          c.x,
                          c.y,
                          c.z,
                          w.rank,
                          static_cast<U32>(c.count()),
                          1};
    return t < std::size(values) ? values[t] : notStored;
  });
}

} // namespace

std::vector<ClusterProgram> memoryPrograms() {
  std::vector<ClusterProgram> out;
  for (const ClusterShape &s : clusterShapes()) {
    out.push_back(program("Exchange", exchange, s, [&](U32 b, U32 t) {
      U32 sum = 0;
      for (U32 r = 0; r < s.cluster.count(); ++r)
        sum += (blockOfRank(placeInCluster(b, s), r, s) * 1000 + t) * (r + 1);
      return sum;
    }));
    out.push_back(specialRegisters(s));
  }
  const ClusterShape eight{{8, 2}, {4, 2}, {96}};
  out.push_back(program("Addresses", addresses, eight,
                        [&](U32 b, U32 t) { return blockOfRank(placeInCluster(b, eight), t % 8, eight); }));
  out.push_back(program("Atomics", atomics, {{8}, {4}, {64}},
                        [](U32 b, U32 t) { return (4u * 64 * 3 * 1000 + (b + 3) % 4) * 1000 + t; }));
  for (const ClusterShape &s : {ClusterShape{{4}, {2}, {128}}, eight, ClusterShape{{16}, {16}, {160}}})
    out.push_back(program("RaggedExits", raggedExits, s,
                          [&](U32 b, U32 t) { return ((t / 32 + placeInCluster(b, s).rank) & 3) + 1; }));
  return out;
}

std::string withBarrier(unsigned count, const std::string &body) {
  return "mov.u32 %r40, bar; setp.ne.u32 %p10, %r2, 0; @!%p10 mbarrier.init.shared.b64 [%r40], " +
         std::to_string(count) + R"(;
    fence.mbarrier_init.release.cluster; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    add.u32 %r41, %r10, 1; rem.u32 %r41, %r41, %r11; mapa.shared::cluster.u32 %r42, %r40, %r41;
)" + body +
         "\nbarrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;\n";
}

const std::string waitForBar =
    "WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r40], 0; @!%p1 bra WAIT;\n";

namespace {

/// Each block writes into the next one and arrives there; everybody waits for its own.
void addArrivals(std::vector<ClusterProgram> &out) {
  const std::string generic = "cvt.u64.u32 %rd10, %r42; cvta.shared::cluster.u64 %rd10, %rd10; ";
  const std::string arrivals[] = {
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r42];\n",
      "mbarrier.arrive.shared::cluster.b64 _, [%r42];\n",
      "fence.acq_rel.cluster; mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r42];\n",
      generic + "mbarrier.arrive.release.cluster.b64 _, [%rd10];\n",
      "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r42], 4; "
      "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r42], 4;\n"};
  for (const std::string &arrive : arrivals)
    for (const ClusterShape &s : {ClusterShape{}, ClusterShape{{8}, {4}, {64}}}) {
      const U32 n = s.cluster.x;
      out.push_back(program("RemoteArrival",
                            withBarrier(64, R"(
    mapa.shared::cluster.u32 %r20, %r4, %r41; mad.lo.u32 %r21, %r10, 100, %r2; st.shared::cluster.u32 [%r20], %r21;
    )" + arrive + waitForBar +
                                                R"(xor.b32 %r22, %r5, 252; mov.u32 %r23, tile;
    add.u32 %r22, %r22, %r23; ld.shared.u32 %r24, [%r22]; st.global.u32 [%rd2], %r24;)"),
                            s, [&](U32 b, U32 t) { return (b % n + n - 1) % n * 100 + (t ^ 63); }));
    }
}

/// Thread t writes `words` words from t * words on; what it reads back is the last of them.
void addStores(std::vector<ClusterProgram> &out) {
  struct Form {
    const char *text, *value;
    unsigned words;
  };
  constexpr Form forms[] = {{"b32", "%r30", 1},
                            {"u32", "%r30", 1},
                            {"f32", "%f1", 1},
                            {"b64", "%rd30", 2},
                            {"s64", "%rd30", 2},
                            {"v2.b32", "{%r30, %r31}", 2},
                            {"v2.u64", "{%rd30, %rd31}", 4},
                            {"v4.u32", "{%r30, %r31, %r32, %r33}", 4}};
  for (const Form &f : forms)
    for (const char *weak : {"", ".weak"}) {
      const std::string bytes = std::to_string(f.words * 4);
      out.push_back(program(std::string("StoreAsync ") + f.text,
                            withBarrier(1, "@!%p10 mbarrier.arrive.expect_tx.shared.b64 _, [%r40], " +
                                               std::to_string(f.words * 256) + R"(;
    mad.lo.u32 %r30, %r10, 1000, %r2; add.u32 %r31, %r30, 10000; add.u32 %r32, %r30, 20000; add.u32 %r33, %r30, 30000;
    mov.b32 %f1, %r30; mov.b64 %rd30, {%r30, %r31}; mov.b64 %rd31, {%r32, %r33};
    mov.u32 %r20, tile; mad.lo.u32 %r21, %r2, )" +
                                               bytes +
                                               R"(, %r20; mapa.shared::cluster.u32 %r22, %r21, %r41;
    st.async)" + weak + ".shared::cluster.mbarrier::complete_tx::bytes." +
                                               f.text + " [%r22], " + f.value + ", [%r42];\n" + waitForBar +
                                               "ld.shared.u32 %r24, [%r21+" + std::to_string(f.words * 4 - 4) +
                                               "]; st.global.u32 [%rd2], %r24;"),
                            {}, [&](U32 b, U32 t) { return (1 - b) * 1000 + t + (f.words - 1) * 10000; }));
    }
  // Lane l of each block writes into rank l % 4; 16 lanes of each of 4 blocks and 4 bytes: 256 bytes a block.
  out.push_back(program("StoreAsync to several blocks",
                        withBarrier(1, R"(@!%p10 mbarrier.arrive.expect_tx.shared.b64 _, [%r40], 256;
    and.b32 %r20, %r2, 3; mov.u32 %r21, tile; shl.b32 %r22, %r10, 6; add.u32 %r21, %r21, %r22; shr.u32 %r22, %r2, 2; shl.b32 %r22, %r22, 2; add.u32 %r21, %r21, %r22;
    cvt.u64.u32 %rd10, %r21; cvta.shared.u64 %rd10, %rd10; mapa.u64 %rd10, %rd10, %r20; cvt.u64.u32 %rd11, %r40; cvta.shared.u64 %rd11, %rd11; mapa.u64 %rd11, %rd11, %r20;
    mad.lo.u32 %r23, %r10, 100, %r2; st.async.mbarrier::complete_tx::bytes.u32 [%rd10+0], %r23, [%rd11];
    )" + waitForBar + "ld.shared.u32 %r24, [%r4]; st.global.u32 [%rd2], %r24;"),
                        {{4}, {4}, {64}}, [](U32 b, U32 w) { return w / 16 * 100 + w % 16 * 4 + b; }));
}

void addReductions(std::vector<ClusterProgram> &out) {
  using U = std::uint64_t;
  struct Case {
    const char *op;
    U initial, operand; ///< every lane's operand is this plus its number, or this: the order does not matter then
    U (*apply)(U, U);
    bool same = false, wide = false;
  };
  const Case cases[] = {
      {"add.u32", 0xFFFFFFF0u, 5, [](U a, U b) { return U(U32(a + b)); }},
      {"add.s32", 7, 0xFFFFFF00u, [](U a, U b) { return U(U32(a + b)); }},
      {"add.u64", 0xFFFFFFFFull, 0xFFFFFFFFull, [](U a, U b) { return a + b; }, false, true},
      {"min.u32", 0x80000000u, 3, [](U a, U b) { return std::min(a, b); }},
      {"max.u32", 2, 0x90000000u, [](U a, U b) { return std::max(a, b); }},
      {"min.s32", 5, 0xFFFFFF00u, [](U a, U b) { return U(U32(std::min(std::int32_t(a), std::int32_t(b)))); }},
      {"max.s32", 0xFFFFFF00u, 3, [](U a, U b) { return U(U32(std::max(std::int32_t(a), std::int32_t(b)))); }},
      {"and.b32", 0xFFFFFFFFu, 0xFFFF0000u, [](U a, U b) { return a & b; }},
      {"or.b32", 0, 0xF00, [](U a, U b) { return a | b; }},
      {"xor.b32", 0xABCD, 0xF0F0, [](U a, U b) { return a ^ b; }},
      {"inc.u32", 3, 40, [](U a, U) { return a >= 40 ? 0 : a + 1; }, true},
      {"dec.u32", 3, 40, [](U a, U) { return a == 0 || a > 40 ? 40 : a - 1; }, true},
  };
  for (const Case &c : cases) {
    const std::string reg = c.wide ? "%rd20" : "%r20";
    const std::string body =
        "mov.u32 %r21, tile; mov.u64 %rd20, " + std::to_string(c.initial) + "; cvt.u32.u64 %r20, %rd20;\n" +
        "setp.ne.u32 %p11, %r2, 0; @!%p11 st.shared." + (c.wide ? "u64" : "u32") + " [%r21], " + reg + ";\n" +
        withBarrier(1, "@!%p10 mbarrier.arrive.expect_tx.shared.b64 _, [%r40], " + std::to_string(c.wide ? 512 : 256) +
                           ";\nmov.u64 %rd20, " + std::to_string(c.operand) + "; cvt.u64.u32 %rd21, %r2; " +
                           (c.same ? "" : "add.u64 %rd20, %rd20, %rd21; ") +
                           "cvt.u32.u64 %r20, %rd20; mapa.shared::cluster.u32 %r22, %r21, %r41;\n" +
                           "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes." + c.op +
                           " [%r22], " + reg + ", [%r42];\n" + waitForBar + "ld.shared.u32 %r24, [%r21+" +
                           (c.wide ? "4" : "0") + "]; st.global.u32 [%rd2], %r24;");
    U expected = c.initial;
    for (U t = 0; t < 64; ++t)
      expected = c.apply(expected, c.operand + (c.same ? 0 : t));
    const U32 value = U32(c.wide ? expected >> 32 : expected);
    out.push_back(program(std::string("ReduceAsync ") + c.op, body, {}, [&](U32, U32) { return value; }));
  }
}

} // namespace

std::vector<ClusterProgram> asyncPrograms() {
  std::vector<ClusterProgram> out;
  addArrivals(out);
  addStores(out);
  addReductions(out);
  out.push_back(program(
      "WarpRegisters",
      "setp.lt.u32 %p1, %r2, 128; @%p1 bra PRODUCER;\nsetmaxnreg.inc.sync.aligned.u32 240;\nbra JOIN;\n"
      "PRODUCER: setmaxnreg.dec.sync.aligned.u32 24;\nJOIN: st.global.u32 [%rd2], %r2;",
      {{2}, {1}, {384}}, [](U32, U32 t) { return t; }, ".reqntid 384, 1, 1\n"));
  return out;
}

// --- random ones -----------------------------------------------------------------

ClusterPhases randomPhases(std::mt19937 &random) {
  auto below = [&](U32 n) { return static_cast<U32>(random() % n); };
  static constexpr Dim3 clusters[] = {{1},    {2},    {4},       {8},       {16},      {1, 2},  {2, 2}, {2, 4},
                                      {4, 4}, {3, 2}, {2, 2, 2}, {1, 1, 4}, {2, 1, 8}, {1, 16}, {5},    {7}};
  ClusterPhases c;
  const Dim3 k = clusters[below(std::size(clusters))];
  c.shape = {{k.x * (1 + below(2)), k.y * (1 + below(2)), k.z}, k, {1 + below(128)}};
  const U32 warps = (c.shape.block.x + 31) / 32, n = static_cast<U32>(k.count());
  for (U32 p = 2 + below(4); p; --p) {
    ClusterPhase phase;
    phase.shift = below(n);
    phase.add = 1 + below(1000);
    phase.way = static_cast<RemoteWay>(below(4));
    phase.first = static_cast<ClusterSync>(below(4));
    phase.second = static_cast<ClusterSync>(below(4));
    phase.leaving = below(3) ? 99 : 1 + below(warps); // warp 0 stays
    c.phases.push_back(phase);
  }
  return c;
}

/// `between` stands where a split barrier allows work.
static std::string syncText(ClusterSync s, const std::string &between) {
  switch (s) {
  case ClusterSync::Aligned:
    return "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n" + between;
  case ClusterSync::Unaligned:
    return "barrier.cluster.arrive; barrier.cluster.wait;\n" + between;
  case ClusterSync::Relaxed:
    return "fence.acq_rel.cluster; barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;\n" + between;
  case ClusterSync::Apart:
    return "barrier.cluster.arrive.aligned;\n" + between + "barrier.cluster.wait.aligned;\n";
  }
  return "";
}

/// %r30 sums up what the thread found in its word.
static std::string textOf(const ClusterPhases &c) {
  std::string text =
      "mov.u32 %r30, 0; shr.u32 %r31, %r2, 5; st.shared.u32 [%r4], 0;\n" + syncText(ClusterSync::Aligned, "");
  for (const ClusterPhase &p : c.phases) {
    text += "add.u32 %r32, %r10, " + std::to_string(p.shift) +
            "; rem.u32 %r32, %r32, %r11; mad.lo.u32 %r33, %r12, 7, " + std::to_string(p.add) +
            "; add.u32 %r33, %r33, %r2;\n";
    switch (p.way) {
    case RemoteWay::Shared:
      text += "mapa.shared::cluster.u32 %r34, %r4, %r32; st.shared::cluster.u32 [%r34], %r33;\n";
      break;
    case RemoteWay::Generic:
      text += "cvt.u64.u32 %rd10, %r4; cvta.shared.u64 %rd10, %rd10; mapa.u64 %rd10, %rd10, %r32; st.u32 [%rd10], "
              "%r33;\n";
      break;
    case RemoteWay::Atomic: // old + value
      text += "mapa.shared::cluster.u32 %r34, %r4, %r32; red.relaxed.cluster.shared::cluster.add.u32 [%r34], %r33;\n";
      break;
    case RemoteWay::Own:
      text += "st.shared.u32 [%r4], %r33;\n";
      break;
    }
    text += syncText(p.first, "add.u32 %r35, %r30, %r30;\n");
    text += "ld.shared.u32 %r36, [%r4]; mad.lo.u32 %r30, %r30, 31, %r36;\n";
    text += syncText(p.second, "add.u32 %r35, %r30, 1;\n");
    if (p.leaving != 99)
      text += "setp.eq.u32 %p5, %r31, " + std::to_string(p.leaving) + "; @%p5 bra OUT;\n";
  }
  return text + "OUT: st.global.u32 [%rd2], %r30;\n";
}

ClusterProgram programOf(const ClusterPhases &c) {
  const U32 n = static_cast<U32>(c.shape.cluster.count());
  return program("Phases", textOf(c), c.shape, [&](U32 block, U32 t) { // a thread meets only words of its own number
    const PlaceInCluster w = placeInCluster(block, c.shape);
    std::vector<U32> word(n, 0);
    U32 sum = 0;
    for (const ClusterPhase &p : c.phases) {
      std::vector<U32> next = word;
      for (U32 r = 0; r < n; ++r) {
        const U32 value = blockOfRank(w, r, c.shape) * 7 + p.add + t;
        U32 &to = next[p.way == RemoteWay::Own ? r : (r + p.shift) % n];
        to = p.way == RemoteWay::Atomic ? to + value : value;
      }
      word = next;
      sum = sum * 31 + word[w.rank];
      if (p.leaving == t / 32)
        break;
    }
    return sum;
  });
}

} // namespace kiln::test
