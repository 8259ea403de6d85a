// Names, registers, and where variables live: the lexical part of the decoder.
#include "runtime/device/emulator/DecodeState.h"

#include "support/ParseNumber.h"
#include "support/Text.h"

namespace kiln::emulator {

using ptx::Space;
using ptx::Type;

static std::uint64_t alignTo(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

/// Bytes that the local or the shared variables of a kernel may take together.
static constexpr std::uint64_t variableLimit = std::uint64_t(1) << 24;

std::uint64_t variableBytes(const ptx::Variable &v) {
  constexpr std::uint64_t most = std::uint64_t(1) << 60; // more than any memory: a product beyond it stays there
  std::uint64_t n = std::uint64_t(ptx::typeBytes(v.type)) * v.vector;
  for (std::uint64_t extent : v.extents)
    n = extent == 0 ? 0 : n > most / extent ? most : n * extent;
  return n;
}

std::uint32_t variableAlign(const ptx::Variable &v) {
  const std::uint32_t natural = ptx::typeBytes(v.type) * v.vector;
  return v.align ? v.align : natural ? natural : 1;
}

/// Bytes of a register of `type`; a predicate takes a whole 32-bit lane.
static unsigned declaredBytes(Type type) {
  return type == Type::Pred ? 4 : ptx::typeBytes(type);
}

Slot DecodeContext::allocate(unsigned bytes, bool fromScope) {
  const unsigned c = slotClass(bytes);
  if (fromScope) {
    ScopeNames &scope = state->scopes.back();
    Slot slot = noSlot;
    if (!scope.available[c].empty()) {
      slot = scope.available[c].back();
      scope.available[c].pop_back();
    } else {
      slot = allocate(bytes, false);
    }
    scope.own.emplace_back(slot, c);
    return slot;
  }
  const Slot slot = program->registerBytes;
  program->registerBytes += 128u << c;
  state->registers.emplace_back(slot, 4u << c);
  return slot;
}

void DecodeContext::openScope(const ptx::Scope &scope) {
  ScopeNames names;
  names.frameMark = state->frame;
  if (!state->scopes.empty())
    for (unsigned c = 0; c < 3; ++c)
      names.available[c] = std::move(state->scopes.back().childFree[c]);
  for (const ptx::Statement &s : scope.statements) {
    if (const auto *label = std::get_if<ptx::Label>(&s.node)) {
      Symbol symbol;
      symbol.kind = Symbol::Kind::Label;
      symbol.address = state->labelOps.size();
      names.names[label->name] = symbol;
      state->labelOps.push_back(unplaced);
      state->labelNames.push_back(label->name);
    } else if (const auto *list = std::get_if<ptx::TargetList>(&s.node)) {
      Symbol symbol;
      symbol.kind = Symbol::Kind::List;
      symbol.list = list;
      names.names[list->label] = symbol;
    }
  }
  if (!state->scopes.empty())
    for (auto &list : state->scopes.back().childFree)
      list.clear();
  state->scopes.push_back(std::move(names));
}

void DecodeContext::closeScope() {
  ScopeNames closed = std::move(state->scopes.back());
  state->scopes.pop_back();
  state->frame = closed.frameMark;
  if (state->scopes.empty())
    return;
  ScopeNames &parent = state->scopes.back();
  for (unsigned c = 0; c < 3; ++c) {
    auto &free = parent.childFree[c];
    free.insert(free.end(), closed.available[c].begin(), closed.available[c].end());
    free.insert(free.end(), closed.childFree[c].begin(), closed.childFree[c].end());
  }
  for (const auto &[slot, c] : closed.own)
    if (!state->kept.count(slot))
      parent.childFree[c].push_back(slot);
}

std::uint32_t DecodeContext::placeFrame(std::uint64_t bytes, std::uint32_t align) {
  state->frame = static_cast<std::uint32_t>(alignTo(state->frame, align));
  const std::uint32_t offset = state->frame;
  state->frame += static_cast<std::uint32_t>(bytes);
  state->frameMax = std::max(state->frameMax, state->frame);
  return offset;
}

std::uint64_t DecodeContext::placeShared(std::string_view name, std::uint64_t bytes, std::uint32_t align) {
  const std::uint64_t offset = alignTo(program->sharedBegin + std::uint64_t(program->sharedStatic), align);
  if (bytes > variableLimit || offset + bytes > variableLimit) {
    errors.push_back(module.fileName + ": '" + std::string(name) + "' does not fit: shared memory has at most 16 MiB");
    anyUnsupported = false;
    return offset % variableLimit;
  }
  program->sharedStatic = static_cast<std::uint32_t>(offset + bytes - program->sharedBegin);
  program->sharedNames.push_back({name, offset, offset + bytes});
  return offset;
}

bool DecodeContext::declare(const ptx::Variable &v) {
  auto fail = [&](const std::string &message) {
    errors.push_back(module.fileName + ":" + std::to_string(v.line) + ": " + message);
    anyUnsupported = false;
    return false;
  };
  if (v.space != Space::Reg &&
      (state->frame > variableLimit || variableBytes(v) > variableLimit || variableAlign(v) > variableLimit))
    return fail("'" + std::string(v.name) + "': variables of a kernel may have 16 MiB at most");
  ScopeNames &scope = state->scopes.back();
  Symbol symbol;
  symbol.type = v.type;
  switch (v.space) {
  case Space::Reg:
    if (v.rangeCount) {
      scope.ranges.push_back({v.name, v.rangeCount, v.type});
      return true;
    }
    symbol.kind = Symbol::Kind::Register;
    symbol.bytes = static_cast<std::uint8_t>(declaredBytes(v.type));
    symbol.vector = v.vector;
    if (v.vector > 1) {
      symbol.slot = allocate(symbol.bytes, false);
      for (unsigned i = 1; i < v.vector; ++i)
        allocate(symbol.bytes, false);
    } else {
      symbol.slot = allocate(symbol.bytes, true);
    }
    break;
  case Space::Shared: {
    symbol.kind = v.external ? Symbol::Kind::DynamicShared : Symbol::Kind::Shared;
    symbol.size = variableBytes(v);
    if (v.external)
      dynamicAlign = std::max(dynamicAlign, variableAlign(v));
    else
      symbol.address = placeShared(v.name, symbol.size, variableAlign(v));
    break;
  }
  case Space::Local:
  case Space::Param:
    symbol.kind = Symbol::Kind::Frame;
    symbol.size = variableBytes(v);
    symbol.address = placeFrame(symbol.size, std::max<std::uint32_t>(variableAlign(v), 1));
    break;
  default:
    return fail("'" + std::string(v.name) + "': a variable in ." + std::string(ptx::spaceName(v.space)) +
                " must be declared outside functions");
  }
  scope.names[v.name] = symbol;
  return true;
}

Symbol *DecodeContext::findRegisterInRange(ScopeNames &scope, std::string_view name) {
  std::size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9')
    --digits;
  if (digits == name.size())
    return nullptr;
  // "%r10" of "%r<14>"; a prefix may itself end in digits ("%p1<3>").
  for (const ScopeNames::Range &range : scope.ranges) {
    if (range.prefix.size() < digits || range.prefix.size() >= name.size() || !name.starts_with(range.prefix))
      continue;
    const std::string_view number = name.substr(range.prefix.size());
    const std::optional<std::uint32_t> n = parseNumber<std::uint32_t>(number);
    if (!n || *n >= range.count || (number.size() > 1 && number[0] == '0'))
      continue;
    Symbol symbol;
    symbol.kind = Symbol::Kind::Register;
    symbol.type = range.type;
    symbol.bytes = static_cast<std::uint8_t>(declaredBytes(range.type));
    // Of the scope that declares the range, which need not be the innermost one.
    const unsigned c = slotClass(symbol.bytes);
    if (!scope.available[c].empty()) {
      symbol.slot = scope.available[c].back();
      scope.available[c].pop_back();
    } else {
      symbol.slot = allocate(symbol.bytes, false);
    }
    scope.own.emplace_back(symbol.slot, c);
    return &(scope.names[name] = symbol);
  }
  return nullptr;
}

Symbol DecodeContext::moduleSymbol(std::string_view name) {
  Symbol symbol;
  if (const auto shared = sharedSymbols.find(name); shared != sharedSymbols.end())
    return shared->second;
  if (const auto variable = variableByName.find(name); variable != variableByName.end()) {
    const ptx::Variable &v = module.variables[variable->second];
    symbol.type = v.type;
    symbol.size = variableBytes(v);
    if (v.space == Space::Shared) {
      symbol.kind = v.external ? Symbol::Kind::DynamicShared : Symbol::Kind::Shared;
      if (v.external) {
        dynamicAlign = std::max(dynamicAlign, variableAlign(v));
        dynamicNames.push_back(program->sharedNames.size());
        program->sharedNames.push_back({v.name, 0, 0});
      } else {
        symbol.address = placeShared(name, symbol.size, variableAlign(v));
      }
      sharedSymbols[name] = symbol;
      return symbol;
    }
    if (const auto placed = options.variables->find(name); placed != options.variables->end()) {
      symbol.kind = placed->second.constant ? Symbol::Kind::Const : Symbol::Kind::Global;
      symbol.address = placed->second.address;
    }
    return symbol;
  }
  std::string_view target = name;
  for (const auto &[alias, aliasee] : module.aliases)
    if (alias == name)
      target = aliasee;
  if (const auto function = functionByName.find(target); function != functionByName.end()) {
    symbol.kind = Symbol::Kind::Function;
    symbol.address = function->second;
  }
  return symbol;
}

const Symbol *DecodeContext::find(std::string_view name) {
  for (auto scope = state->scopes.rbegin(); scope != state->scopes.rend(); ++scope) {
    if (const auto found = scope->names.find(name); found != scope->names.end())
      return &found->second;
    if (Symbol *found = findRegisterInRange(*scope, name))
      return found;
  }
  // A component of a vector register: %v.x.
  if (name.size() > 2 && name[name.size() - 2] == '.') {
    const std::size_t component = std::string_view("xyzw").find(name.back());
    const Symbol *whole = component == std::string_view::npos ? nullptr : find(name.substr(0, name.size() - 2));
    if (whole && whole->kind == Symbol::Kind::Register && component < whole->vector) {
      Symbol part = *whole;
      part.vector = 1;
      part.slot += static_cast<Slot>(component) * (128u << slotClass(part.bytes));
      return &(state->scopes.back().names[name] = part);
    }
  }
  const Symbol symbol = moduleSymbol(name);
  if (symbol.kind == Symbol::Kind::None)
    return nullptr;
  return &(state->scopes.front().names[name] = symbol);
}

std::uint32_t DecodeContext::functionFor(std::size_t moduleIndex) {
  const auto [entry, isNew] =
      functionIndex.try_emplace(moduleIndex, static_cast<std::uint32_t>(program->functions.size()));
  if (isNew) {
    FunctionInfo info;
    info.name = module.functions[moduleIndex].name;
    info.index = static_cast<std::uint32_t>(moduleIndex);
    program->functions.push_back(std::move(info));
    work.emplace_back(moduleIndex, entry->second);
  }
  return entry->second;
}

bool DecodeContext::layOutParameters(FunctionInfo &info, const ptx::Function &function) {
  ScopeNames &scope = state->scopes.back();
  auto place = [&](const ptx::Variable &v, std::vector<CallValue> &list) {
    if (!declare(v))
      return false;
    const Symbol &symbol = scope.names[v.name];
    CallValue value;
    value.isRegister = symbol.kind == Symbol::Kind::Register;
    value.where = value.isRegister ? symbol.slot : static_cast<std::uint32_t>(symbol.address);
    value.bytes = value.isRegister ? symbol.bytes : static_cast<std::uint32_t>(symbol.size);
    list.push_back(value);
    return true;
  };
  if (!function.isEntry) {
    for (const ptx::Variable &v : function.returns)
      if (!place(v, info.returns))
        return false;
    for (const ptx::Variable &v : function.parameters)
      if (!place(v, info.parameters))
        return false;
    return true;
  }
  std::uint64_t offset = 0;
  for (const ptx::Variable &v : function.parameters) {
    ParameterInfo p;
    offset = alignTo(offset, variableAlign(v));
    p.offset = static_cast<std::uint32_t>(offset);
    p.size = static_cast<std::uint32_t>(variableBytes(v));
    p.align = variableAlign(v);
    p.type = std::string(ptx::typeName(v.type));
    if (v.vector > 1)
      p.type += "x" + std::to_string(v.vector);
    for (std::uint64_t extent : v.extents)
      p.type += "[" + std::to_string(extent) + "]";
    p.name = std::string(v.name);
    p.isPointer = v.isPointer;
    offset += p.size;
    Symbol symbol;
    symbol.kind = Symbol::Kind::EntryParameter;
    symbol.type = v.type;
    symbol.address = p.offset;
    symbol.size = p.size;
    scope.names[v.name] = symbol;
    program->info.parameters.push_back(std::move(p));
    if (offset > 32764) {
      errors.push_back(module.fileName + ":" + std::to_string(v.line) + ": the parameters of " +
                       std::string(function.name) + " take more than 32764 bytes");
      return false;
    }
  }
  program->info.parameterBytes = static_cast<std::uint32_t>(offset);
  return true;
}

} // namespace kiln::emulator
