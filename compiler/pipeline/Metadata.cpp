#include "compiler/pipeline/Metadata.h"

#include "compiler/passes/TargetRules.h"
#include "compiler/pipeline/TensorMapJson.h"
#include "compiler/tile/Tile.h"
#include "compiler/tile_gpu/TileGpu.h"
#include "support/Text.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/JSON.h"

using namespace mlir;

namespace kiln {
namespace {

std::string typeText(Type t) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (auto pointer = dyn_cast<tile::PtrType>(t))
    os << "ptr<" << pointer.getPointee() << ">";
  else
    os << t;
  return text;
}

unsigned aligned(unsigned offset, unsigned to) {
  return (offset + to - 1) / to * to;
}

/// Of an argument of a kernel at stage llvm; 0: it is none that can be passed.
unsigned loweredBytes(Type t) {
  if (isa<LLVM::LLVMPointerType>(t))
    return 8;
  const unsigned bits = t.isIntOrFloat() ? t.getIntOrFloatBitWidth() : 0;
  return bits == 8 || bits == 16 || bits == 32 || bits == 64 ? bits / 8 : 0;
}

/// LLVM's JSON writer prints numbers with the locale's decimal point: a comma under de_DE.
std::string decimal(double milliseconds) {
  const auto microseconds = static_cast<unsigned long long>(milliseconds * 1000 + 0.5);
  return format("%llu.%03llu", microseconds / 1000, microseconds % 1000);
}

/// Whether PTX has an atomic addition of floating-point numbers: "red.relaxed.gpu.global.add.f32".
bool addsFloats(llvm::StringRef ptx) {
  return (ptx.contains("red.") || ptx.contains("atom.") || ptx.contains("cp.reduce.")) &&
         (ptx.contains(".add.f") || ptx.contains(".add.noftz.") || ptx.contains(".add.bf"));
}

/// The options that the text states, of a kernel at any stage.
void readOptions(Metadata &m, Operation *kernel) {
  forEachKernelOption(m.options, [&](const auto &option, auto &value) {
    const std::string name = "tile." + std::string(option.attribute);
    if constexpr (std::is_same_v<decltype(value), int &>) {
      if (auto given = kernel->getAttrOfType<IntegerAttr>(name))
        value = static_cast<int>(given.getInt());
    } else if (auto given = kernel->getAttrOfType<DenseI32ArrayAttr>(name))
      llvm::copy(given.asArrayRef(), value.begin()); // what is left out is 1
  });
}

/// The facts that the text states of an argument: kiln-specialize writes those of the request into it.
void addGuards(Metadata &m, unsigned argument, FunctionOpInterface kernel) {
  if (auto divisor = kernel.getArgAttrOfType<IntegerAttr>(argument, tile::divisibilityAttr)) {
    const int64_t n = divisor.getInt(), power = n & -n; // of which alone the compiler makes use
    if (power > 1)
      m.divisible.emplace_back(argument, power);
  }
  if (auto value = kernel.getArgAttrOfType<IntegerAttr>(argument, tile::equalsAttr))
    m.equals.emplace_back(argument, value.getValue().getSExtValue());
}

} // namespace

Metadata describeKernel(func::FuncOp kernel) {
  Metadata m;
  m.kernel = kernel.getName().str();
  readOptions(m, kernel);
  unsigned offset = 0;
  for (unsigned i = 0; i < tile::numVisibleArguments(kernel); ++i) {
    const Type t = kernel.getArgumentTypes()[i];
    const unsigned bytes = tile::storageBits(t) / 8;
    offset = aligned(offset, bytes);
    auto name = dyn_cast_or_null<StringAttr>(kernel.getArgAttr(i, tile::nameAttr));
    m.arguments.push_back({name ? name.str() : "argument" + std::to_string(i), typeText(t), offset, bytes});
    if (auto how = dyn_cast_or_null<StringAttr>(kernel.getArgAttr(i, tile::specializeAttr)))
      m.arguments.back().specialize = how.str();
    if (auto element = dyn_cast_or_null<TypeAttr>(kernel.getArgAttr(i, tile::elementAttr)))
      m.arguments.back().elementBytes = tile::storageBits(element.getValue()) / 8;
    addGuards(m, i, kernel);
    offset += bytes;
  }
  kernel.walk([&](tile::AtomicRmwOp op) {
    if (isa<FloatType>(tile::elementTypeOf(op.getValue().getType())) && op.getKind() == tile::Rmw::Add &&
        !op.getCounter()) // in order
      m.reproducible = false;
  });
  kernel.walk([&](tile_gpu::BulkAddOp) { m.reproducible = false; });
  return m;
}

FailureOr<Metadata> describeLowered(LLVM::LLVMFuncOp kernel) {
  Metadata m;
  m.kernel = kernel.getName().str();
  const auto fail = [&] { return kernel.emitError() << "kernel '" << kernel.getName() << "': "; };
  auto block = kernel->getAttrOfType<DenseI32ArrayAttr>(NVVM::NVVMDialect::getReqntidAttrName());
  int64_t threads = 1;
  for (const int32_t n : block ? block.asArrayRef() : llvm::ArrayRef<int32_t>())
    threads *= std::clamp(n, 0, 1 << 20);
  if (!block || threads != block[0] || threads < 32 || threads > 1024 || threads % 32)
    return fail() << "it says no block of 1 to 32 warps along x: give it nvvm.reqntid = array<i32: 128>", failure();
  readOptions(m, kernel);
  m.options.warps = static_cast<int>(threads / 32);
  m.options.copyWarps = 0; // they are among these
  m.options.cluster = clusterOf(kernel);
  unsigned offset = 0;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    if (tile_gpu::recipeOf(kernel, i)) {
      auto align = kernel.getArgAttrOfType<IntegerAttr>(i, LLVM::LLVMDialect::getAlignAttrName());
      auto bytes = kernel.getArgAttrOfType<TypeAttr>(i, LLVM::LLVMDialect::getByValAttrName());
      const Type wanted = LLVM::LLVMArrayType::get(IntegerType::get(kernel.getContext(), 8), TensorMap::size);
      if (!kernel.getArgAttr(i, NVVM::NVVMDialect::getGridConstantAttrName()) || !align ||
          align.getInt() != int64_t(TensorMap::alignment) || !bytes || bytes.getValue() != wanted)
        return fail() << "argument " << i << " is a tensor map that is no grid constant of 128 bytes: give it "
                      << "llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant",
               failure();
      continue;
    }
    const Type t = kernel.getArgumentTypes()[i];
    const unsigned bytes = loweredBytes(t);
    if (!bytes || i != m.arguments.size())
      return fail() << "argument " << i << " of type " << t
                    << ": arguments are pointers and numbers of 8 to 64 bits, tensor maps come last",
             failure();
    offset = aligned(offset, bytes);
    auto name = kernel.getArgAttrOfType<StringAttr>(i, tile::nameAttr);
    auto element = kernel.getArgAttrOfType<TypeAttr>(i, tile::elementAttr);
    std::string type = typeText(
        isa<LLVM::LLVMPointerType>(t)
            ? tile::PtrType::get(t.getContext(), element ? element.getValue() : IntegerType::get(t.getContext(), 8))
            : t);
    m.arguments.push_back({name ? name.str() : "argument" + std::to_string(i), std::move(type), offset, bytes});
    m.arguments.back().specialize = "none"; // the code is what it is
    addGuards(m, i, kernel);
    offset += bytes;
  }
  kernel.walk([&](LLVM::InlineAsmOp op) {
    if (addsFloats(op.getAsmString()))
      m.reproducible = false;
  });
  if (auto bytes = kernel->getAttrOfType<IntegerAttr>(tile_gpu::sharedBytesAttr)) {
    if (bytes.getInt() < 0 || bytes.getInt() > INT32_MAX)
      return fail() << tile_gpu::sharedBytesAttr << " is " << bytes.getInt() << ": give its bytes, 0 or more",
             failure();
    m.sharedBytes = static_cast<unsigned>(bytes.getInt());
  }
  return m;
}

void describeHidden(LLVM::LLVMFuncOp kernel, Metadata &metadata) {
  unsigned offset = metadata.arguments.empty() ? 0 : metadata.arguments.back().offset + metadata.arguments.back().bytes;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (const tile_gpu::TensorMapRecipeAttr recipe = tile_gpu::recipeOf(kernel, i)) {
      offset = aligned(offset, TensorMap::alignment);
      metadata.hidden.push_back({recipe, offset});
      offset += TensorMap::size;
    }
}

void describeResources(func::FuncOp kernel, Metadata &metadata) {
  if (auto bytes = kernel->getAttrOfType<IntegerAttr>(tile_gpu::sharedBytesAttr))
    metadata.sharedBytes = static_cast<unsigned>(bytes.getInt());
  metadata.options.copyWarps = static_cast<int>(tile::numCopyWarps(kernel));
}

std::string toJson(const Metadata &m) {
  std::string out;
  llvm::raw_string_ostream os(out);
  llvm::json::OStream json(os);
  json.object([&] {
    json.attribute("kernel", m.kernel);
    json.attribute("entry", m.kernel);
    json.attribute("target", m.target);
    json.attribute("ptx_isa", m.ptxIsa);
    forEachKernelOption(m.options, [&](const auto &option, const auto &value) {
      if constexpr (std::is_same_v<decltype(value), const int &>) {
        if (option.reader != KernelOptionInfo::Reader::Pass)
          json.attribute(option.attribute, value);
      } else if (option.isWritten(value))
        json.attributeArray(option.attribute, [&] {
          for (const int extent : value)
            json.value(extent);
        });
    });
    json.attribute("shared_bytes", m.sharedBytes);
    json.attribute("reproducible", m.reproducible);
    json.attributeArray("arguments", [&] {
      for (const Metadata::Argument &a : m.arguments)
        json.object([&] {
          json.attribute("name", llvm::json::fixUTF8(a.name));
          json.attribute("type", a.type);
          json.attribute("offset", a.offset);
          json.attribute("bytes", a.bytes);
          if (!a.specialize.empty())
            json.attribute("specialize", a.specialize);
          if (a.elementBytes)
            json.attribute("element_bytes", a.elementBytes);
        });
    });
    if (!m.hidden.empty())
      json.attributeArray("hidden", [&] {
        for (const Metadata::Hidden &h : m.hidden)
          writeTensorMap(json, h.recipe, h.offset);
      });
    if (m.mapsByPasses)
      json.attribute("maps_by_passes", true);
    json.attributeArray("guards", [&] {
      auto guard = [&](const char *kind, const std::pair<unsigned, long long> &g) {
        json.object([&] {
          json.attribute("argument", g.first);
          json.attribute(kind, g.second);
        });
      };
      for (const auto &g : m.divisible)
        guard("divisibility", g);
      for (const auto &g : m.equals)
        guard("equals", g);
    });
    json.attributeObject("milliseconds", [&] {
      for (const auto &[name, value] : m.milliseconds) {
        json.attributeBegin(name);
        json.rawValue(decimal(value));
        json.attributeEnd();
      }
    });
    if (!m.passTimes.empty())
      json.attributeArray("passes", [&] {
        for (const Metadata::PassTime &t : m.passTimes)
          json.object([&] {
            json.attribute("stage", t.stage);
            json.attribute("pass", llvm::json::fixUTF8(t.pass));
            json.attributeBegin("milliseconds");
            json.rawValue(decimal(t.milliseconds));
            json.attributeEnd();
          });
      });
    if (!m.explanation.empty()) {
      json.attributeBegin("explain");
      json.rawValue(m.explanation);
      json.attributeEnd();
    }
  });
  return out;
}

} // namespace kiln
