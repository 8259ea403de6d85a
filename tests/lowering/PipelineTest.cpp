// Loops with pipelined loads: what a kernel calculates does not depend on its number of stages.
//
// Random loops over products.  Where the tiles of a round lie is a random expression of the loop's counter, an outer
// loop's counter, a carried number, and numbers loaded from tables (one through the other); loads are of views or of
// pointers, in the loop or in a conditional; tiles lie partly outside.  A loop may store what it has so far, count
// atomically, store into what it loads from, and add tiles that go to no product.  Each loop runs with 1 to 4 stages
// and 0, 1, 2, s - 1, s and s + 1 rounds: the results are equal bit for bit, and the emulator finds nothing.
#include "tests/lowering/LoweringHarness.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>
#include <map>
#include <set>

namespace kiln::test {
namespace {

constexpr int rows = 150, columns = 190, pitch = 208, tableSize = 32, outers = 2;

constexpr int kept = 8; ///< tiles that a loop stores side by side

/// A kernel of two matrices, two tables and a result; %n is its loop's number of rounds; the loop may store to %d, %e.
std::string loopModule(const std::string &body, unsigned warps, unsigned stages) {
  return kernelModule("%a: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %b: !tile.ptr<f16> {tile.divisibility = 16 "
                      ": i32}, %t: !tile.ptr<i32>, %u: !tile.ptr<i32>, %c: !tile.ptr<f32>, %n: i32, "
                      "%d: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %e: !tile.ptr<i32>",
                      body, warps, ", tile.num_stages = " + std::to_string(stages) + " : i32");
}

/// A loop, as text.
class RandomLoop {
public:
  explicit RandomLoop(std::uint64_t seed) : random(seed), others(~seed) {
    m = 16 << below(3);
    n = 16 << below(3);
    k = 16 << below(3);
    warps = 1u << below(3);
    nested = below(3) == 0;
    body();
  }

  std::string text(unsigned stages) const { return loopModule(all, warps, stages); }
  std::size_t results() const { return static_cast<std::size_t>(outers) * m * n; }
  std::size_t stored() const { return static_cast<std::size_t>(kept) * m * n; }
  unsigned numWarps() const { return warps; }
  bool stores() const { return storing; }
  bool changesInput() const { return changing; }

private:
  unsigned below(unsigned bound) { return static_cast<unsigned>(random() % bound); }
  void line(const std::string &s) { all += "    " + s + "\n"; }
  std::string fresh() { return "%x" + std::to_string(next++); }
  std::string make(const std::string &operation) {
    const std::string name = fresh();
    line(name + " = " + operation);
    return name;
  }
  std::string number(std::int64_t v) { return make("arith.constant " + std::to_string(v) + " : i32"); }
  std::string both(const char *op, const std::string &x, const std::string &y) {
    return make(std::string("arith.") + op + " " + x + ", " + y + " : i32");
  }

  /// table[x mod its size].
  std::string lookUp(const char *table, const std::string &x) {
    const std::string at = both("andi", x, number(tableSize - 1));
    return make("tile.load " + make(std::string("tile.addptr ") + table + ", " + at + " : !tile.ptr<i32>, i32") +
                " : !tile.ptr<i32>");
  }

  /// A number that changes from round to round.
  std::string place() {
    std::string x = "%i";
    switch (below(5)) {
    case 0:
      break;
    case 1:
      x = "%p";
      break;
    case 2:
      x = lookUp("%t", below(2) ? "%i" : "%p");
      break;
    case 3: // loads at two depths
      x = lookUp("%u", lookUp("%t", "%i"));
      break;
    default:
      x = both("addi", "%i", "%p");
    }
    if (nested && below(2))
      x = both("addi", x, both("muli", "%o", number(3)));
    return x;
  }
  /// A first row or column of a tile: a multiple of `unit` below 16 * unit.
  std::string coordinate(int unit) { return both("muli", both("andi", place(), number(15)), number(unit)); }

  /// One operand, loaded.
  std::string operand(const std::string &pointer, int height, int width) {
    const std::string shape = std::to_string(height) + "x" + std::to_string(width) + "x";
    constexpr int units[] = {8, 8, 8, 16, 2, 1};
    const std::string row = coordinate(below(2) ? 8 : 1), column = coordinate(units[below(6)]);
    if (below(3)) {
      std::string base = pointer;
      if (below(3) == 0) // made in the loop, at another place each round
        base = make("tile.addptr " + pointer + ", " + both("muli", both("andi", "%i", number(3)), number(pitch)) +
                    " : !tile.ptr<f16>, i32");
      const std::string view =
          make("tile.make_view " + base + ", extents [%rows, %columns], strides [%pitch, %one] : !tile.view<" + shape +
               "f16>, i32");
      return make("tile.load_view " + view + "[" + row + ", " + column + "] : !tile.view<" + shape +
                  "f16>, i32 -> tensor<" + shape + "f16>");
    }
    const auto range = [&](int extent, int axis) {
      const std::string e = std::to_string(extent);
      return make("tile.expand_dims " + make("tile.range 0 to " + e + " : tensor<" + e + "xi32>") +
                  " {axis = " + std::to_string(axis) + " : i32} : tensor<" + e + "xi32> to tensor<" +
                  (axis ? e + "x1" : "1x" + e) + "xi32>");
    };
    const std::string h = std::to_string(height), w = std::to_string(width), tall = "tensor<" + h + "x1xi32>",
                      wide = "tensor<1x" + w + "xi32>", full = "tensor<" + shape + "i32>";
    const std::string down =
        make("arith.addi " + range(height, 1) + ", " + make("tile.splat " + row + " : i32 to " + tall) + " : " + tall);
    const std::string scaled =
        make("arith.muli " + down + ", " + make("tile.splat %pitch : i32 to " + tall) + " : " + tall);
    const std::string across = make("arith.addi " + range(width, 0) + ", " +
                                    make("tile.splat " + column + " : i32 to " + wide) + " : " + wide);
    const std::string offsets =
        make("arith.addi " + make("tile.broadcast " + scaled + " : " + tall + " to " + full) + ", " +
             make("tile.broadcast " + across + " : " + wide + " to " + full) + " : " + full);
    const std::string pointers = "tensor<" + shape + "!tile.ptr<f16>>";
    const std::string at = make("tile.addptr " + make("tile.splat " + pointer + " : !tile.ptr<f16> to " + pointers) +
                                ", " + offsets + " : " + pointers + ", " + full);
    const std::string bound = make("tile.splat %rows : i32 to " + tall);
    const std::string inside = make("tile.broadcast " + make("arith.cmpi slt, " + down + ", " + bound + " : " + tall) +
                                    " : tensor<" + h + "x1xi1> to tensor<" + shape + "i1>");
    return make("tile.load " + at + " mask " + inside + " : " + pointers);
  }

  /// An operand of height x width, perhaps as the transpose of what is loaded.
  std::string factor(const std::string &pointer, int height, int width) {
    const auto type = [](int h, int w) { return "tensor<" + std::to_string(h) + "x" + std::to_string(w) + "xf16>"; };
    if (below(3))
      return operand(pointer, height, width);
    return make("tile.transpose " + operand(pointer, width, height) + " [1, 0] : " + type(width, height) + " to " +
                type(height, width));
  }

  /// Perhaps with a tile added that goes to no product.
  std::string elementwise(const std::string &added, const std::string &sum) {
    if (below(2))
      return added;
    const std::string half = "tensor<" + std::to_string(m) + "x" + std::to_string(n) + "xf16>";
    const std::string wide = make("arith.extf " + operand("%b", m, n) + " : " + half + " to " + sum);
    return make("arith.addf " + added + ", " + wide + " : " + sum);
  }

  /// Stores and atomic operations in the loop: through arguments that it does not load from, and now and then through
  /// one that it does.  Each place keeps one thread, so that of two stores the same one stays.
  void stores(const std::string &added, const std::string &x, const std::string &left) {
    storing = below(4) != 0;
    if (!storing)
      return;
    const std::string tile = std::to_string(m) + "x" + std::to_string(n) + "xf32", small = number(kept - 1);
    const bool sometimes = below(3) == 0;
    if (sometimes)
      line("scf.if " + make("arith.cmpi ne, " + both("andi", "%i", number(1)) + ", %none : i32") + " {");
    const std::string at = both("muli", both("andi", below(2) ? "%i" : "%p", small), "%m");
    line("tile.store_view %kept[" + at + ", %none], " + added + " : !tile.view<" + tile + ">, i32, tensor<" + tile +
         ">");
    if (sometimes)
      line("}");
    if (below(2)) {
      const char *order = below(2) ? "relaxed" : "release";
      const std::string to = make("tile.addptr %e, " + both("andi", "%p", small) + " : !tile.ptr<i32>, i32");
      (void)make(std::string("tile.atomic_rmw add ") + order + " gpu " + to + ", %one : !tile.ptr<i32>");
    }
    changing = below(4) == 0;
    if (!changing)
      return;
    const std::string shape = std::to_string(m) + "x" + std::to_string(k) + "xf16";
    const std::string row = both("muli", both("andi", "%p", number(7)), number(8));
    line("tile.store_view %back[" + row + ", %none], " + make("arith.negf " + x + " : " + left) + " : !tile.view<" +
         shape + ">, i32, " + left);
  }

  void loop() {
    const std::string sum = "tensor<" + std::to_string(m) + "x" + std::to_string(n) + "xf32>";
    line("%zeros = arith.constant dense<0.0> : " + sum);
    line("%first = arith.constant " + std::to_string(static_cast<int>(below(7)) - 3) + " : i32");
    line("%step = arith.constant " + std::to_string(1 + below(3)) + " : i32");
    line("%length = arith.muli %n, %step : i32");
    line("%last = arith.addi %first, %length : i32");
    line("%start = arith.constant " + std::to_string(below(16)) + " : i32");
    line("%result:2 = scf.for %i = %first to %last step %step iter_args(%acc = %zeros, %p = %start) -> (" + sum +
         ", i32) : i32 {");
    const std::string x = factor("%a", m, k);
    std::string y;
    const std::string right = "tensor<" + std::to_string(k) + "x" + std::to_string(n) + "xf16>";
    if (below(5) == 0) {
      const std::string odd = make("arith.cmpi ne, " + both("andi", "%i", number(1)) + ", " + number(0) + " : i32");
      y = fresh();
      line(y + " = scf.if " + odd + " -> " + right + " {");
      line("scf.yield " + operand("%b", k, n) + " : " + right);
      line("} else {");
      line("scf.yield " + operand("%b", k, n) + " : " + right);
      line("}");
    } else {
      y = factor("%b", k, n);
    }
    const std::string left = "tensor<" + std::to_string(m) + "x" + std::to_string(k) + "xf16>";
    std::string added = make("tile.dot " + x + ", " + y + ", %acc : " + left + ", " + right + " to " + sum);
    std::swap(random, others);
    added = elementwise(added, sum);
    stores(added, x, left);
    std::swap(random, others);
    const std::string moved = both("addi", both("muli", "%p", number(5)), number(1 + static_cast<int>(below(7))));
    line("scf.yield " + added + ", " + moved + " : " + sum + ", i32");
    line("}");
  }

  void body() {
    line("%rows = arith.constant " + std::to_string(rows) + " : i32");
    line("%columns = arith.constant " + std::to_string(columns) + " : i32");
    line("%pitch = arith.constant " + std::to_string(pitch) + " : i32");
    line("%one = arith.constant 1 : i32");
    line("%none = arith.constant 0 : i32");
    line("%outers = arith.constant " + std::to_string(outers) + " : i32");
    line("%m = arith.constant " + std::to_string(m) + " : i32");
    line("%wide = arith.constant " + std::to_string(n) + " : i32");
    line("%high = arith.muli %m, %outers : i32");
    const std::string shape = std::to_string(m) + "x" + std::to_string(n);
    line("%to = tile.make_view %c, extents [%high, %wide], strides [%wide, %one] : !tile.view<" + shape + "xf32>, i32");
    line("%tiles = arith.constant " + std::to_string(kept * m) + " : i32");
    line("%kept = tile.make_view %d, extents [%tiles, %wide], strides [%wide, %one] : !tile.view<" + shape +
         "xf32>, i32");
    line("%back = tile.make_view %a, extents [%rows, %columns], strides [%pitch, %one] : !tile.view<" +
         std::to_string(m) + "x" + std::to_string(k) + "xf16>, i32");
    if (nested)
      line("scf.for %o = %none to %outers step %one : i32 {");
    loop();
    line(std::string("%at = arith.muli ") + (nested ? "%o" : "%one") + ", %m : i32");
    line("tile.store_view %to[%at, %none], %result#0 : !tile.view<" + shape + "xf32>, i32, tensor<" + shape + "xf32>");
    if (nested)
      line("}");
  }

  std::mt19937_64 random, others; ///< others: of what was added later, so that the loops of old seeds stay
  bool storing = false, changing = false;
  int m = 0, n = 0, k = 0;
  unsigned warps = 1, next = 0;
  bool nested = false;
  std::string all;
};

std::vector<std::uint16_t> randomHalves(std::mt19937_64 &random) {
  std::vector<std::uint16_t> out(static_cast<std::size_t>(rows + 64) * pitch);
  for (std::uint16_t &v : out) // 0.25 to 4, both signs
    v = static_cast<std::uint16_t>((random() & 0x8000) | (0x3400 + random() % 0x1000));
  return out;
}

struct Data {
  explicit Data(Emulator &gpu) {
    std::mt19937_64 random(7);
    left = randomHalves(random);
    a = &gpu.upload(left);
    b = &gpu.upload(randomHalves(random));
    std::vector<std::int32_t> numbers(tableSize);
    for (Buffer **table : {&t, &u}) {
      for (std::int32_t &v : numbers)
        v = static_cast<std::int32_t>(random() % 64);
      *table = &gpu.upload(numbers);
    }
  }
  std::vector<std::uint16_t> left; ///< in a
  Buffer *a, *b, *t, *u;
};

/// What a loop stores besides its result.
struct Stores {
  std::size_t tiles = 1;
  bool changesInput = false;
};

class PipelineTest : public testing::TestWithParam<const char *> {
protected:
  bool able() const { return std::string_view(GetParam()) != "sm_75"; }

  /// Everything that the kernel may have written; nothing after a finding.
  std::vector<std::uint32_t> run(const LoweredKernel &kernel, unsigned warps, std::size_t results, int trip,
                                 const Stores &stores, const std::string &what) {
    constexpr std::uint32_t poison = 0x7fc0dead;
    Buffer &c = gpu.upload(std::vector<std::uint32_t>(results, poison));
    Buffer &d = gpu.upload(std::vector<std::uint32_t>(stores.tiles, poison));
    Buffer &e = gpu.upload(std::vector<std::uint32_t>(kept, 0));
    Buffer *a = stores.changesInput ? &gpu.upload(data.left) : data.a;
    const Launched launched =
        gpu.run(kernel.ptx, {}, {warps * 32}, {*a, *data.b, *data.t, *data.u, c, trip, d, e}, kernel.sharedBytes, "k");
    std::vector<std::uint32_t> out = gpu.download<std::uint32_t>(c);
    for (Buffer *more : {&d, &e})
      for (const std::uint32_t word : gpu.download<std::uint32_t>(*more))
        out.push_back(word);
    if (stores.changesInput)
      for (const std::uint16_t half : gpu.download<std::uint16_t>(*a))
        out.push_back(half);
    for (Buffer *done : {&c, &d, &e})
      gpu.release(*done);
    if (stores.changesInput)
      gpu.release(*a);
    EXPECT_TRUE(launched.clean()) << what << launched.text() << "\n" << kernel.ptx;
    return out;
  }

  /// Runs the loop that `text` gives for a number of stages.
  template <typename F> void check(F text, unsigned warps, std::size_t results, Stores stores = {}) {
    std::map<int, std::vector<std::uint32_t>> expected;
    for (unsigned stages = 1; stages <= 4; ++stages) {
      const LoweredKernel kernel = lowered(text(stages), GetParam(), /*keepStages=*/false, From::Tile);
      ASSERT_TRUE(kernel.ok) << kernel.errors << "\n" << text(stages);
      if (stages == 1)
        EXPECT_EQ(kernel.ptx.find("cp.async"), std::string::npos);
      else if (stages == 2)
        pipelined += copies = kernel.ptx.find("cp.async.") != std::string::npos;
      const int s = static_cast<int>(stages);
      const std::set<int> trips = stages == 1 ? std::set{0, 1, 2, 3, 4, 5} : std::set{0, 1, 2, s - 1, s, s + 1};
      for (const int trip : trips) {
        const std::string what =
            std::to_string(stages) + " stages, " + std::to_string(trip) + " rounds\n" + text(stages);
        auto result = run(kernel, warps, results, trip, stores, what);
        ASSERT_FALSE(HasFailure());
        if (stages == 1)
          expected[trip] = std::move(result);
        else
          ASSERT_EQ(result, expected[trip]) << what;
      }
      if (stages == 1) // unless all of a round's tile is outside
        changing += expected[1] != expected[2];
    }
  }

  Emulator gpu{GetParam()};
  const Data data{gpu};
  unsigned pipelined = 0, changing = 0; ///< loops with asynchronous copies; whose results depend on the rounds
  bool copies = false;                  ///< the last one has
};

/// A view made inside a pipelined loop: base, extents and stride are the round's, so the copies of a later round need
/// that round's view.  Rows and columns end inside the tiles, elsewhere in each round.
TEST_P(PipelineTest, AViewMadeInsideAPipelinedLoop) {
  const std::string body = R"(
    %none = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %m = arith.constant 32 : i32
    %k = arith.constant 64 : i32
    %seven = arith.constant 7 : i32
    %eight = arith.constant 8 : i32
    %apart = arith.constant 2080 : i32
    %zeros = arith.constant dense<0.0> : tensor<32x32xf32>
    %to = tile.make_view %c, extents [%m, %m], strides [%m, %one] : !tile.view<32x32xf32>, i32
    %result = scf.for %i = %none to %n step %one iter_args(%acc = %zeros) -> (tensor<32x32xf32>) : i32 {
      %far = arith.muli %i, %apart : i32
      %base = tile.addptr %a, %far : !tile.ptr<f16>, i32
      %less = arith.muli %i, %seven : i32
      %rows = arith.subi %m, %i : i32
      %columns = arith.subi %k, %less : i32
      %wider = arith.muli %i, %eight : i32
      %pitch = arith.addi %k, %wider : i32
      %left = tile.make_view %base, extents [%rows, %columns], strides [%pitch, %one] : !tile.view<32x64xf16>, i32
      %x = tile.load_view %left[%none, %none] : !tile.view<32x64xf16>, i32 -> tensor<32x64xf16>
      %right = tile.make_view %b, extents [%k, %columns], strides [%pitch, %one] : !tile.view<64x32xf16>, i32
      %y = tile.load_view %right[%i, %wider] : !tile.view<64x32xf16>, i32 -> tensor<64x32xf16>
      %sum = tile.dot %x, %y, %acc : tensor<32x64xf16>, tensor<64x32xf16> to tensor<32x32xf32>
      scf.yield %sum : tensor<32x32xf32>
    }
    tile.store_view %to[%none, %none], %result : !tile.view<32x32xf32>, i32, tensor<32x32xf32>
)";
  check([&](unsigned stages) { return loopModule(body, 4, stages); }, 4, std::size_t(32) * 32);
  EXPECT_EQ(changing, 1u);
  EXPECT_EQ(pipelined, able() ? 1u : 0u);
}

/// Loops without a product: each round adds a vector to a tile of sums, which it stores.  A thread's share of the
/// vector is that of its rows of the tile, so copies are by other threads than those who read; extents that are no
/// power of two; the end of the vector is masked, in runs of 2 or 16 elements.  What the loop copies is stored before
/// it, and again after it.
TEST_P(PipelineTest, LoopsOfVectors) {
  struct Case {
    int extent, bound;
    bool view;
    unsigned warps;
  };
  const Case cases[] = {
      {64, 48, false, 4}, {48, 38, false, 1}, {256, 190, false, 4}, {64, 48, true, 4}, {96, 70, true, 1}};
  for (const Case &c : cases) {
    const std::string e = std::to_string(c.extent), sums = "tensor<" + e + "x8xf32>";
    std::string body = R"(
    %none = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %eight = arith.constant 8 : i32
    %last = arith.constant 7 : i32
    %pitch = arith.constant 208 : i32
    %rows = arith.constant 150 : i32
    %bound = arith.constant BOUND : i32
    %extent = arith.constant EXTENT : i32
    %all = arith.muli %extent, %eight : i32
    %to = tile.make_view %c, extents [%extent, %eight], strides [%eight, %one] : !tile.view<EXTENTx8xf32>, i32
    %kept = tile.make_view %d, extents [%all, %eight], strides [%eight, %one] : !tile.view<EXTENTx8xf32>, i32
    %from = tile.make_view %a, extents [%rows, %bound], strides [%pitch, %one] : !tile.view<1xEXTENTxf16>, i32
    %range = tile.range 0 to EXTENT : tensor<EXTENTxi32>
    %limit = tile.splat %bound : i32 to tensor<EXTENTxi32>
    %inside = arith.cmpi slt, %range, %limit : tensor<EXTENTxi32>
    %zeros = arith.constant dense<0.0> : tensor<EXTENTx8xf32>
    %first = tile.make_view %a, extents [%eight, %bound], strides [%pitch, %one] : !tile.view<8xEXTENTxf16>, i32
    %before = arith.constant dense<2.0> : tensor<8xEXTENTxf16>
    %after = arith.constant dense<3.0> : tensor<8xEXTENTxf16>
    tile.store_view %first[%none, %none], %before : !tile.view<8xEXTENTxf16>, i32, tensor<8xEXTENTxf16>
    %result = scf.for %i = %none to %n step %one iter_args(%acc = %zeros) -> (tensor<EXTENTx8xf32>) : i32 {
      LOAD
      %wide = arith.extf %column : tensor<EXTENTx1xf16> to tensor<EXTENTx1xf32>
      %more = tile.broadcast %wide : tensor<EXTENTx1xf32> to tensor<EXTENTx8xf32>
      %sum = arith.addf %acc, %more : tensor<EXTENTx8xf32>
      %slot = arith.andi %i, %last : i32
      %at = arith.muli %slot, %extent : i32
      tile.store_view %kept[%at, %none], %sum : !tile.view<EXTENTx8xf32>, i32, tensor<EXTENTx8xf32>
      scf.yield %sum : tensor<EXTENTx8xf32>
    }
    tile.store_view %first[%none, %none], %after : !tile.view<8xEXTENTxf16>, i32, tensor<8xEXTENTxf16>
    tile.store_view %to[%none, %none], %result : !tile.view<EXTENTx8xf32>, i32, tensor<EXTENTx8xf32>
)";
    const auto put = [&](std::string_view name, const std::string &value) {
      for (std::size_t at = 0; (at = body.find(name, at)) != std::string::npos; at += value.size())
        body.replace(at, name.size(), value);
    };
    put("LOAD", c.view ? R"(%x = tile.load_view %from[%i, %none] : !tile.view<1xEXTENTxf16>, i32 -> tensor<1xEXTENTxf16>
      %column = tile.transpose %x [1, 0] : tensor<1xEXTENTxf16> to tensor<EXTENTx1xf16>)"
                       : R"(%far = arith.muli %i, %pitch : i32
      %row = tile.addptr %a, %far : !tile.ptr<f16>, i32
      %base = tile.splat %row : !tile.ptr<f16> to tensor<EXTENTx!tile.ptr<f16>>
      %q = tile.addptr %base, %range : tensor<EXTENTx!tile.ptr<f16>>, tensor<EXTENTxi32>
      %x = tile.load %q mask %inside : tensor<EXTENTx!tile.ptr<f16>>
      %column = tile.expand_dims %x {axis = 1 : i32} : tensor<EXTENTxf16> to tensor<EXTENTx1xf16>)");
    put("EXTENT", e);
    put("BOUND", std::to_string(c.bound));
    SCOPED_TRACE(e + (c.view ? " of a view" : " of pointers"));
    check([&](unsigned stages) { return loopModule(body, c.warps, stages); }, c.warps, std::size_t(8) * c.extent,
          {std::size_t(8) * kept * c.extent, true});
    EXPECT_EQ(copies, able());
  }
  EXPECT_EQ(changing, std::size(cases));
}

/// One tensor for two arguments, in place: copies run ahead of the stores, other threads copy than store.
TEST_P(PipelineTest, InPlace) {
  constexpr int width = 64, rounds = 5;
  const std::string body = R"(
    %none = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %width = arith.constant 64 : i32
    %from = tile.make_view %d, extents [%n, %width], strides [%width, %one] : !tile.view<1x64xf32>, i32
    %to = tile.make_view %c, extents [%n, %width], strides [%width, %one] : !tile.view<1x64xf32>, i32
    scf.for %i = %none to %n step %one : i32 {
      %x = tile.load_view %from[%i, %none] : !tile.view<1x64xf32>, i32 -> tensor<1x64xf32>
      %y = arith.addf %x, %x : tensor<1x64xf32>
      tile.store_view %to[%i, %none], %y : !tile.view<1x64xf32>, i32, tensor<1x64xf32>
    }
)";
  std::vector<float> values(std::size_t(width) * rounds), twice;
  std::mt19937_64 random(11);
  for (float &v : values)
    twice.push_back(2 * (v = static_cast<float>(random() % 1000) / 8));
  for (unsigned stages = 1; stages <= 3; ++stages) {
    const LoweredKernel kernel = lowered(loopModule(body, 4, stages), GetParam(), /*keepStages=*/false, From::Tile);
    ASSERT_TRUE(kernel.ok) << kernel.errors;
    EXPECT_EQ(kernel.ptx.find("cp.async.") != std::string::npos, able() && stages > 1);
    Buffer &both = gpu.upload(values);
    const Launched launched = gpu.run(
        kernel.ptx, {}, {128}, {*data.a, *data.b, *data.t, *data.u, both, rounds, both, both}, kernel.sharedBytes, "k");
    EXPECT_TRUE(launched.clean()) << stages << " stages: " << launched.text() << "\n" << kernel.ptx;
    EXPECT_EQ(gpu.download<float>(both), twice) << stages << " stages";
    gpu.release(both);
  }
}

TEST_P(PipelineTest, RandomLoopsAreEqualWithAnyNumberOfStages) {
  const unsigned loops = pick(6u, 125u);
  unsigned storing = 0; ///< and copying
  for (std::uint64_t seed = 0; seed < loops && !HasFailure(); ++seed) {
    const RandomLoop loop(1000 * seed + static_cast<std::uint64_t>(GetParam()[3]));
    SCOPED_TRACE("loop " + std::to_string(seed));
    check([&](unsigned stages) { return loop.text(stages); }, loop.numWarps(), loop.results(),
          {loop.stored(), loop.changesInput()});
    storing += loop.stores() && copies;
  }
  EXPECT_GT(4 * changing, 3 * loops) << "too few results depend on the number of rounds";
  if (able())
    EXPECT_GT(4 * pipelined, loops) << "the loops hardly test what they are for";
  else
    EXPECT_EQ(pipelined, 0u);
  EXPECT_EQ(storing > 0, able()) << "no loop with stores is pipelined";
  RecordProperty("pipelined", static_cast<int>(pipelined));
}

INSTANTIATE_TEST_SUITE_P(Targets, PipelineTest, testing::Values("sm_75", "sm_80", "sm_90a", "sm_120a"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
} // namespace kiln::test
