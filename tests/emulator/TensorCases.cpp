#include "tests/emulator/TensorCases.h"

#include "tests/emulator/TensorReference.h"

#include <cmath>
#include <cstring>

namespace kiln::test {

namespace {

constexpr std::uint32_t poison = 0xA5A5A5A5;

/// Loads: fills the area with poison, copies the box, gives back the whole area.  Stores: the other way round.
std::string kernelTextOf(const TensorCase &c) {
  const unsigned rank = c.map.rank;
  const bool isLoad = c.kind == TensorCase::Kind::Load;
  std::string coordinates, loads;
  for (unsigned i = 0; i < rank; ++i) {
    coordinates += (i ? ", %r" : "%r") + std::to_string(10 + i);
    loads += "ld.param.u32 %r" + std::to_string(10 + i) + ", [c" + std::to_string(i) + "];\n";
  }
  const std::string box = "[%rd1, {" + coordinates + "}]", dim = std::to_string(rank) + "d";
  std::string text = R"(.version 8.0
.target sm_90
.address_size 64
.extern .shared .align 1024 .b8 area[];
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 data, .param .u32 at, .param .u32 bytes,
  .param .u32 size, .param .u32 c0, .param .u32 c1, .param .u32 c2, .param .u32 c3, .param .u32 c4)
{
.reg .b32 %r<32>; .reg .b64 %rd<8>; .reg .pred %p<8>;
.shared .align 8 .b64 full;
mov.b64 %rd2, map;
cvta.param.u64 %rd1, %rd2;
ld.param.u64 %rd3, [data];
cvta.to.global.u64 %rd3, %rd3;
ld.param.u32 %r1, [at];
ld.param.u32 %r2, [bytes];
ld.param.u32 %r3, [size];
)" + loads + R"(
mov.u32 %r4, area;
add.u32 %r5, %r4, %r1;      // the box
mov.u32 %r6, full;
mov.u32 %r7, %tid.x;
setp.ne.u32 %p1, %r7, 0;
shl.b32 %r8, %r7, 2;
fill:
setp.ge.u32 %p2, %r8, %r3;
@%p2 bra filled;
add.u32 %r9, %r4, %r8;
)";
  if (isLoad)
    text += "mov.u32 %r20, 0xA5A5A5A5;\n";
  else
    text += "cvt.u64.u32 %rd4, %r8; add.u64 %rd4, %rd3, %rd4; ld.global.u32 %r20, [%rd4];\n";
  text += R"(st.shared.u32 [%r9], %r20;
add.u32 %r8, %r8, 512;
bra fill;
filled:
@%p1 bra ready;
)";
  if (isLoad)
    text += "mbarrier.init.shared::cta.b64 [%r6], 1;\nfence.mbarrier_init.release.cluster;\n";
  text += R"(ready:
fence.proxy.async;
bar.sync 0;
@%p1 bra issued;
)";
  if (isLoad)
    text += "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], %r2;\n"
            "cp.async.bulk.tensor." +
            dim + ".shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r5], " + box + ", [%r6];\n";
  else
    text += (c.kind == TensorCase::Kind::Store
                 ? "cp.async.bulk.tensor." + dim + ".global.shared::cta.tile.bulk_group "
                 : "cp.reduce.async.bulk.tensor." + dim + ".global.shared::cta." + c.reduction + ".tile.bulk_group ") +
            box + ", [%r5];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n";
  text += "issued:\n";
  if (isLoad)
    text += R"(wait:
mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r6], 0;
@!%p3 bra wait;
shl.b32 %r8, %r7, 2;
copy:
setp.ge.u32 %p2, %r8, %r3;
@%p2 bra done;
add.u32 %r9, %r4, %r8;
ld.shared.u32 %r20, [%r9];
cvt.u64.u32 %rd4, %r8;
add.u64 %rd4, %rd3, %rd4;
st.global.u32 [%rd4], %r20;
add.u32 %r8, %r8, 512;
bra copy;
done:
)";
  return text + "ret;\n}\n";
}

std::vector<std::byte> randomBytes(std::mt19937_64 &random, std::size_t n) {
  std::vector<std::byte> out(n);
  for (std::size_t i = 0; i < n; i += 8) {
    std::uint64_t v = random();
    // Some words are special as numbers: zeros, subnormals, infinities, NaNs, ties of a shorter format.
    constexpr std::uint32_t special[] = {0,          0x80000000, 1,          0x807fffff, 0x7f800000, 0xff800000,
                                         0x7fc00000, 0x7f800001, 0x3f801000, 0x3f803000, 0x7f7fffff, 0x7c007e00};
    if (v % 16 == 0)
      v = std::uint64_t(special[random() % std::size(special)]) << 32 | special[random() % std::size(special)];
    std::memcpy(out.data() + i, &v, std::min<std::size_t>(8, n - i));
  }
  return out;
}

// --- what becomes of an element -------------------------------------------------

/// An element of the tensor as it arrives in shared memory: TF32 is rounded to nearest, ties to even, any NaN becomes
/// one.  FTZ does nothing here.
void loaded(TensorMapType type, std::byte *element) {
  if (type != TensorMapType::Tf32 && type != TensorMapType::Tf32Ftz)
    return;
  std::uint32_t v;
  std::memcpy(&v, element, 4);
  v = (v & 0x7fffffff) > 0x7f800000 ? 0x7fffe000 : (v + 0xfff + (v >> 13 & 1)) & 0xffffe000;
  std::memcpy(element, &v, 4);
}

template <typename T> T get(const std::byte *p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <typename T> void put(std::byte *p, T v) {
  std::memcpy(p, &v, sizeof v);
}

template <typename T> void reduceInteger(const std::string &op, std::byte *to, const std::byte *from) {
  const T a = get<T>(to), b = get<T>(from);
  using U = std::make_unsigned_t<T>;
  put<T>(to, op == "add"   ? static_cast<T>(U(a) + U(b))
             : op == "min" ? std::min(a, b)
             : op == "max" ? std::max(a, b)
             : op == "inc" ? (a >= b ? T(0) : T(a + 1))
             : op == "dec" ? (a == 0 || a > b ? b : T(a - 1))
             : op == "and" ? T(a & b)
             : op == "or"  ? T(a | b)
                           : T(a ^ b));
}

double valueOf(TensorMapType type, const std::byte *p) {
  switch (type) {
  case TensorMapType::F16: {
    const auto h = get<std::uint16_t>(p);
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    const double m = exponent == 31 ? (fraction ? NAN : INFINITY)
                     : exponent     ? std::ldexp(1024 + fraction, exponent - 25)
                                    : std::ldexp(fraction, -24);
    return h >> 15 ? -m : m;
  }
  case TensorMapType::Bf16: {
    const std::uint32_t b = std::uint32_t(get<std::uint16_t>(p)) << 16;
    return __builtin_bit_cast(float, b);
  }
  case TensorMapType::F64:
    return get<double>(p);
  default:
    return get<float>(p);
  }
}

/// Whether `got` is what the reduction of `was` and `given` gives; NaNs as a class.
bool rightFloat(const TensorCase &c, const std::byte *was, const std::byte *given, const std::byte *got) {
  const TensorMapType type = c.map.type;
  double a = valueOf(type, was), b = valueOf(type, given);
  const double r = valueOf(type, got);
  if (c.reduction != "add") {
    const bool least = c.reduction == "min";
    const double want = std::isnan(a) ? b : std::isnan(b) ? a : least ? std::fmin(a, b) : std::fmax(a, b);
    if (a == 0 && b == 0) // -0 is below +0
      return r == 0 &&
             std::signbit(r) == (least ? std::signbit(a) || std::signbit(b) : std::signbit(a) && std::signbit(b));
    return std::isnan(want) ? std::isnan(r) : r == want && std::signbit(r) == std::signbit(want);
  }
  const bool isWord = tensorMapTypeBytes(type) == 4,
             flush = type == TensorMapType::F32Ftz || type == TensorMapType::Tf32Ftz;
  auto flushed = [&](double x) { return flush && std::fabs(x) < 0x1p-126 ? std::copysign(0.0, x) : x; };
  a = flushed(a);
  b = flushed(b);
  const double exact = a + b; // exact enough: an f64 has more than twice the bits of the shorter formats
  if (std::isnan(exact))
    return std::isnan(r);
  if (type == TensorMapType::F64)
    return get<std::uint64_t>(got) == __builtin_bit_cast(std::uint64_t, exact);
  if (isWord) {
    const float want = static_cast<float>(flushed(static_cast<float>(exact)));
    return get<std::uint32_t>(got) == __builtin_bit_cast(std::uint32_t, want);
  }
  // A format of 16 bits: no neighbour is nearer, and ties go to the even one.
  const auto bits = get<std::uint16_t>(got);
  if (std::isinf(exact) || std::isinf(r)) {
    const double limit = type == TensorMapType::F16 ? 65520 : 0x1.ffp127;
    return std::isinf(r) && std::signbit(r) == std::signbit(exact) && std::fabs(exact) >= limit;
  }
  if (exact == 0)
    return r == 0 && std::signbit(r) == std::signbit(exact);
  for (const int step : {-1, 1}) {
    std::byte near[2];
    put<std::uint16_t>(near, static_cast<std::uint16_t>((bits & 0x7fff) + step));
    if ((bits & 0x7fff) == 0 && step < 0)
      continue;
    double other = std::fabs(valueOf(type, near));
    if (std::isnan(other) || std::isinf(other))
      continue;
    const double mine = std::fabs(std::fabs(exact) - std::fabs(r)), theirs = std::fabs(std::fabs(exact) - other);
    if (theirs < mine || (theirs == mine && bits & 1))
      return false;
  }
  return r == 0 || std::signbit(r) == std::signbit(exact);
}

std::string hexOf(const std::byte *p, unsigned bytes) {
  std::string out;
  for (unsigned i = bytes; i-- > 0;)
    for (const unsigned shift : {4u, 0u})
      out += "0123456789abcdef"[static_cast<unsigned>(p[i]) >> shift & 15];
  return out;
}

} // namespace

std::string TensorCase::text() const {
  std::string out = kind == Kind::Load ? "load" : kind == Kind::Store ? "store" : "reduce " + reduction;
  out += " " + std::string(tensorMapTypeName(map.type)) + " swizzle " + std::string(tensorMapSwizzleName(map.swizzle));
  auto list = [&](const char *name, const auto &values, unsigned n) {
    out += std::string(" ") + name;
    for (unsigned i = 0; i < n; ++i)
      out += (i ? "," : " ") + std::to_string(values[i]);
  };
  list("dims", map.dims, map.rank);
  list("strides", map.strides, map.rank - 1);
  list("box", map.box, map.rank);
  list("steps", map.elementStrides, map.rank);
  list("at", at, map.rank);
  return out + (map.fill == TensorMapFill::Nan ? " nan" : "") + " shared " + std::to_string(offset) + " base " +
         std::to_string(map.address) + " seed " + std::to_string(seed);
}

TensorCase randomTensorCase(std::mt19937_64 &random, TensorCase::Kind kind) {
  auto below = [&](std::uint64_t n) { return random() % n; };
  TensorCase c;
  c.kind = kind;
  c.seed = random();
  TensorMapRecipe &r = c.map;
  for (;;) {
    r = {};
    r.type = static_cast<TensorMapType>(below(tensorMapTypes));
    if (kind == TensorCase::Kind::Reduce) {
      constexpr TensorMapType types[] = {TensorMapType::U32, TensorMapType::S32, TensorMapType::U64,
                                         TensorMapType::S64, TensorMapType::F16, TensorMapType::Bf16,
                                         TensorMapType::F32};
      r.type = types[below(std::size(types))];
      const bool isWord = r.type == TensorMapType::U32;
      const std::vector<std::string> floats = {"add", "min", "max"},
                                     integers = {"add", "min", "max", "and", "or", "xor"};
      c.reduction = isFloat(r.type) && tensorMapTypeBytes(r.type) > 2 ? "add"
                    : isFloat(r.type)                                 ? floats[below(3)]
                    : isWord && below(3) == 0                         ? (below(2) ? "inc" : "dec")
                                                                      : integers[below(6)];
      if (r.type == TensorMapType::S64 && c.reduction != "min")
        c.reduction = "max";
    }
    r.swizzle = static_cast<TensorMapSwizzle>(below(tensorMapSwizzles));
    r.fill = isFloat(r.type) ? static_cast<TensorMapFill>(below(2)) : TensorMapFill::Zeros;
    r.rank = 1 + static_cast<unsigned>(below(5));
    r.address = 16 * below(32);
    const std::uint32_t size = tensorMapTypeBytes(r.type), span = tensorMapSwizzleBytes(r.swizzle);
    std::uint64_t stride = 0, area = 1;
    for (unsigned i = 0; i < r.rank; ++i) {
      const std::uint64_t most[] = {160, 24, 9, 5, 4};
      r.dims[i] = 1 + below(most[i]);
      r.box[i] = 1 + static_cast<std::uint32_t>(below(i ? most[i] + 3 : 1));
      r.elementStrides[i] = kind != TensorCase::Kind::Load || below(3) ? 1 : 1 + static_cast<std::uint32_t>(below(4));
      if (i == 0) {
        r.box[0] = 16 / size * (1 + static_cast<std::uint32_t>(below(span ? span / 16 : 10)));
        stride = (r.dims[0] * size + 15) / 16 * 16 + 16 * below(3);
      } else {
        r.strides[i - 1] = stride;
        stride = stride * r.dims[i] + 16 * below(3);
        area *= (r.box[i] + r.elementStrides[i] - 1) / r.elementStrides[i];
      }
      const std::int64_t starts[] = {0, -std::int64_t(below(r.box[i] + 1)), std::int64_t(below(r.dims[i])),
                                     std::int64_t(r.dims[i]) - std::int64_t(below(r.box[i] + 1)),
                                     std::int64_t(below(9)) * 1000000000 - 4000000000};
      std::int64_t start = starts[below(32) ? below(4) : 4];
      if (kind != TensorCase::Kind::Load)
        start = std::max<std::int64_t>(start, 0);
      c.at[i] = static_cast<std::int32_t>(std::clamp<std::int64_t>(start, INT32_MIN, INT32_MAX));
    }
    // The first element lies at a multiple of 16 bytes from the tensor's start.
    c.at[0] &= ~static_cast<std::int32_t>(16 / size - 1);
    c.offset = 128 * static_cast<std::uint32_t>(below(9));
    const std::uint64_t pitch = std::max(r.box[0] * size, span);
    if (r.address + stride <= tensorBytes && c.offset + area * pitch <= boxAreaBytes && r.box[0] <= 256)
      return c;
  }
}

TensorRunner::TensorRunner(Device &device) : device(device) {
  auto a = device.allocate(tensorBytes, "tensor"), b = device.allocate(boxAreaBytes, "area");
  if (a && b) {
    tensor = std::move(*a);
    area = std::move(*b);
  }
}

Result<Kernel *> TensorRunner::kernelOf(const TensorCase &c) {
  const std::string text = kernelTextOf(c);
  for (auto &[known, module] : modules)
    if (known == text)
      return module->kernel("k");
  auto module = device.loadPtx(text, "tensor.ptx");
  if (!module)
    return module.takeStatus();
  modules.emplace_back(text, std::move(*module));
  return modules.back().second->kernel("k");
}

TensorRunner::Outcome TensorRunner::run(const TensorCase &c) {
  if (!tensor)
    return {false, "the device has no memory for the test"};
  auto failed = [&](const Status &status) { return Outcome{false, c.text() + ": " + status.toString()}; };
  TensorMapRecipe recipe = c.map;
  recipe.address += tensor->address();
  auto map = device.encodeTensorMap(recipe);
  if (!map)
    return {true, c.text() + ": " + map.status().toString()};
  std::mt19937_64 random(c.seed);
  const std::vector<std::byte> before = randomBytes(random, tensorBytes);
  const bool isLoad = c.kind == TensorCase::Kind::Load;
  std::vector<std::byte> shared =
      isLoad ? std::vector<std::byte>(boxAreaBytes, std::byte(poison & 0xFF)) : randomBytes(random, boxAreaBytes);
  auto bytes = boxBytes(c.map, c.at, c.offset, !isLoad);
  // A swizzle's lines are counted from a multiple of 1024 bytes: the area starts at one.
  std::vector<std::byte> after = before;
  const unsigned size = tensorMapTypeBytes(c.map.type);
  for (auto e = bytes.begin(); e != bytes.end(); std::advance(e, size)) {
    std::byte *inShared = shared.data() + e->first;
    if (isLoad) {
      if (e->second == outsideTensor) {
        for (unsigned b = 0; b < size; ++b)
          inShared[b] = c.map.fill == TensorMapFill::Zeros ? std::byte(0) : std::byte(b % 2 ? 0x7F : 0xF7);
      } else {
        std::memcpy(inShared, before.data() + e->second, size);
        loaded(c.map.type, inShared);
      }
    } else if (e->second != outsideTensor) {
      std::byte *to = after.data() + e->second;
      if (c.kind == TensorCase::Kind::Store)
        std::memcpy(to, inShared, size);
      else if (c.map.type == TensorMapType::U32)
        reduceInteger<std::uint32_t>(c.reduction, to, inShared);
      else if (c.map.type == TensorMapType::S32)
        reduceInteger<std::int32_t>(c.reduction, to, inShared);
      else if (c.map.type == TensorMapType::U64)
        reduceInteger<std::uint64_t>(c.reduction, to, inShared);
      else if (c.map.type == TensorMapType::S64)
        reduceInteger<std::int64_t>(c.reduction, to, inShared);
    }
  }
  if (Status s = tensor->copyFromHost(0, before); !s.ok())
    return failed(s);
  const std::vector<std::byte> given = isLoad ? std::vector<std::byte>(boxAreaBytes) : shared;
  if (Status s = area->copyFromHost(0, given); !s.ok())
    return failed(s);
  auto kernel = kernelOf(c);
  if (!kernel)
    return failed(kernel.status());
  // Drivers place parameters as they like where one is aligned to 64 bytes.
  const KernelInfo &info = (*kernel)->info();
  std::vector<std::byte> arguments(info.parameterBytes);
  std::size_t next = 0;
  auto argument = [&](const void *value, std::size_t size) {
    if (next < info.parameters.size() && info.parameters[next].offset + size <= arguments.size())
      std::memcpy(arguments.data() + info.parameters[next].offset, value, size);
    ++next;
  };
  argument(map->bytes.data(), TensorMap::size);
  const std::uint64_t areaAddress = area->address();
  argument(&areaAddress, sizeof areaAddress);
  for (const std::uint32_t v :
       {c.offset, static_cast<std::uint32_t>(bytes.size()), static_cast<std::uint32_t>(boxAreaBytes)})
    argument(&v, sizeof v);
  for (const std::int32_t v : c.at)
    argument(&v, sizeof v);
  LaunchConfig config;
  config.block = {128};
  config.dynamicSharedBytes = boxAreaBytes;
  if (Status s = (*kernel)->launch(config, arguments); !s.ok())
    return failed(s);
  const Status synced = device.defaultStream().synchronize();
  if (!synced.ok())
    return failed(synced);
  for (const Finding &f : device.takeFindings())
    if (!f.note)
      return {false, c.text() + ": finding " + f.id + ": " + f.message};
  std::vector<std::byte> gotTensor(tensorBytes), gotArea(boxAreaBytes);
  if (Status s = tensor->copyToHost(0, gotTensor); !s.ok())
    return failed(s);
  if (Status s = area->copyToHost(0, gotArea); !s.ok())
    return failed(s);
  const bool floatReduction = c.kind == TensorCase::Kind::Reduce && isFloat(c.map.type);
  if (floatReduction)
    for (auto e = bytes.begin(); e != bytes.end(); std::advance(e, size))
      if (e->second != outsideTensor) {
        const std::byte *was = before.data() + e->second, *got = gotTensor.data() + e->second;
        if (!rightFloat(c, was, shared.data() + e->first, got))
          return {false, c.text() + ": byte " + std::to_string(e->second) + " of the tensor: " + hexOf(was, size) +
                             " and " + hexOf(shared.data() + e->first, size) + " give " + hexOf(got, size)};
        std::memcpy(after.data() + e->second, got, size);
      }
  for (std::size_t i = 0; i < boxAreaBytes; ++i)
    if (gotArea[i] != shared[i])
      return {false, c.text() + ": shared byte " + std::to_string(i) + " is " + hexOf(&gotArea[i], 1) + ", should be " +
                         hexOf(&shared[i], 1) + " (elements there: " + hexOf(&gotArea[i / 16 * 16], 16) + " and " +
                         hexOf(&shared[i / 16 * 16], 16) + ")"};
  for (std::size_t i = 0; i < tensorBytes; ++i)
    if (gotTensor[i] != after[i])
      return {false, c.text() + ": byte " + std::to_string(i) + " of the tensor is " + hexOf(&gotTensor[i], 1) +
                         ", should be " + hexOf(&after[i], 1)};
  return {};
}

} // namespace kiln::test
