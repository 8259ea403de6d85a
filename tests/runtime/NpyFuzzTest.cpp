// Mutated .npy files: each gives an array whose size fits its shape, or a failure with a message; never a crash, never
// a large allocation.
#include "runtime/io/Npy.h"
#include "tests/support/TestTier.h"

#include <gtest/gtest.h>

#include <random>

using namespace kiln;

namespace {

std::string seedFile(unsigned which) {
  const char *headers[] = {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n",
                           "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2), }\n",
                           "{'descr': '|u1', 'fortran_order': False, 'shape': (24,), }\n",
                           "{\"shape\": (), 'fortran_order':False,'descr':'<f8'}",
                           "{'descr': '<V2', 'fortran_order': True, 'shape': (2L, 2L, 3L), }\n"};
  const std::string header = headers[which % 5];
  const bool wide = which % 2;
  std::string out = "\x93NUMPY";
  out += wide ? '\2' : '\1';
  out += '\0';
  out += static_cast<char>(header.size());
  out += '\0';
  if (wide)
    out += std::string(2, '\0');
  return out + header + std::string(which % 5 == 3 ? 8 : 24, 'd');
}

TEST(NpyFuzzTest, Mutations) {
  std::mt19937 random(20261121);
  const unsigned count = test::pick(5000u, 50000u);
  unsigned accepted = 0;
  for (unsigned i = 0; i < count; ++i) {
    std::string file = seedFile(random());
    const char *words[] = {"'descr'", "(",   ")", "9223372036854775807", "-1", "True", "'", "\"", ",", "{", "}",
                           "0",       "<f8", "[("};
    for (unsigned edits = random() % 4; edits-- > 0;) {
      const std::size_t at = random() % file.size();
      switch (random() % 5) {
      case 0:
        file[at] = static_cast<char>(random());
        break;
      case 1:
        file.erase(at, 1 + random() % 8);
        break;
      case 2:
        file.insert(at, words[random() % std::size(words)]);
        break;
      case 3:
        file.resize(at + 1);
        break;
      case 4:
        file[at] = static_cast<char>(file[at] ^ 1 << random() % 8);
        break;
      }
      if (file.empty())
        file = "x";
    }
    auto a = parseNpy(std::as_bytes(std::span(file.data(), file.size())), "f");
    if (a.ok()) {
      ++accepted;
      ASSERT_EQ(a->data.size(), *shapeBytes(a->shape, dtypeBytes(a->type)));
      ASSERT_LE(a->data.size(), file.size());
    } else
      ASSERT_FALSE(a.status().message().empty());
  }
  EXPECT_GT(accepted, count / 10); // the unedited ones
  EXPECT_LT(accepted, count / 2);
}

} // namespace
