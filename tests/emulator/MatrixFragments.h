//===- MatrixFragments.h - Which lane holds which element -----------------===//
//
// The fragments of mma.sync as the table of the code generation reference lists them.  Shares no code with the
// emulator.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_EMULATOR_MATRIXFRAGMENTS_H
#define KILN_TESTS_EMULATOR_MATRIXFRAGMENTS_H

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::test {

/// Where an element of a fragment is: bits of its index in the lane, then of the lane, each a step along m, n or k.
class FragmentMap {
public:
  FragmentMap(const std::string &elementBits, const std::string &laneBits)
      : elements(parse(elementBits)), lanes(parse(laneBits)) {}

  struct Place {
    unsigned m = 0, n = 0, k = 0;
  };
  Place at(unsigned lane, unsigned element) const {
    Place p;
    add(p, elements, element);
    add(p, lanes, lane);
    return p;
  }

private:
  static std::vector<Place> parse(const std::string &list) {
    std::vector<Place> steps;
    std::istringstream words(list);
    for (std::string word; words >> word;) {
      Place p;
      (word[0] == 'm' ? p.m : word[0] == 'n' ? p.n : p.k) = static_cast<unsigned>(std::stoi(word.substr(1)));
      steps.push_back(p);
    }
    return steps;
  }
  static void add(Place &p, const std::vector<Place> &steps, unsigned value) {
    for (std::size_t bit = 0; bit < steps.size(); ++bit)
      if (value >> bit & 1) {
        p.m += steps[bit].m;
        p.n += steps[bit].n;
        p.k += steps[bit].k;
      }
  }
  std::vector<Place> elements, lanes;
};

struct MatrixShape {
  const char *name;
  unsigned m, n, k, bits; ///< bits of an element of A and B
  const char *elementsA, *elementsB, *lanes, *elementsC;
};
// The columns "e bits" and "L0 L1 L2 L3 L4" of the reference; lanes without the letter of the row or column.
inline const MatrixShape matrixShapes[] = {
    {"m16n8k16", 16, 8, 16, 16, "k1 m8 k8", "k1 k8", "k2 k4 1 2 4", "n1 m8"},
    {"m16n8k8", 16, 8, 8, 16, "k1 m8", "k1", "k2 k4 1 2 4", "n1 m8"},
    {"m16n8k32", 16, 8, 32, 8, "k1 k2 m8 k16", "k1 k2 k16", "k4 k8 1 2 4", "n1 m8"},
    {"m16n8k16", 16, 8, 16, 8, "k1 k2 m8", "k1 k2", "k4 k8 1 2 4", "n1 m8"},
    {"m8n8k16", 8, 8, 16, 8, "k1 k2", "k1 k2", "k4 k8 1 2 4", "n1"},
    {"m16n8k8", 16, 8, 8, 32, "m8 k4", "k4", "k1 k2 1 2 4", "n1 m8"},
    {"m16n8k4", 16, 8, 4, 32, "m8", "", "k1 k2 1 2 4", "n1 m8"},
    {"m16n8k64", 16, 8, 64, 4, "k1 k2 k4 m8 k32", "k1 k2 k4 k32", "k8 k16 1 2 4", "n1 m8"},
    {"m16n8k32", 16, 8, 32, 4, "k1 k2 k4 m8", "k1 k2 k4", "k8 k16 1 2 4", "n1 m8"},
    {"m8n8k32", 8, 8, 32, 4, "k1 k2 k4", "k1 k2 k4", "k8 k16 1 2 4", "n1"},
    {"m16n8k256", 16, 8, 256, 1, "k1 k2 k4 k8 k16 m8 k128", "k1 k2 k4 k8 k16 k128", "k32 k64 1 2 4", "n1 m8"},
    {"m16n8k128", 16, 8, 128, 1, "k1 k2 k4 k8 k16 m8", "k1 k2 k4 k8 k16", "k32 k64 1 2 4", "n1 m8"},
    {"m8n8k128", 8, 8, 128, 1, "k1 k2 k4 k8 k16", "k1 k2 k4 k8 k16", "k32 k64 1 2 4", "n1"},
    {"m8n8k4", 8, 8, 4, 64, "", "", "k1 k2 1 2 4", "n1"},
    {"m16n8k4", 16, 8, 4, 64, "m8", "", "k1 k2 1 2 4", "n1 m8"},
    {"m16n8k8", 16, 8, 8, 64, "m8 k4", "k4", "k1 k2 1 2 4", "n1 m8"},
    {"m16n8k16", 16, 8, 16, 64, "m8 k4 k8", "k4 k8", "k1 k2 1 2 4", "n1 m8"},
};

inline FragmentMap mapOf(const char *elements, const char *lanes, char rowLetter) {
  std::string l = lanes;
  for (std::size_t i = 0; i < l.size(); ++i)
    if (l[i] == ' ' && l[i + 1] != 'k')
      l.insert(++i, 1, rowLetter);
  return {elements, l};
}

inline FragmentMap mapOfC(const MatrixShape &s) {
  return {s.elementsC, "n2 n4 m1 m2 m4"};
}

/// nullptr if there is none.
inline const MatrixShape *findMatrixShape(std::string_view name, unsigned bits) {
  for (const MatrixShape &s : matrixShapes)
    if (name == s.name && s.bits == bits)
      return &s;
  return nullptr;
}

} // namespace kiln::test

#endif // KILN_TESTS_EMULATOR_MATRIXFRAGMENTS_H
