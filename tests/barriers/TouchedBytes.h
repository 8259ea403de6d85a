//===- TouchedBytes.h - Which bytes of shared memory each instruction touches -===//
//
// Code whose every access to shared memory writes itself down before it happens: which instruction, which thread, which
// byte.  Instructions are told apart by the source line that they carry.  What the matrix unit reads (wgmma) has no
// address in the code: such instructions are counted, and not written down.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_BARRIERS_TOUCHEDBYTES_H
#define KILN_TESTS_BARRIERS_TOUCHEDBYTES_H

#include "tests/barriers/JudgedAccess.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::test {

class TouchedBytes {
public:
  /// `ptx` with one kernel, with source lines; blocks have one dimension.
  explicit TouchedBytes(const std::string &ptx);

  /// The kernel with one more parameter at the end: the address of a log that starts with zeros.
  const std::string &code() const { return text; }
  std::size_t sites() const { return all.size(); }
  unsigned matrixUnitReads() const { return wgmma; }

  /// What one instruction has touched.
  struct Touched {
    unsigned line = 0; ///< of the source; one that LLVM has moved may have lost its own, and has one before it
    bool write = false;
    Footprint bytes; ///< from the start of the kernel's shared memory
  };
  /// Instruction by instruction.  `log`: after a launch; `failed` says what is wrong with it.
  std::vector<Touched> read(const std::vector<std::uint32_t> &log, std::string &failed) const;

private:
  struct Site {
    unsigned line = 0, bytes = 0, lanes = 32; ///< lanes from there on name no address
    bool write = false;
  };
  bool instrument(const std::string &instruction, unsigned line);

  std::string text;
  std::vector<Site> all;
  unsigned wgmma = 0;
};

} // namespace kiln::test

#endif // KILN_TESTS_BARRIERS_TOUCHEDBYTES_H
