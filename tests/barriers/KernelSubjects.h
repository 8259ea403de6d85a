//===- KernelSubjects.h - Kernels of the library with a call of each --------===//
//
// What the tests of barriers and of stated accesses run: matmul, attention, chunk kernels, products of warpgroups.
// `aligned`: strides allow copies of 16 bytes, so that loops are pipelined where the target has cp.async.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_BARRIERS_KERNELSUBJECTS_H
#define KILN_TESTS_BARRIERS_KERNELSUBJECTS_H

#include "compiler/language/Language.h"
#include "compiler/pipeline/Stages.h"
#include "tests/emulator/PtxHarness.h"

#include <functional>

namespace kiln::test {

constexpr const char *subjectTargets[] = {"sm_75", "sm_80", "sm_90a", "sm_120a"};

/// A call's arguments, given the addresses of the inputs and of the output.
using Arguments = std::function<std::vector<Argument>(const std::vector<const Buffer *> &, const Buffer &)>;

/// A kernel, and a call of it.
struct Subject {
  std::string name;
  language::Kernel kernel;
  SpecializeFacts facts;
  Dim3 grid;
  std::vector<std::size_t> inputs; ///< elements of each, f16 and random
  std::size_t output;              ///< elements, f32
  Arguments arguments;
  std::vector<Arguments> moreArguments = {}; ///< of other calls, of the same or fewer elements
  bool pipelined = true;                     ///< has loops whose loads are staged
  bool copiesNumbers = false;                ///< some of them load fp32, which can be copied at any alignment
  /// The proof takes some reads for more than they are: a gather's for every byte, those of the only warpgroup for
  /// reads that other warps may still be in.
  bool coarse = false;

  /// Runs code of the kernel on inputs that are the same each time.  `more`: arguments after the kernel's own.
  Launched run(Emulator &gpu, const std::string &ptx, std::uint32_t sharedBytes, Buffer &result, const Arguments &call,
               const std::vector<Argument> &more = {}) const;
};

using MakeSubject = Subject (*)(const char *target, bool aligned);
Subject matmulOf(const char *target, bool aligned);
Subject attentionOf16Rows(const char *target, bool aligned);
Subject attentionOf32Rows(const char *target, bool aligned);
/// Launches of attention's backward, and attention over a cache.
Subject gradientsOfKeys(const char *target, bool aligned);
Subject gradientsInOnePass(const char *target, bool aligned);
Subject gradientsOfQueries(const char *target, bool aligned);
Subject decodeOf(const char *target, bool aligned);
Subject chunksOf(const char *target, bool aligned);
Subject warpgroupsOf(const char *target, bool aligned);
Subject mapsOfDplr(const char *target, bool aligned);
Subject gradientsOfDplr(const char *target, bool aligned);
/// Without products: a reduction, a scan, and tiles that change their layout.
Subject softmaxOf(const char *target, bool aligned);
Subject cumsumOf(const char *target, bool aligned);
Subject transposeOf(const char *target, bool aligned);

} // namespace kiln::test

#endif // KILN_TESTS_BARRIERS_KERNELSUBJECTS_H
