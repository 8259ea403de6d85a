#include "runtime/device/emulator/matrix/MatrixForms.h"

#include "support/Text.h"

#include <algorithm>
#include <vector>

namespace kiln::emulator {
namespace {

MatrixForm formOf(const MatrixInstruction &instruction) {
  const bool ofWarp = instruction.unit == MatrixUnit::MmaSync;
  std::vector<std::string> shapes, types = instruction.types();
  for (unsigned n = instruction.leastN; n <= instruction.mostN; ++n)
    if (instruction.takesN(n))
      shapes.push_back(instruction.shape(n));
  if (ofWarp) // D, A, B, C; the types of wgmma have one for both accumulators
    for (std::string &text : types)
      text += "." + text.substr(0, text.find('.'));
  MatrixForm form;
  form.modifiers = "sync aligned " + join(shapes, "|") + (ofWarp ? " row col" : "") +
                   (instruction.sums == MatrixSums::S32 ? " satfinite?" : "");
  form.types = join(types, "|");
  form.archSpecific = true;
  for (const Target &target : allTargets())
    if (target.has(instruction.needs)) {
      form.minSm = form.minSm ? std::min(form.minSm, target.sm) : target.sm;
      form.archSpecific &= target.archSpecific;
    }
  return form;
}

std::vector<MatrixForm> formsOf(MatrixUnit unit) {
  std::vector<MatrixForm> out;
  for (const MatrixInstruction &i : matrixInstructions())
    if (i.unit == unit)
      out.push_back(formOf(i));
  return out;
}

} // namespace

std::span<const MatrixForm> matrixForms(MatrixUnit unit) {
  static const std::vector<MatrixForm> mma = formsOf(MatrixUnit::MmaSync), wgmma = formsOf(MatrixUnit::Wgmma);
  return unit == MatrixUnit::MmaSync ? mma : wgmma;
}

} // namespace kiln::emulator
