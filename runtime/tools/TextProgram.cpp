// A kernel of a text file as `kiln run` launches it: compiled by the JIT for the arguments' class.
#include "runtime/tools/RunProgram.h"
#include "runtime/tools/TextKernel.h"
#include "support/Text.h"

namespace kiln::tools {
namespace {

/// What a launcher of PTX knows of a kernel, from its arguments.
KernelInfo infoOf(const KernelSource &source, const std::vector<ParsedArgumentType> &types) {
  KernelInfo info;
  info.name = source.name;
  for (std::size_t i = 0; i < types.size(); ++i) {
    ParameterInfo p;
    p.size = p.align = argumentBytes(types[i].type);
    p.offset = (info.parameterBytes + p.size - 1) / p.size * p.size;
    info.parameterBytes = p.offset + p.size;
    p.name = source.arguments[i].name;
    p.isPointer = types[i].type == ArgumentType::Pointer;
    const std::string name(argumentTypeName(types[i].type));
    // Integers have no sign: any integer of their size will do.
    p.type = p.isPointer      ? source.arguments[i].type
             : name == "i1"   ? "b8"
             : name[0] == 'i' ? "s" + name.substr(1)
                              : name;
    info.parameters.push_back(std::move(p));
  }
  return info;
}

/// Whether a file's elements are what a pointer points to, or at least as large.
bool sameElement(DType given, const ParsedArgumentType &wanted) {
  return wanted.elementType ? wanted.pointsTo(given) : dtypeBytes(given) == wanted.elementBytes;
}

class TextProgram final : public RunProgram {
public:
  TextProgram(std::unique_ptr<Jit> jit, JitKernel &kernel, std::vector<ParsedArgumentType> types, Dim3 grid)
      : jit(std::move(jit)), kernel(kernel), types(std::move(types)), grid(grid),
        kernelInfo(infoOf(kernel.source(), this->types)) {
    for (const ParsedArgumentType &t : this->types)
      kinds.push_back(t.type);
  }

  const KernelInfo &info() const override { return kernelInfo; }

  Status checkArguments(const std::vector<KernelArgument> &arguments) const override {
    for (const KernelArgument &a : arguments)
      if (a.isParameter())
        KILN_TRY(checkArgument(a));
    return {};
  }

  Status prepare(std::span<const std::byte> packed) override {
    KILN_ASSIGN(loaded, kernel.prepare(view(packed)));
    return {};
  }
  Status launch(std::span<const std::byte> packed) override { return kernel.launch(grid, nullptr, view(packed)); }

  void describe(Json &report) const override {
    report["grid"] = toJson(grid);
    if (!loaded)
      return;
    report["block"] = toJson(Dim3{loaded->threads(), 1, 1});
    report["shared"] = loaded->dynamicSharedBytes() + loaded->function().info().staticSharedBytes;
    report["variant"] = loaded->variant();
    report["reproducible"] = loaded->reproducible();
  }

private:
  ArgumentView view(std::span<const std::byte> packed) const {
    return {packed.data(), kinds.data(), static_cast<std::uint32_t>(packed.size()),
            static_cast<std::uint32_t>(kinds.size())};
  }

  Status checkArgument(const KernelArgument &a) const {
    const ParsedArgumentType &wanted = types[a.index];
    const std::string parameter = "; parameter " + std::to_string(a.index) + " '" +
                                  kernelInfo.parameters[a.index].name + "' of kernel '" + kernelInfo.name + "' is " +
                                  kernel.source().arguments[a.index].type;
    const std::string shape =
        a.kind == KernelArgument::Kind::Output ? "out:" + wanted.element + ":SHAPE" : wanted.element + ":FILE.npy";
    if (wanted.type == ArgumentType::Pointer) {
      if (a.isBuffer() && !sameElement(a.array.type, wanted))
        return Status::invalid(a.name() + " holds " + std::string(dtypeName(a.array.type)) + parameter,
                               "pass " + shape);
      if (!a.isPointer())
        return Status::invalid(a.name() + " is a number" + parameter, "pass FILE.npy, out:DTYPE:SHAPE or ptr:0");
      return {};
    }
    if (a.kind != KernelArgument::Kind::Scalar || a.isAddress)
      return Status::invalid(a.name() + " is no number" + parameter,
                             "pass " + std::string(argumentTypeName(wanted.type)) + ":V");
    const std::string given(dtypeName(a.type));
    const bool raw = a.text.starts_with('b') && !a.text.starts_with("bf");
    if (wanted.type == ArgumentType::I1 && a.bytes[0] > std::byte(1))
      return Status::invalid(a.name() + " is neither 0 nor 1" + parameter, "pass b8:0 or b8:1");
    if (!raw && dtypeKind(a.type) == DTypeKind::Float && given != argumentTypeName(wanted.type))
      return Status::invalid(a.name() + " is " + given + parameter,
                             "pass " + std::string(argumentTypeName(wanted.type)) + ":V");
    return {};
  }

  std::unique_ptr<Jit> jit;
  JitKernel &kernel;
  const std::vector<ParsedArgumentType> types;
  const Dim3 grid;
  const KernelInfo kernelInfo;
  std::vector<ArgumentType> kinds;
  const LoadedKernel *loaded = nullptr;
};

} // namespace

Result<std::unique_ptr<RunProgram>> loadTextProgram(Device &device, const RunOptions &o, FirstCalls &firstCalls) {
  if (!o.block.empty() || !o.cluster.empty() || o.sharedBytes || o.cooperative)
    return Status::invalid(std::string(!o.block.empty()     ? "--block " + o.block
                                       : !o.cluster.empty() ? "--cluster " + o.cluster
                                       : o.cooperative      ? "--cooperative"
                                                            : "--shared " + std::to_string(o.sharedBytes)) +
                               ": the kernel of a text file says this itself",
                           "leave it out; tile.num_warps in the text is the number of warps of a block");
  if (!o.dtype.empty())
    return Status::invalid("--dtype " + o.dtype + ": the kernel of a text file has types of its own",
                           "convert an input with --arg " + o.dtype + ":FILE.npy");
  if (o.grid.empty())
    return Status::invalid("--grid is required to run a text kernel", "write it as --grid 4,1,1: programs to run");
  KILN_ASSIGN(const Dim3 grid, parseDims("--grid", o.grid));
  KILN_ASSIGN(JitOptions options, JitOptions::fromEnvironment());
  // A file may be anybody's: its compile gets a process of its own, unless another place was asked for.
  if (options.knobs.isolation == knob::Isolation::Auto)
    options.knobs.isolation = knob::Isolation::Child;
  firstCalls.collect(options);
  const Knobs knobs = options.knobs;
  KILN_ASSIGN(std::unique_ptr<Jit> jit, Jit::create(device, std::move(options)));
  KILN_ASSIGN(const TextKernel text, readTextKernel(o.file, o.entry, jit->codeTarget(), knobs));
  firstCalls.textRead(text.milliseconds, text.remembered);
  KILN_ASSIGN(JitKernel * kernel, jit->kernel(text.source));
  std::vector<ParsedArgumentType> types;
  for (const ArgumentSpec &a : text.source.arguments) {
    KILN_ASSIGN(ParsedArgumentType type, parseArgumentType(a.type));
    types.push_back(std::move(type));
  }
  return std::unique_ptr<RunProgram>(new TextProgram(std::move(jit), *kernel, std::move(types), grid));
}

} // namespace kiln::tools
