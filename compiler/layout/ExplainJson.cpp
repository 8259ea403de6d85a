#include "compiler/layout/Explain.h"

#include "support/Text.h"

#include <span>

namespace kiln::layout {

namespace {

/// Writes one JSON object, member by member.
class Object {
public:
  Object &raw(const char *key, const std::string &value) {
    out += (out.empty() ? "{\"" : ",\"") + std::string(key) + "\":" + value;
    return *this;
  }
  Object &set(const char *key, std::uint64_t value) { return raw(key, std::to_string(value)); }
  Object &set(const char *key, double value) { return raw(key, format("%.17g", value)); }
  Object &set(const char *key, bool value) { return raw(key, value ? "true" : "false"); }
  Object &set(const char *key, std::string_view value) { return raw(key, quoted(value)); }
  Object &set(const char *key, std::span<const Mask> values) {
    std::string list = "[";
    for (Mask m : values)
      list += (list.size() > 1 ? "," : "") + std::to_string(m);
    return raw(key, list + "]");
  }
  template <typename T, typename Write> Object &list(const char *key, std::span<const T> items, Write write) {
    std::string list = "[";
    for (const T &item : items)
      list += (list.size() > 1 ? "," : "") + write(item);
    return raw(key, list + "]");
  }
  std::string done() const { return out.empty() ? "{}" : out + "}"; }

  static std::string quoted(std::string_view s) {
    std::string q = "\"";
    for (char c : s) {
      if (c == '"' || c == '\\')
        q += '\\';
      if (static_cast<unsigned char>(c) < 0x20)
        q += format("\\u%04x", c);
      else
        q += c;
    }
    return q + "\"";
  }

private:
  std::string out;
};

using Masks = std::span<const Mask>;
using Number = std::uint64_t;

std::string json(const SwapTerm &t) {
  return Object()
      .set("slotXor", Number(t.slotXor))
      .set("wordXor", Number(t.wordXor))
      .set("condition", Number(t.condition))
      .set("words", Masks(t.words))
      .done();
}

std::string json(const ShuffleRound &r) {
  return Object()
      .set("index", Number(r.index))
      .set("sourceWord", Number(r.sourceWord))
      .set("sourceSlot", Number(r.sourceSlot))
      .set("laneXor", Number(r.laneXor))
      .set("moves", r.moves)
      .done();
}

std::string json(const ShufflePlan &s) {
  auto each = [](const auto &x) { return json(x); };
  return Object()
      .set("slotBits", Number(s.slotBits))
      .set("sourceSlot", Masks(s.sourceSlot))
      .set("sourceWord", Masks(s.sourceWord))
      .list("pick", std::span(s.pick), each)
      .list("rounds", std::span(s.rounds), each)
      .list("place", std::span(s.place), each)
      .set("roundBits", Number(s.roundBits))
      .set("extraRoundBits", Number(s.extraRoundBits))
      .set("outputSlot", Masks(s.outputSlot))
      .set("outputWord", Masks(s.outputWord))
      .set("laneColumns", Masks(s.laneColumns))
      .set("outerColumns", Masks(s.outerColumns))
      .set("butterfly", s.butterfly)
      .set("lanesTouched", Number(s.lanesTouched))
      .set("mixedSwaps", Number(s.mixedSwaps))
      .done();
}

std::string json(const Access &a) {
  return Object()
      .set("form", accessFormName(a.form))
      .set("bytes", Number(a.bytes))
      .set("vector", Masks(a.vector))
      .set("halves", Number(a.halves))
      .set("matrices", Masks(a.matrices))
      .set("instruction", Masks(a.instruction))
      .set("lane", Masks(a.lane))
      .set("warp", Masks(a.warp))
      .set("block", Masks(a.block))
      .set("registerOffset", Masks(a.registerOffset))
      .set("rowOffset", Masks(a.rowOffset))
      .set("lanePredicate", Number(a.lanePredicate))
      .set("warpPredicate", Number(a.warpPredicate))
      .set("addressSpan", Number(a.addressSpan))
      .set("constants", Number(a.constants))
      .set("instructions", Number(a.instructions))
      .set("wavefronts", Number(a.wavefronts))
      .set("ideal", Number(a.ideal))
      .done();
}

std::string json(const SharedPlan &s) {
  auto columns = [](const std::vector<Mask>(&dims)[4]) {
    return Object()
        .set("register", Masks(dims[0]))
        .set("lane", Masks(dims[1]))
        .set("warp", Masks(dims[2]))
        .set("block", Masks(dims[3]))
        .done();
  };
  return Object()
      .set("scope", scopeName(s.scope))
      .set("regionBits", Number(s.regionBits))
      .set("passBits", Number(s.passBits))
      .set("regionBytes", s.regionBytes)
      .set("regions", Number(s.regions))
      .set("predicatedPasses", s.predicatedPasses)
      .set("offsetBasis", Masks(s.offsetBasis))
      .set("offsetRows", Masks(s.offsetRows))
      .raw("source", columns(s.source))
      .raw("destination", columns(s.destination))
      .raw("remote", columns(s.remote))
      .set("registerCopy", Masks(s.registerCopy))
      .raw("store", json(s.store))
      .raw("load", json(s.load))
      .done();
}

std::string json(const Rejected &r) {
  return Object().set("strategy", std::string_view(r.strategy)).set("reason", std::string_view(r.reason)).done();
}

} // namespace

std::string toJson(const ConversionPlan &p) {
  Object o;
  o.set("class", className(p.cls))
      .set("strategy", strategyName(p.strategy))
      .set("target", std::string_view(p.target))
      .set("elementBits", Number(p.elementBits))
      .set("storageBytes", Number(p.storageBytes))
      .set("tensorBits", Number(p.tensorBits))
      .set("sourceRegisterBits", Number(p.sourceRegisterBits))
      .set("destinationRegisterBits", Number(p.destinationRegisterBits))
      .set("laneBits", Number(p.laneBits))
      .set("warpBits", Number(p.warpBits))
      .set("blockBits", Number(p.blockBits))
      .set("cost", p.cost)
      .set("shuffles", Number(p.shuffles))
      .set("selects", Number(p.selects))
      .set("permutes", Number(p.permutes))
      .set("wavefronts", p.wavefronts)
      .set("conflicts", p.conflicts)
      .set("scratchBytes", p.scratchBytes)
      .set("passes", Number(p.passes))
      .set("barrier", barrierName(p.barrier))
      .set("barriers", Number(p.barriers))
      .list("rejected", std::span(p.rejected), [](const Rejected &r) { return json(r); });
  switch (p.strategy) {
  case Strategy::None:
  case Strategy::RegisterPermute:
    o.set("registerSource", Masks(p.registerSource));
    break;
  case Strategy::MmaToMma:
  case Strategy::WarpShuffle:
    o.raw("shuffle", json(p.shuffle));
    break;
  case Strategy::Shared:
  case Strategy::SharedScalar:
    o.raw("shared", json(p.shared));
    break;
  }
  return o.done();
}

std::string toJson(const TileConversionPlan &p) {
  return Object()
      .raw("core", toJson(p.core))
      .set("repetitions", Number(p.core.repetitions))
      .set("perRound", Number(p.core.perRound))
      .set("rounds", Number(p.core.rounds()))
      .set("scratchBytes", p.scratchBytes)
      .set("barriers", Number(p.barriers))
      .set("cost", p.core.cost)
      .set("wavefronts", p.wavefronts)
      .set("conflicts", p.conflicts)
      .set("shuffles", Number(p.shuffles))
      .set("selects", Number(p.selects))
      .set("permutes", Number(p.permutes))
      .done();
}

std::string toJson(const LocalAccessPlan &p) {
  return Object()
      .set("operation", std::string_view(p.store ? "store" : "load"))
      .set("target", std::string_view(p.target))
      .set("elementBits", Number(p.elementBits))
      .set("storageBytes", Number(p.storageBytes))
      .raw("access", json(p.access))
      .set("registerCopy", Masks(p.registerCopy))
      .set("cost", p.cost)
      .set("wavefronts", p.wavefronts)
      .set("conflicts", p.conflicts)
      .list("rejected", std::span(p.rejected), [](const Rejected &r) { return json(r); })
      .done();
}

} // namespace kiln::layout
