#include "compiler/pipeline/Metadata.h"

#include "compiler/tile/Tile.h"
#include "compiler/tile_gpu/TileGpu.h"
#include "support/Text.h"

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

/// LLVM's JSON writer prints numbers with the locale's decimal point: a comma under de_DE.
std::string decimal(double milliseconds) {
  const auto microseconds = static_cast<unsigned long long>(milliseconds * 1000 + 0.5);
  return format("%llu.%03llu", microseconds / 1000, microseconds % 1000);
}

} // namespace

Metadata describeKernel(func::FuncOp kernel, const CompileJob &job) {
  Metadata m;
  m.kernel = kernel.getName().str();
  m.numWarps = tile::numWarps(kernel);
  m.cluster = tile::clusterOf(kernel);
  if (auto level = kernel->getAttrOfType<IntegerAttr>(tile::assemblerLevelAttr))
    m.assemblerLevel = static_cast<unsigned>(level.getInt());
  m.equals = job.equals;
  unsigned offset = 0;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    const Type t = kernel.getArgumentTypes()[i];
    const unsigned bytes = tile::storageBits(t) / 8;
    offset = (offset + bytes - 1) / bytes * bytes;
    auto name = dyn_cast_or_null<StringAttr>(kernel.getArgAttr(i, tile::nameAttr));
    m.arguments.push_back({name ? name.str() : "argument" + std::to_string(i), typeText(t), offset, bytes});
    if (auto how = dyn_cast_or_null<StringAttr>(kernel.getArgAttr(i, tile::specializeAttr)))
      m.arguments.back().specialize = how.str();
    if (auto element = dyn_cast_or_null<TypeAttr>(kernel.getArgAttr(i, tile::elementAttr)))
      m.arguments.back().elementBytes = tile::storageBits(element.getValue()) / 8;
    if (auto divisor = kernel.getArgAttrOfType<IntegerAttr>(i, tile::divisibilityAttr)) {
      const int64_t n = divisor.getInt(), power = n & -n; // of which alone the compiler makes use
      if (power > 1)
        m.divisible.emplace_back(i, power);
    }
    offset += bytes;
  }
  kernel.walk([&](tile::AtomicRmwOp op) {
    if (isa<FloatType>(tile::elementTypeOf(op.getValue().getType())) && op.getKind() == tile::Rmw::Add)
      m.reproducible = false;
  });
  return m;
}

void describeResources(func::FuncOp kernel, Metadata &metadata) {
  if (auto bytes = kernel->getAttrOfType<IntegerAttr>(tile_gpu::sharedBytesAttr))
    metadata.sharedBytes = static_cast<unsigned>(bytes.getInt());
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
    json.attribute("num_warps", m.numWarps);
    if (m.cluster != std::array<int32_t, 3>{1, 1, 1})
      json.attributeArray("cluster", [&] {
        for (const int32_t extent : m.cluster)
          json.value(extent);
      });
    json.attribute("shared_bytes", m.sharedBytes);
    json.attribute("assembler_level", m.assemblerLevel);
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
    if (!m.explanation.empty()) {
      json.attributeBegin("explain");
      json.rawValue(m.explanation);
      json.attributeEnd();
    }
  });
  return out;
}

} // namespace kiln
