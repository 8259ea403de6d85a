#include "Kernel.h"

#include "RecorderImpl.h"

#include <charconv>

namespace kiln::language {

ConfigValue::ConfigValue(double c) {
  char buffer[40];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, c);
  text.assign(buffer, end);
}

std::string KernelArgument::typeText() const {
  const std::string name(elementText(element));
  return isPointer ? "ptr<" + name + ">" : name;
}

std::string_view specializationName(Specialization how) {
  constexpr std::string_view names[] = {"", "none", "divisibility", "stride", "value"};
  return names[static_cast<unsigned>(how)];
}

Kernel Kernel::failed(Status why) {
  Kernel kernel;
  kernel.state = std::move(why);
  return kernel;
}

std::string Kernel::configText() const {
  std::string out;
  for (const ConfigEntry &e : configEntries)
    out += e.name + " = " + e.value.text + ", ";
  forEachKernelOption(values, [&](const auto &option, const auto &value) {
    if (option.isWritten(value))
      out += std::string(option.field) + " = " + option.textOf(value) + ", ";
  });
  out.resize(out.size() - 2); // warps are always there
  return out;
}

namespace detail {

void describeTensor(std::vector<KernelArgument> &out, std::string_view name, DType element, int rank, bool noalias,
                    bool wholeRows, bool optional) {
  const std::string text(name);
  const auto part = [&](TensorPart::Role role, int dim) { return TensorPart{text, role, dim, rank, optional}; };
  out.push_back({text,
                 element,
                 true,
                 {.noalias = noalias, .specialization = Specialization::Divisibility},
                 {},
                 part(TensorPart::Role::Pointer, 0)});
  for (int d = 0; d < rank; ++d) {
    const bool whole = wholeRows && d == rank - 1;
    out.push_back({text + "_extent_" + std::to_string(d),
                   DType::I64,
                   false,
                   {.specialization = whole ? Specialization::Divisibility : Specialization::None},
                   whole ? std::optional(element) : std::nullopt,
                   part(TensorPart::Role::Extent, d)});
  }
  for (int d = 0; d < rank; ++d)
    out.push_back({text + "_stride_" + std::to_string(d),
                   DType::I64,
                   false,
                   {.specialization = Specialization::Stride},
                   element,
                   part(TensorPart::Role::Stride, d)});
}

bool findDeclared(std::string_view name, DType element, std::span<Handle> parts, Location loc) {
  Recorder *const r = Recorder::open("declaredTensor", loc);
  if (!r)
    return false;
  const unsigned first = r->firstOf(name);
  const KernelArgument *const found = first < r->argumentList().size() ? &r->argumentList()[first] : nullptr;
  if (!found) {
    r->fail(loc, "declaredTensor", "there is no tensor '" + std::string(name) + "'",
            "declare it in KernelOptions::tensors");
    return false;
  }
  const int rank = static_cast<int>(parts.size() / 2);
  if (Recorder::signless(found->element) != Recorder::signless(element) || found->part->rank != rank) {
    const auto text = [](DType e, int dims) {
      return std::string(elementName(e)) + " of " + std::to_string(dims) + " dimensions";
    };
    r->fail(loc, "declaredTensor",
            "the tensor '" + std::string(name) + "' is " + text(found->element, found->part->rank) + ", " +
                text(element, rank) + " was asked for",
            "ask for the type that it has");
    return false;
  }
  for (unsigned i = 0; i < parts.size(); ++i)
    parts[i] = r->argument(first + i);
  return true;
}

static bool isIdentifier(std::string_view name) {
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (i && c >= '0' && c <= '9')))
      return false;
  }
  return !name.empty();
}

Recording::Recording(std::string_view name, const KernelOptions &options, std::vector<KernelArgument> arguments,
                     Location loc)
    : recorder(std::make_unique<Recorder>(name, options, std::move(arguments), loc)) {
  if (Recorder::any()) {
    recorder->failKernel("is recorded inside the body of another kernel",
                         "record one kernel after the other; share code between kernels as C++ functions");
    refused = recorder->finish();
    recorder.reset();
    return;
  }
  if (!isIdentifier(name))
    recorder->failKernel("the name '" + std::string(name) + "' is no identifier",
                         "use letters, digits and _, and no digit first");
  else if (const int w = options.warps; w < 1 || w > 32 || (w & (w - 1)))
    recorder->failKernel("has " + std::to_string(w) + " warps", "a block has 1, 2, 4, 8, 16 or 32");
  forEachKernelOption(options, [&](const auto &option, const auto &value) {
    if (!option.allows(value))
      recorder->failKernel("has " + option.named(value), option.rule());
  });
  for (const TensorDeclaration &t : options.tensors)
    if (!isIdentifier(t.name) || t.rank < 1 || t.rank > 5)
      recorder->failKernel("declares a tensor '" + t.name + "' of " + std::to_string(t.rank) + " dimensions",
                           "a name is letters, digits and _, and no digit first; a tensor has 1 to 5 dimensions");
  recorder->checkArguments();
  Recorder::setCurrent(recorder.get());
}

Recording::~Recording() {
  if (recorder)
    Recorder::setCurrent(nullptr);
}

bool Recording::active() const {
  return recorder && recorder->ok();
}

Handle Recording::argument(unsigned index) const {
  return recorder->argument(index);
}

Kernel Recording::finish() {
  return recorder ? recorder->finish() : std::move(refused);
}

} // namespace detail
} // namespace kiln::language
