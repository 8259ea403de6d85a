#include "runtime/io/Npy.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

using namespace kiln;

namespace {

std::string npy(const std::string &header, const std::string &data, int major = 1) {
  std::string out = "\x93NUMPY";
  out += static_cast<char>(major);
  out += '\0';
  for (unsigned i = 0; i < (major == 1 ? 2u : 4u); ++i)
    out += static_cast<char>(header.size() >> 8 * i & 0xff);
  return out + header + data;
}
std::string dict(const std::string &descr, const std::string &shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape +
         ", }\n";
}
std::span<const std::byte> bytes(const std::string &s) {
  return std::as_bytes(std::span(s.data(), s.size()));
}
std::string failure(const std::string &file) {
  auto r = parseNpy(bytes(file), "x.npy");
  EXPECT_FALSE(r.ok());
  return r.ok() ? "" : r.status().toString();
}
template <typename T> std::string pack(std::initializer_list<T> values) {
  std::string out;
  for (T v : values)
    out.append(reinterpret_cast<const char *>(&v), sizeof v);
  return out;
}
template <typename T> std::vector<T> unpack(const Array &a) {
  std::vector<T> out(a.data.size() / sizeof(T));
  std::memcpy(out.data(), a.data.data(), a.data.size());
  return out;
}

TEST(NpyTest, ReadsWhatNumpyWrites) {
  // numpy.save of numpy.arange(6, dtype='f4').reshape(2, 3), byte for byte (NumPy 2.1).
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  header.resize(128 - 10 - 1, ' ');
  auto a = parseNpy(bytes(npy(header + '\n', pack<float>({0, 1, 2, 3, 4, 5}))), "x");
  ASSERT_TRUE(a.ok()) << a.status().toString();
  EXPECT_EQ(a->type, DType::F32);
  EXPECT_EQ(a->shape, (Shape{2, 3}));
  EXPECT_EQ(unpack<float>(*a), (std::vector<float>{0, 1, 2, 3, 4, 5}));
}

TEST(NpyTest, EveryVersionAndDtype) {
  const struct {
    const char *code;
    DType type;
  } rows[] = {{"<f2", DType::F16},  {"<f4", DType::F32},   {"<f8", DType::F64},   {"|i1", DType::I8},
              {"<i2", DType::I16},  {"<i4", DType::I32},   {"<i8", DType::I64},   {"|u1", DType::U8},
              {"<u2", DType::U16},  {"<u4", DType::U32},   {"<u8", DType::U64},   {"|b1", DType::I1},
              {"|V1", DType::Raw8}, {"|V2", DType::Raw16}, {"<V2", DType::Raw16}, {"=f4", DType::F32},
              {">u1", DType::U8},   {"f4", DType::F32}};
  for (const auto &row : rows)
    for (int version : {1, 2, 3}) {
      auto a = parseNpy(bytes(npy(dict(row.code, "(3,)"), std::string(3 * dtypeBytes(row.type), 'x'), version)), "x");
      ASSERT_TRUE(a.ok()) << a.status().toString();
      EXPECT_EQ(a->type, row.type);
    }
}

TEST(NpyTest, FortranOrder) {
  // a[i][j][k] = 100 i + 10 j + k, shape (2, 3, 2), first index fastest in the file.
  std::string data;
  for (int k = 0; k < 2; ++k)
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 2; ++i)
        data += pack<std::int32_t>({100 * i + 10 * j + k});
  auto a = parseNpy(bytes(npy(dict("<i4", "(2, 3, 2)", true), data)), "x");
  ASSERT_TRUE(a.ok());
  EXPECT_EQ(unpack<std::int32_t>(*a), (std::vector<std::int32_t>{0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121}));
}

TEST(NpyTest, ScalarsAndEmptyArrays) {
  auto scalar = parseNpy(bytes(npy(dict("<f8", "()"), pack<double>({2.5}))), "x");
  ASSERT_TRUE(scalar.ok());
  EXPECT_EQ(scalar->elements(), 1u);
  EXPECT_EQ(shapeText(scalar->shape), "scalar");
  for (bool fortran : {false, true}) {
    auto empty = parseNpy(bytes(npy(dict("<f8", "(4, 0, 7)", fortran), "")), "x");
    ASSERT_TRUE(empty.ok());
    EXPECT_EQ(empty->elements(), 0u);
  }
}

TEST(NpyTest, RoundTripThroughAFile) {
  test::TemporaryDirectory folder;
  const std::string path = folder.path() + "/a.npy";
  for (Shape shape : {Shape{}, Shape{1}, Shape{12}, Shape{3, 4}, Shape{2, 1, 6}, Shape{0, 5}}) {
    Array a{DType::I16, shape, {}};
    a.data.resize(*shapeBytes(shape, 2));
    for (std::size_t i = 0; i < a.data.size(); ++i)
      a.data[i] = static_cast<std::byte>(i * 37 + 1);
    ASSERT_TRUE(writeNpy(path, a).ok());
    auto b = readNpy(path);
    ASSERT_TRUE(b.ok()) << b.status().toString();
    EXPECT_EQ(b->shape, shape);
    EXPECT_EQ(b->data, a.data);
    EXPECT_EQ((std::filesystem::file_size(path) - a.data.size()) % 64, 0u);
  }
}

TEST(NpyTest, SmallFloatsAreWrittenAsFloat32) {
  test::TemporaryDirectory folder;
  const std::string path = folder.path() + "/a.npy";
  Array a{DType::BF16, {2}, {}};
  const std::string codes = pack<std::uint16_t>({0x3f80, 0xc020});
  a.data.assign(bytes(codes).begin(), bytes(codes).end());
  ASSERT_TRUE(writeNpy(path, a).ok());
  auto b = readNpy(path);
  ASSERT_TRUE(b.ok());
  EXPECT_EQ(b->type, DType::F32);
  EXPECT_EQ(unpack<float>(*b), (std::vector<float>{1.0f, -2.5f}));
}

TEST(NpyTest, Conversions) {
  const std::string data = pack<float>({1.0f, 1.00390625f, 3e38f, -0.0f});
  const Array a{DType::F32, {4}, {bytes(data).begin(), bytes(data).end()}};
  auto b = convertArray(a, DType::BF16, "x");
  ASSERT_TRUE(b.ok());
  EXPECT_EQ(unpack<std::uint16_t>(*b),
            (std::vector<std::uint16_t>{0x3f80, 0x3f80, 0x7f62, 0x8000})); // 1 + 2^-8 ties to even
  auto e = convertArray(a, DType::F8E4M3, "x");
  ASSERT_TRUE(e.ok());
  EXPECT_EQ(unpack<std::uint8_t>(*e), (std::vector<std::uint8_t>{0x38, 0x38, 0x7e, 0x80}));
  const Array raw{DType::U16, {1}, {std::byte{0x80}, std::byte{0x3f}}};
  auto bits = convertArray(raw, DType::BF16, "x");
  ASSERT_TRUE(bits.ok());
  EXPECT_EQ(bits->data, raw.data);
  const auto refused = convertArray(raw, DType::F32, "x.npy");
  EXPECT_EQ(refused.status().message(), "'x.npy' holds u16, which is not converted to f32");
  EXPECT_FALSE(convertArray(raw, DType::F8E4M3, "x").ok());
  EXPECT_FALSE(convertArray(Array{DType::I32, {0}, {}}, DType::BF16, "x").ok());
}

TEST(NpyTest, RefusesWithTheReason) {
  const std::string f = pack<float>({1, 2, 3, 4});
  const auto has = [](const std::string &text, const char *part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(failure(""), "'x.npy' is not a .npy file (0 bytes are too few for its header)");
  has(failure("PK\3\4 not an array"), "does not start with the bytes \\x93NUMPY");
  has(failure(npy(dict("<f4", "(4,)"), f, 4)), "version 4.0 is not supported");
  has(failure(npy(dict("<f4", "(4,)"), f).substr(0, 40)), "is truncated: its header takes");
  has(failure(npy(dict("<f4", "(5,)"), f)), "is truncated: shape 5 of f32 needs 20 bytes of data, the file has 16");
  has(failure(npy(dict("<f4", "(3,)"), f)), "is too long: shape 3 of f32 needs 12 bytes of data, the file has 16");
  has(failure(npy(dict(">f4", "(4,)"), f)), "big endian");
  has(failure(npy(dict("<c8", "(2,)"), f)), "dtype '<c8' is not supported");
  has(failure(npy(dict("|O", "(2,)"), f)), "dtype '|O' is not supported");
  has(failure(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,), }\n", f)), "structured arrays");
  has(failure(npy(dict("<f4", "(4294967296, 4294967296)"), f)), "needs more than 2^63 bytes");
  has(failure(npy(dict("<f4", "(99999999999999999999,)"), f)), "does not fit 64 bits");
  has(failure(npy(dict("<f4", "(-4,)"), f)), "expected an extent");
  has(failure(npy(dict("<f4", "(4;"), f)), "expected ')'");
  has(failure(npy("{'descr': '<f4', 'shape': (4,), }", f)), "key 'fortran_order' is missing");
  has(failure(npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (4,)}", f)), "occurs twice");
  has(failure(npy("{'colour': '<f4'}", f)), "unknown key 'colour'");
  has(failure(npy("{'descr': '<f4}", f)), "a string does not end");
  has(failure(npy("{'descr': '<f4', 'fortran_order': 0, 'shape': (4,)}", f)), "expected True or False");
  has(failure(npy(dict("<f4", "(4,)") + "extra", f)), "text after the closing brace");
  std::string huge = npy("", "", 2);
  huge[11] = '\x7f';
  has(failure(huge), "its header claims 2130706432 bytes");
  std::string deep = "(";
  for (int i = 0; i < 65; ++i)
    deep += "1,";
  has(failure(npy(dict("<f4", deep + ")"), f)), "more than 64 dimensions");
}

TEST(NpyTest, FilesWithTheSameFaults) {
  test::TemporaryDirectory folder;
  const std::string path = folder.path() + "/a.npy";
  const std::string good = npy(dict("<f4", "(4,)"), pack<float>({1, 2, 3, 4}));
  for (std::size_t cut = 0; cut < good.size(); ++cut) { // every truncation
    std::ofstream(path, std::ios::binary | std::ios::trunc) << good.substr(0, cut);
    auto r = readNpy(path);
    ASSERT_FALSE(r.ok()) << cut;
    EXPECT_NE(r.status().message().find(path), std::string::npos);
  }
  std::ofstream(path, std::ios::binary | std::ios::trunc) << good;
  EXPECT_TRUE(readNpy(path).ok());
  std::ofstream(path, std::ios::binary | std::ios::trunc) << good << '!';
  EXPECT_FALSE(readNpy(path).ok());
  EXPECT_EQ(readNpy(folder.path() + "/none.npy").status().code(), StatusCode::NotFound);
  EXPECT_FALSE(readNpy(folder.path()).ok());
}

TEST(NpyTest, ShapesAndDtypesAsText) {
  EXPECT_EQ(*parseShape("16x100"), (Shape{16, 100}));
  EXPECT_EQ(*parseShape("7"), (Shape{7}));
  EXPECT_EQ(*parseShape("scalar"), (Shape{}));
  for (const char *bad : {"", "x", "16x", "x16", "1x-2", "1,2", "3.5", "99999999999999999999"})
    EXPECT_FALSE(parseShape(bad).ok()) << bad;
  EXPECT_EQ(*parseDType("float32"), DType::F32);
  EXPECT_EQ(*parseDType("f32"), DType::F32);
  EXPECT_EQ(*parseDType("float8_e4m3fn"), DType::F8E4M3);
  EXPECT_NE(parseDType("f33").status().toString().find("unknown dtype 'f33' (use one of bool, i8"), std::string::npos);
}

} // namespace
