// `kiln run attention_decode`: a step over a cache in one piece and in pages, against float64; what it refuses.
#include "tests/cli/Arrays.h"
#include "tests/cli/Program.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace kiln::test {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

/// One new token of each sequence.
struct Step {
  std::uint64_t B = 2, H = 4, Hk = 2, D = 16, room = 12, page = 4;
  std::vector<double> lengths = {5, 9};
  std::vector<double> q = normals(B * H * D, 1), k = normals(B * room * Hk * D, 2), v = normals(B * room * Hk * D, 3),
                      kNew = normals(B * Hk * D, 4), vNew = normals(B * Hk * D, 5);
  std::vector<double> table = {4, 0, 3, 1, 5, 2}; ///< pages of the first sequence, then of the second

  /// A cache with the new rows, in one piece.
  std::vector<double> after(std::vector<double> cache, const std::vector<double> &rows) const {
    for (std::uint64_t b = 0; b < B; ++b)
      std::copy_n(rows.begin() + at(b * Hk * D), Hk * D,
                  cache.begin() + at((b * room + static_cast<std::uint64_t>(lengths[b])) * Hk * D));
    return cache;
  }
  std::vector<double> inPages(const std::vector<double> &cache) const {
    std::vector<double> out(cache.size());
    const std::uint64_t size = page * Hk * D;
    for (std::size_t n = 0; n < table.size(); ++n)
      std::copy_n(cache.begin() + at(n * size), size, out.begin() + at(static_cast<std::uint64_t>(table[n]) * size));
    return out;
  }
  std::vector<double> o() const {
    const std::vector<double> keys = after(k, kNew), values = after(v, vNew);
    std::vector<double> out(q.size());
    for (std::uint64_t b = 0; b < B; ++b)
      for (std::uint64_t h = 0; h < H; ++h) {
        double total = 0;
        for (std::uint64_t j = 0; j <= static_cast<std::uint64_t>(lengths[b]); ++j) {
          const std::uint64_t row = ((b * room + j) * Hk + h / (H / Hk)) * D;
          double x = 0;
          for (std::uint64_t d = 0; d < D; ++d)
            x += q[(b * H + h) * D + d] * keys[row + d] / 4; // 1 / sqrt(16)
          total += std::exp(x);
          for (std::uint64_t d = 0; d < D; ++d)
            out[(b * H + h) * D + d] += std::exp(x) * values[row + d];
        }
        for (std::uint64_t d = 0; d < D; ++d)
          out[(b * H + h) * D + d] /= total;
      }
    return out;
  }

private:
  static std::ptrdiff_t at(std::uint64_t n) { return static_cast<std::ptrdiff_t>(n); }
};

class RunAttentionDecodeCliTest : public CliTest {
protected:
  void SetUp() override {
    setenv("KILN_CACHE_DIR", file("cache").c_str(), 1);
    q = save("q.npy", {s.B, 1, s.H, s.D}, s.q), kNew = save("k_new.npy", {s.B, 1, s.Hk, s.D}, s.kNew);
    vNew = save("v_new.npy", {s.B, 1, s.Hk, s.D}, s.vNew);
    k = save("k.npy", {s.B, s.room, s.Hk, s.D}, s.k), v = save("v.npy", {s.B, s.room, s.Hk, s.D}, s.v);
    lengths = save("lengths.npy", {s.B}, s.lengths, DType::I32);
    table = save("table.npy", {s.B, s.room / s.page}, s.table, DType::I32);
    pagedK = save("pk.npy", {s.table.size(), s.page, s.Hk, s.D}, s.inPages(s.k));
    pagedV = save("pv.npy", {s.table.size(), s.page, s.Hk, s.D}, s.inPages(s.v));
  }
  void TearDown() override { unsetenv("KILN_CACHE_DIR"); }
  std::string save(const std::string &name, const Shape &shape, const std::vector<double> &values,
                   DType type = DType::F16) {
    return saveArray(file(name), type, shape, values);
  }
  Words step(const std::string &k, const std::string &v, const Words &more = {}) const {
    Words out = {"run", "attention_decode", "--target", "sm_80",   "--q", q,          "--k-cache",  k, "--v-cache",
                 v,     "--k-new",          kNew,       "--v-new", vNew,  "--output", file("o.npy")};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }

  Step s;
  std::string q, k, v, kNew, vNew, lengths, table, pagedK, pagedV;
};

TEST_F(RunAttentionDecodeCliTest, AStepAgreesWithFloat64AndKeepsItsRows) {
  const std::vector<double> wanted = s.o();
  for (const bool paged : {false, true}) {
    Words more = {"--cache-seqlens", lengths, "--k-cache-after", file("after.npy")};
    if (paged)
      more.insert(more.end(), {"--page-table", table});
    const Outcome out = kiln(step(paged ? pagedK : k, paged ? pagedV : v, more));
    ASSERT_EQ(out.status, 0) << out.out << out.err;
    const std::vector<double> got = valuesOf(file("o.npy"));
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], wanted[i], 4e-3) << i;
    Shape shape;
    const std::vector<double> after = valuesOf(file("after.npy"), &shape);
    EXPECT_EQ(shape, paged ? Shape({s.table.size(), s.page, s.Hk, s.D}) : Shape({s.B, s.room, s.Hk, s.D}));
    const std::vector<double> rows = s.after(s.k, s.kNew), kept = paged ? s.inPages(rows) : rows;
    const Array rounded = arrayFrom(DType::F16, {kept.size()}, kept);
    for (std::size_t i = 0; i < kept.size(); ++i)
      ASSERT_EQ(after[i], loadElement(&rounded.data[2 * i], DType::F16)) << i;
  }
}

TEST_F(RunAttentionDecodeCliTest, SplitsGiveTheSame) {
  std::vector<double> got[2];
  for (const char *splits : {"1", "2"}) {
    const Outcome out = kiln(step(k, v, {"--cache-seqlens", lengths, "--splits", splits, "--causal"}));
    ASSERT_EQ(out.status, 0) << out.out << out.err;
    EXPECT_NE(out.out.find(*splits == '1' ? "1 compiled" : "2 compiled"), std::string::npos) << out.out;
    got[*splits - '1'] = valuesOf(file("o.npy"));
  }
  for (std::size_t i = 0; i < got[0].size(); ++i)
    ASSERT_NEAR(got[0][i], got[1][i], 2e-3) << i;
}

/// Tables of benchmarks fit the other inputs; one that cannot is refused by its entry.
TEST_F(RunAttentionDecodeCliTest, BenchesTakeTables) {
  const auto bench = [](const Words &tables) {
    Words out = {"bench",     "attention_decode",
                 "--dtype",   "e4m3",
                 "--target",  "sm_80",
                 "--samples", "1",
                 "--batch",   "1",
                 "--with",    "q=3x2x4x32",
                 "--with",    "k_cache=13x16x2x32",
                 "--with",    "v_cache=13x16x2x32",
                 "--with",    "v_descale=3x2"};
    for (const std::string &table : tables)
      out.insert(out.end(), {"--with", table});
    return out;
  };
  const Outcome out = kiln(bench({"page_table=3x4", "cache_seqlens=3"}));
  EXPECT_EQ(out.status, 0) << out.err;
  EXPECT_NE(out.out.find("good"), std::string::npos) << out.out;
  const Outcome wrong = kiln(bench({"page_table=3x5"}));
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE(wrong.err.find("page_table[12] = 13: the cache has 13 pages"), std::string::npos) << wrong.err;
  // Causal: 1 of 2 tokens does not see the last key.
  const Outcome counted = kiln({"bench", "attention_decode", "--dtype", "f16", "--target", "sm_80", "--samples", "1",
                                "--batch", "1", "--with", "q=1x2x4x32", "--with", "k_cache=1x16x2x32", "--with",
                                "v_cache=1x16x2x32", "--with", "causal", "--json"});
  ASSERT_EQ(counted.status, 0) << counted.err;
  EXPECT_EQ(Json::parse(counted.out)["results"].back()["flops"], 2.0 * (2 * 16 - 2) * 4 * 64);
}

TEST_F(RunAttentionDecodeCliTest, WrongTablesAreRefused) {
  const auto refused = [&](const Words &words, const std::string &part) { expectRefused(words, part); };
  const std::string full = save("full.npy", {s.B}, {5, 12}, DType::I32),
                    negative = save("negative.npy", {s.B}, {-1, 3}, DType::I32),
                    wrong = save("wrong.npy", {s.B, 3}, {4, 6, 3, 1, 5, 2}, DType::I32),
                    unused = save("unused.npy", {s.B, 3}, {4, 0, 99, 1, 5, 2}, DType::I32),
                    same = save("same.npy", {s.B}, {1, 1}, DType::I32),
                    three = save("three.npy", {3}, {1, 1, 1}, DType::I32);
  refused(step(k, v, {"--cache-seqlens", full}), "cache_seqlens[1] = 12");
  refused(step(k, v, {"--cache-seqlens", negative}), "cache_seqlens[0] = -1");
  refused(step(k, v, {"--cache-seqlens", three}), "'cache_seqlens'");
  refused(step(k, v, {"--cache-seqlens", lengths, "--cache-batch-idx", same}), "cache_batch_idx[1] = 1");
  refused(step(pagedK, pagedV, {"--cache-seqlens", lengths, "--page-table", wrong}), "page_table[1] = 6");
  refused(step(k, v), "cache_seqlens");
  refused(step(k, v, {"--cache-seqlens", lengths, "--splits", "300"}), "splits = 300");
  refused(step(k, pagedV, {"--cache-seqlens", lengths}), "'v_cache'");
  refused({"run", "attention_decode", "--target", "sm_80", "--q", q, "--output", file("o.npy")}, "--k-cache");
  // A page without a row that counts may be anything: the first sequence has six rows.
  const Outcome out = kiln(step(pagedK, pagedV, {"--cache-seqlens", lengths, "--page-table", unused}));
  EXPECT_EQ(out.status, 0) << out.out << out.err;
}

} // namespace
} // namespace kiln::test
