//===- Generator.cpp ------------------------------------------------------===//
#include "tests/parity/Generator.h"

#include "support/Text.h"

#include <cstring>
#include <iterator>

namespace kiln::parity {

namespace {

std::string inputName(std::size_t i) {
  constexpr const char *names[] = {"%a", "%b", "%c", "%f"};
  return i < std::size(names) ? names[i] : format("%%x%zu", i);
}
constexpr const char *outputNames[] = {"%d", "%e", "%g", "%h"};
constexpr unsigned fewPointers = 9; ///< 4 inputs, 4 outputs, the cells of atomics; more inputs follow

unsigned pointersOf(const Form &form) {
  return form.inputs.size() > 4 ? fewPointers + static_cast<unsigned>(form.inputs.size()) - 4 : fewPointers;
}
/// The parameter that points to an input.
unsigned parameterOf(unsigned input) {
  return input < 4 ? input : fewPointers + input - 4;
}

const char *registerType(const TypeInfo &t) {
  return t.bits == 64 ? ".b64" : t.bits == 32 ? ".b32" : ".b16";
}

/// The address of element %i of the array in parameter `p`, into %l2.
std::string address(unsigned p, unsigned bytes) {
  return format(" ld.param.u64 %%l1, [p%u];\n mad.wide.u32 %%l2, %%i, %u, %%l1;\n", p, bytes);
}

/// Before the body of an atomic: every cell holds the first input of the first of its threads; %m is its address.
std::string cellSetup(const Form &form) {
  const TypeInfo &t = info(form.inputs[0]);
  unsigned bytes = t.bits / 8;
  std::string space = form.has("shared") ? "shared" : "global";
  std::string text = format(" div.u32 %%t1, %%i, %u;\n", form.sharing);
  if (form.has("shared"))
    text += format(" mov.u32 %%t2, %%tid.x;\n div.u32 %%t2, %%t2, %u;\n mov.u64 %%l3, cells;\n mad.wide.u32 %%m, %%t2, "
                   "%u, %%l3;\n",
                   form.sharing, bytes);
  else
    text += format(" ld.param.u64 %%l3, [p8];\n mad.wide.u32 %%m, %%t1, %u, %%l3;\n", bytes);
  text += format(" rem.u32 %%t3, %%i, %u;\n setp.eq.u32 %%q0, %%t3, 0;\n", form.sharing);
  return text + format(" @%%q0 st.%s.b%u [%%m], %%a;\n bar.sync 0;\n", space.c_str(), t.bits);
}

/// After it: the final cell goes to the last output.
std::string cellResult(const Form &form) {
  const TypeInfo &t = info(form.inputs[0]);
  return format(" bar.sync 0;\n ld.volatile.%s.b%u %s, [%%m];\n", form.has("shared") ? "shared" : "global", t.bits,
                outputNames[form.outputs.size() - 1]);
}

} // namespace

std::string kernelText(const Form &form) {
  std::string text = ".version 9.0\n.target sm_90\n.address_size 64\n\n.visible .entry parity(";
  for (unsigned p = 0; p < pointersOf(form); ++p)
    text += format("%s.param .u64 p%u", p ? ", " : "", p);
  text += ")\n{\n .reg .b32 %i, %n, %t<4>;\n .reg .b64 %l<4>, %m;\n .reg .pred %q0;\n";
  auto declare = [&](Type type, const std::string &name) {
    text += format(" .reg %s %s;\n", type == Type::Pred ? ".pred" : registerType(info(type)), name.c_str());
  };
  for (std::size_t i = 0; i < form.inputs.size(); ++i)
    declare(form.inputs[i], inputName(i));
  for (std::size_t i = 0; i < form.outputs.size(); ++i)
    declare(form.outputs[i], outputNames[i]);
  if (form.sharing && form.has("shared"))
    text += " .shared .align 8 .b8 cells[1024];\n";
  text += " mov.u32 %i, %ctaid.x;\n mov.u32 %n, %ntid.x;\n mov.u32 %t0, %tid.x;\n mad.lo.u32 %i, %i, %n, %t0;\n";
  for (unsigned i = 0; i < form.inputs.size(); ++i) {
    const TypeInfo &t = info(form.inputs[i]);
    text += address(parameterOf(i), t.bits / 8);
    if (t.type == Type::Pred)
      text += format(" ld.global.b32 %%t0, [%%l2];\n setp.ne.b32 %s, %%t0, 0;\n", inputName(i).c_str());
    else
      text += format(" ld.global.%c%u %s, [%%l2];\n", t.bits == 8 ? 'u' : 'b', t.bits, inputName(i).c_str());
  }
  if (form.sharing)
    text += cellSetup(form);
  text += " " + form.body + "\n";
  if (form.sharing)
    text += cellResult(form);
  for (unsigned i = 0; i < form.outputs.size(); ++i) {
    const TypeInfo &t = info(form.outputs[i]);
    text += address(4 + i, t.bits / 8);
    if (t.type == Type::Pred)
      text += format(" selp.b32 %%t0, 1, 0, %s;\n st.global.b32 [%%l2], %%t0;\n", outputNames[i]);
    else
      text += format(" st.global.b%u [%%l2], %s;\n", t.bits, outputNames[i]);
  }
  return text + " ret;\n}\n";
}

std::uint64_t recipeHash(const Form &form, const Cases &cases) {
  std::string text = kernelText(form);
  return hashBytes(text.data(), text.size(), cases.inputHash);
}

Result<Columns> runForm(Device &device, const Form &form, const Cases &cases) {
  auto module = device.loadPtx(kernelText(form), form.name);
  if (!module.ok())
    return module.takeStatus().withContext("load");
  auto kernel = (*module)->kernel("parity");
  if (!kernel.ok())
    return kernel.takeStatus().withContext("load");
  std::size_t count = cases.count();
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<std::uint64_t> arguments(pointersOf(form));
  auto allocate = [&](unsigned parameter, std::size_t bytes) -> Status {
    KILN_ASSIGN(auto buffer, device.allocate(bytes, format("p%u", parameter)));
    KILN_TRY(buffer->fill(std::byte(0xCD)));
    arguments[parameter] = buffer->address();
    buffers.push_back(std::move(buffer));
    return {};
  };
  for (unsigned i = 0; i < form.inputs.size(); ++i) {
    unsigned bytes = info(form.inputs[i]).bits / 8;
    std::vector<std::byte> packed(count * bytes);
    for (std::size_t c = 0; c < count; ++c)
      std::memcpy(&packed[c * bytes], &cases.inputs[i][c], bytes);
    KILN_TRY(allocate(parameterOf(i), packed.size()));
    KILN_TRY(buffers.back()->copyFromHost(0, packed));
  }
  std::size_t firstOutput = buffers.size();
  for (unsigned i = 0; i < form.outputs.size(); ++i)
    KILN_TRY(allocate(4 + i, count * info(form.outputs[i]).bits / 8));
  if (form.sharing)
    KILN_TRY(allocate(8, count * 8));
  LaunchConfig config;
  config.grid = {std::uint32_t(count / blockThreads)};
  config.block = {std::uint32_t(blockThreads)};
  if (Status status = (*kernel)->launch(config, std::as_bytes(std::span(arguments))); !status.ok())
    return std::move(status).withContext("run");
  if (Status status = device.defaultStream().synchronize(); !status.ok())
    return std::move(status).withContext("run");
  for (const Finding &finding : device.takeFindings())
    if (!finding.note)
      return Status(StatusCode::Findings, finding.toString()).withContext("run");
  Columns outputs(form.outputs.size(), std::vector<std::uint64_t>(count, 0));
  for (unsigned i = 0; i < form.outputs.size(); ++i) {
    unsigned bytes = info(form.outputs[i]).bits / 8;
    std::vector<std::byte> packed(count * bytes);
    KILN_TRY(buffers[firstOutput + i]->copyToHost(0, packed));
    for (std::size_t c = 0; c < count; ++c)
      std::memcpy(&outputs[i][c], &packed[c * bytes], bytes);
  }
  return outputs;
}

} // namespace kiln::parity
