#include "runtime/device/cuda/PtxSummary.h"

#include "runtime/ptx/Parser.h"
#include "support/Text.h"

#include <algorithm>
#include <charconv>

namespace kiln::cuda {

static ParameterInfo parameterInfo(const ptx::Variable &v, std::uint64_t end) {
  ParameterInfo p;
  const std::uint32_t element = ptx::typeBytes(v.type) * v.vector;
  std::uint64_t count = 1;
  p.type = std::string(ptx::typeName(v.type));
  if (v.isArray)
    for (std::uint64_t extent : v.extents) {
      count *= extent;
      p.type += "[" + std::to_string(extent) + "]";
    }
  p.align = std::max<std::uint32_t>({v.isPointer ? element : v.align, element, 1});
  p.size = static_cast<std::uint32_t>(element * count);
  p.offset = static_cast<std::uint32_t>((end + p.align - 1) / p.align * p.align);
  p.name = std::string(v.name);
  p.isPointer = v.isPointer;
  return p;
}

PtxSummary summarisePtx(std::string_view text, std::string_view fileName) {
  PtxSummary summary;
  auto module = ptx::parse(std::string(text), std::string(fileName));
  if (!module)
    return summary;
  for (std::string_view target : (*module)->targets)
    if (target.starts_with("sm_"))
      summary.target = std::string(target);
  summary.versionMajor = (*module)->versionMajor;
  summary.versionMinor = (*module)->versionMinor;
  for (const ptx::Function &f : (*module)->functions) {
    if (!f.isEntry || !f.hasBody)
      continue;
    KernelInfo info;
    info.name = std::string(f.name);
    for (const ptx::Variable &v : f.parameters) {
      info.parameters.push_back(parameterInfo(v, info.parameterBytes));
      info.parameterBytes = info.parameters.back().offset + info.parameters.back().size;
    }
    if (f.reqntid[0])
      info.requiredBlock = {f.reqntid[0], std::max(f.reqntid[1], 1u), std::max(f.reqntid[2], 1u)};
    summary.entries.push_back(std::move(info));
  }
  return summary;
}

Status checkPtxTarget(std::string_view target, unsigned sm, std::string_view fileName) {
  unsigned wanted = 0;
  if (!target.starts_with("sm_"))
    return {};
  const char *end = target.data() + target.size();
  const auto [rest, error] = std::from_chars(target.data() + 3, end, wanted);
  if (error != std::errc())
    return {};
  const std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
  const bool runs = suffix == "a"   ? sm == wanted
                    : suffix == "f" ? sm >= wanted && sm / 10 == wanted / 10
                                    : sm >= wanted;
  if (runs)
    return {};
  const std::string rule = suffix == "a"   ? " runs on that architecture alone"
                           : suffix == "f" ? " runs on that family alone"
                                           : " needs that architecture or a newer one";
  return {StatusCode::CompileError,
          "'" + std::string(fileName) + "' is for " + std::string(target) + ", which" + rule + "; this GPU is sm_" +
              std::to_string(sm),
          "compile it for sm_" + std::to_string(sm) +
              " or run it on the emulator: --device emulator:" + std::string(target)};
}

} // namespace kiln::cuda
