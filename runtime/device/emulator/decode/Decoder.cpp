#include "runtime/device/emulator/decode/Decoder.h"

#include "runtime/device/emulator/decode/ControlFlow.h"
#include "runtime/device/emulator/decode/DecodeState.h"
#include "runtime/device/emulator/decode/RegisterPlan.h"
#include "support/Names.h"
#include "support/Text.h"

#include <algorithm>

namespace kiln::emulator {

using ptx::Operand;
using ptx::Type;

static constexpr std::size_t maxErrors = 8;
/// Of a warp; far beyond what compilers emit.
static constexpr std::uint32_t maxRegisterBytes = 1u << 28;
/// Local memory of a lane whose need is not known beforehand (recursion, alloca): reserved, not touched.
static constexpr std::uint64_t dynamicStackBytes = std::uint64_t(256) << 10;

DecodeContext::DecodeContext(const ptx::Module &module, const DecodeOptions &options)
    : module(module), options(options) {
  for (std::size_t i = 0; i < module.functions.size(); ++i) {
    const auto [entry, isNew] = functionByName.try_emplace(module.functions[i].name, i);
    if (!isNew && module.functions[i].hasBody)
      entry->second = i; // a declaration came first
  }
  for (std::size_t i = 0; i < module.variables.size(); ++i) {
    const auto [entry, isNew] = variableByName.try_emplace(module.variables[i].name, i);
    if (!isNew && !module.variables[i].external)
      entry->second = i;
  }
}

DecodeContext::~DecodeContext() = default;

bool DecodeContext::inEntry() const {
  return state->index == 0;
}

static std::uint32_t pieceCount(const std::uint32_t (&dims)[3]) {
  std::uint64_t n = 1;
  bool any = false;
  for (std::uint32_t d : dims)
    if (d) {
      any = true;
      n = std::min<std::uint64_t>(n * d, 1u << 30);
    }
  return any ? static_cast<std::uint32_t>(n) : 0;
}

Result<std::unique_ptr<Program>> DecodeContext::run(std::size_t entry) {
  const ptx::Function &kernel = module.functions[entry];
  program = std::make_unique<Program>();
  program->module = &module;
  program->table = options.table;
  program->sharedBegin = options.target->sharedReserved;
  KernelInfo &info = program->info;
  info.name = std::string(kernel.name);
  info.maxThreadsPerBlock = options.target->threadsPerBlock;
  if (const std::uint32_t n = pieceCount(kernel.maxntid))
    info.maxThreadsPerBlock = std::min(info.maxThreadsPerBlock, n);
  if (const std::uint32_t n = pieceCount(kernel.reqntid)) {
    info.maxThreadsPerBlock = std::min(info.maxThreadsPerBlock, n);
    info.requiredBlock = {kernel.reqntid[0], std::max(1u, kernel.reqntid[1]), std::max(1u, kernel.reqntid[2])};
  }
  program->maxRegisters = kernel.maxnreg;
  program->blocksPerMultiprocessor = std::max(1u, kernel.minnctapersm);
  if (pieceCount(kernel.reqnctapercluster))
    program->requiredCluster = {kernel.reqnctapercluster[0], std::max(1u, kernel.reqnctapercluster[1]),
                                std::max(1u, kernel.reqnctapercluster[2])};
  program->maxClusterBlocks = kernel.maxclusterrank;
  program->needsCluster = kernel.explicitCluster;
  const bool hasCluster = program->requiredCluster.count() || kernel.maxclusterrank || kernel.explicitCluster;
  if (hasCluster && !options.target->has(Capability::Clusters))
    errors.push_back(module.fileName + ":" + std::to_string(kernel.line) + ": " + shortName(info.name) +
                     ": clusters need sm_90 or newer, the device is " + std::string(options.target->name));
  if (kernel.blocksAreClusters && (!program->requiredCluster.count() || !info.requiredBlock.count()))
    errors.push_back(module.fileName + ":" + std::to_string(kernel.line) + ": " + shortName(info.name) +
                     ": .blocksareclusters needs .reqntid and .reqnctapercluster");
  anyUnsupported = errors.empty();
  program->blocksAreClusters = kernel.blocksAreClusters;
  functionFor(entry);
  while (!work.empty() && errors.size() < maxErrors) {
    const std::size_t next = work.back().first;
    work.pop_back();
    decodeFunction(next);
  }
  if (errors.empty())
    finish();
  if (!errors.empty()) {
    if (errors.size() > maxErrors)
      errors.resize(maxErrors);
    return Status(anyUnsupported ? StatusCode::Unsupported : StatusCode::CompileError, join(errors, "\n"));
  }
  return std::move(program);
}

bool DecodeContext::decodeFunction(std::size_t moduleIndex) {
  const ptx::Function &function = module.functions[moduleIndex];
  const std::uint32_t index = functionIndex[moduleIndex];
  state = std::make_unique<FunctionState>();
  state->function = &function;
  state->index = index;
  FunctionInfo info = program->functions[index];
  info.entry = static_cast<std::uint32_t>(program->ops.size());
  if (!function.hasBody) {
    errors.push_back(module.fileName + ":" + std::to_string(function.line) + ": function '" +
                     std::string(function.name) + "' is declared but not defined in this module");
    anyUnsupported = false;
    return false;
  }
  openScope(function.body);
  bool good = layOutParameters(info, function);
  for (const ptx::Statement &s : function.body.statements)
    if (good && errors.size() < maxErrors) {
      ptx::Scope const *nested = nullptr;
      if (const auto *scope = std::get_if<std::unique_ptr<ptx::Scope>>(&s.node))
        nested = scope->get();
      if (nested)
        decodeScope(*nested, 1);
      else if (const auto *instruction = std::get_if<ptx::Instruction>(&s.node))
        decodeInstruction(*instruction);
      else if (const auto *variable = std::get_if<ptx::Variable>(&s.node))
        good = declare(*variable);
      else if (const auto *label = std::get_if<ptx::Label>(&s.node))
        state->labelOps[state->scopes.back().names[label->name].address] =
            static_cast<std::uint32_t>(program->ops.size());
    }
  if (!errors.empty())
    return false;
  // Falling off the end leaves the function.
  static const ptx::Instruction end = [] {
    ptx::Instruction i;
    i.opcode = "ret";
    return i;
  }();
  decodeInstruction(end);
  program->lines.back().ptxLine =
      program->lines.size() > 1 ? program->lines[program->lines.size() - 2].ptxLine : function.line;
  closeScope();
  info.end = static_cast<std::uint32_t>(program->ops.size());
  info.frameBytes = (state->frameMax + 15) / 16 * 16;
  finishFunction(info);
  // Decoding may have added functions; only this one's entry is replaced.
  program->functions[index] = std::move(info);
  return errors.empty();
}

bool DecodeContext::decodeScope(const ptx::Scope &scope, unsigned depth) {
  openScope(scope);
  bool good = true;
  for (const ptx::Statement &s : scope.statements) {
    if (!good || errors.size() >= maxErrors)
      break;
    if (const auto *nested = std::get_if<std::unique_ptr<ptx::Scope>>(&s.node))
      good = decodeScope(**nested, depth + 1);
    else if (const auto *instruction = std::get_if<ptx::Instruction>(&s.node))
      decodeInstruction(*instruction);
    else if (const auto *variable = std::get_if<ptx::Variable>(&s.node))
      good = declare(*variable);
    else if (const auto *label = std::get_if<ptx::Label>(&s.node))
      state->labelOps[state->scopes.back().names[label->name].address] =
          static_cast<std::uint32_t>(program->ops.size());
  }
  closeScope();
  return good;
}

bool DecodeContext::decodeInstruction(const ptx::Instruction &instruction) {
  if (program->registerBytes > maxRegisterBytes)
    return error(instruction,
                 "the kernel uses more than " + std::to_string(maxRegisterBytes / 128) + " registers and constants");
  SourceLine line;
  line.ptxLine = instruction.line;
  line.opcode = instruction.opcode;
  if (instruction.location >= 0 && static_cast<std::size_t>(instruction.location) < state->function->locations.size()) {
    const ptx::Location &l = state->function->locations[instruction.location];
    line.file = l.file;
    line.line = l.line;
  }
  program->lines.push_back(line);
  pending.clear();
  currentFlow = {};
  for (std::size_t &used : state->temporariesUsed)
    used = 0;

  auto cached = matches.find(instruction.opcode);
  if (cached == matches.end()) {
    auto match = options.rows->match(instruction.opcode, *options.target);
    if (!match) {
      if (match.status().code() != StatusCode::Unsupported)
        anyUnsupported = false;
      errors.push_back(placeOf(instruction) + ": " + match.status().toString());
      return false;
    }
    cached = matches.emplace(instruction.opcode, *match).first;
  }
  RowMatch match = cached->second;
  const PreparedRow &row = *match.row;
  if (instruction.operands.size() > Form::maxOperands && !row.custom)
    return error(instruction, "has " + std::to_string(instruction.operands.size()) + " operands");
  Op op;
  op.line = static_cast<std::uint32_t>(program->lines.size() - 1);
  op.kind = row.row->kind;
  if (!instruction.guard.empty()) {
    Operand guard;
    guard.text = instruction.guard;
    if (!predicate(instruction, guard, op.guard))
      return false;
    op.guardNegated = instruction.guardNegated;
  }
  for (std::size_t i = 0; i < instruction.operands.size() && i < Form::maxOperands; ++i)
    match.form.registerBytes[i] = registerBytes(instruction.operands[i]);
  match.form.numOperands = static_cast<unsigned>(instruction.operands.size());
  const bool good =
      row.custom ? row.row->decode(*this, match.form, instruction, op) : applySignature(instruction, match, op);
  if (!good)
    return false;
  const auto index = static_cast<std::uint32_t>(program->ops.size());
  program->ops.push_back(op);
  currentFlow.guarded = op.guard != noSlot;
  flows.push_back(std::move(currentFlow));
  for (bool write : {false, true})
    for (SlotAccess &a : pending)
      if (a.write == write) {
        a.op = index;
        a.whole = op.guard == noSlot;
        accesses.push_back(a);
      }
  return true;
}

/// The type of an operand of a signature, None if the row's signature does not fit its types.
static Type operandType(const OperandSpec &spec, const Form &form) {
  Type t = spec.type;
  if (spec.typeIndex >= 0)
    t = static_cast<unsigned>(spec.typeIndex) < form.numTypes ? form.types[static_cast<unsigned>(spec.typeIndex)]
                                                              : Type::None;
  return spec.wide ? doubleWidth(t) : t;
}

bool DecodeContext::applySignature(const ptx::Instruction &instruction, RowMatch &match, Op &op) {
  const PreparedRow &row = *match.row;
  std::size_t required = 0;
  for (const OperandSpec &spec : row.operands)
    required += !spec.optional;
  const std::size_t given = instruction.operands.size();
  if (given < required || given > row.operands.size())
    return error(instruction, "takes " + std::to_string(required) +
                                  (required < row.operands.size() ? " to " + std::to_string(row.operands.size()) : "") +
                                  " operands, " + std::to_string(given) + " are given");
  unsigned destinations = 0, sources = 0;
  const bool conversion = match.form.mnemonic == "cvt";
  for (std::size_t i = 0; i < row.operands.size(); ++i) {
    const OperandSpec &spec = row.operands[i];
    if (spec.destination) {
      Slot &slot = destinations == 0 ? op.d : op.d2;
      ++destinations;
      if (i >= given)
        continue;
      const Operand &operand = instruction.operands[i];
      const Type type = spec.kind == OperandSpec::Kind::Predicate ? Type::Pred : operandType(spec, match.form);
      if (type == Type::None)
        return error(instruction, "the instruction table does not say the type of operand " + std::to_string(i));
      if (!destination(instruction, operand, type, slot, nullptr, conversion))
        return false;
      if (spec.pairPredicate) {
        op.d2 = trashSlot;
        ++destinations;
        if (operand.second && !destination(instruction, *operand.second, Type::Pred, op.d2))
          return false;
      } else if (operand.second) {
        return error(instruction, "a second destination after '|' is not part of this form");
      }
      continue;
    }
    if (spec.kind == OperandSpec::Kind::Immediate) {
      if (i >= given)
        continue;
      const Operand &operand = instruction.operands[i];
      if (operand.kind != Operand::Kind::Integer)
        return error(instruction, "operand " + std::to_string(i + 1) + " must be an integer constant");
      op.imm = static_cast<std::int64_t>(operand.bits);
      continue;
    }
    Slot &slot = spec.kind == OperandSpec::Kind::MemberMask ? op.s[3] : op.s[sources];
    if (spec.kind != OperandSpec::Kind::MemberMask && ++sources > 4)
      return error(instruction, "the instruction table gives it too many sources");
    if (i >= given)
      continue;
    const Operand &operand = instruction.operands[i];
    if (spec.kind == OperandSpec::Kind::Predicate) {
      if (!predicate(instruction, operand, slot))
        return false;
      continue;
    }
    const Type type = operandType(spec, match.form);
    if (type == Type::None)
      return error(instruction, "the instruction table does not say the type of operand " + std::to_string(i));
    if (!source(instruction, operand, type, slot))
      return false;
  }
  std::string why;
  op.run = row.row->build(match.form, why);
  if (!op.run)
    return unsupported(instruction, why.empty() ? "this combination of modifiers and types does not exist" : why);
  op.flags |= match.form.flags;
  return true;
}

void DecodeContext::finishFunction(FunctionInfo &info) {
  auto resolve = [&](std::uint32_t label) {
    const std::uint32_t op = state->labelOps[label];
    return op == unplaced ? info.end - 1 : op;
  };
  for (std::uint32_t i = info.entry; i < info.end; ++i) {
    FlowEdge &f = flows[i];
    if (f.kind == FlowEdge::Kind::Branch)
      program->ops[i].aux = f.target = resolve(f.target);
    if (f.kind == FlowEdge::Kind::IndexedBranch) {
      for (std::uint32_t &t : f.targets)
        t = resolve(t);
      program->ops[i].aux = addNumbers(f.targets);
    }
    program->edges.push_back({f.kind, f.guarded, f.visible, static_cast<std::uint32_t>(f.targets.size())});
    program->observable.push_back(f.visible || f.observes || program->ops[i].kind != Plain);
  }
  const FlowGraph graph(flows, info.entry, info.end);
  program->order.resize(program->ops.size());
  std::uint32_t next = info.entry;
  for (std::uint32_t block : weakTopologicalOrder(graph))
    for (std::uint32_t op = graph.starts[block]; op < graph.starts[block + 1]; ++op)
      program->order[op] = next++;
  for (std::uint32_t i = info.entry; i < info.end; ++i)
    if (flows[i].kind == FlowEdge::Kind::Branch && isBackward(i, flows[i].target))
      program->ops[i].flags |= backwardFlag;
  guardWgmma(info, graph);
  placeRegisters(info, graph);
}

void DecodeContext::placeRegisters(FunctionInfo &info, const FlowGraph &graph) {
  // Constants and special registers keep their places; they were filled when the warp was made.
  std::vector<char> fixed(program->registerBytes / 128, 0);
  for (const ConstantSlot &c : program->constants)
    fixed[c.slot / 128] = 1;
  for (const SpecialSlot &s : program->specials)
    fixed[s.slot / 128] = 1;
  for (const auto &r : state->registers)
    if (!fixed[r.first / 128])
      info.registers.push_back(r);
  // A result in a register is read where the function returns.
  for (const CallValue &v : info.returns)
    if (v.isRegister)
      for (std::uint32_t i = info.entry; i < info.end; ++i)
        if (flows[i].kind == FlowEdge::Kind::Exit)
          accesses.push_back({i, v.where, static_cast<std::uint8_t>(slotUnits(v.bytes)), false, true});
  const RegisterPlan plan = planRegisters(graph, accesses, info.registers);
  std::vector<Slot> moved(program->registerBytes / 128, noSlot);
  for (std::size_t i = 0; i < info.registers.size(); ++i)
    for (unsigned u = 0; u < slotUnits(info.registers[i].second); ++u)
      moved[info.registers[i].first / 128 + u] = plan.places[i] == trashSlot ? trashSlot : plan.places[i] + 128 * u;
  auto move = [&](Slot &slot) {
    if (slot != noSlot && moved[slot / 128] != noSlot)
      slot = moved[slot / 128];
  };
  for (std::uint32_t i = info.entry; i < info.end; ++i) {
    Op &op = program->ops[i];
    for (Slot *slot : {&op.d, &op.d2, &op.s[0], &op.s[1], &op.s[2], &op.s[3], &op.guard})
      move(*slot);
    if (op.flags & callFlag)
      for (auto *list : {&program->calls[op.aux].arguments, &program->calls[op.aux].returns})
        for (CallValue &v : *list)
          if (v.isRegister)
            move(v.where);
  }
  for (; poolDone < program->pool.size(); ++poolDone)
    if (poolHoldsSlot[poolDone])
      move(program->pool[poolDone]);
  for (auto *list : {&info.parameters, &info.returns})
    for (CallValue &v : *list)
      if (v.isRegister)
        move(v.where);
  for (auto &r : info.registers)
    move(r.first);
  std::sort(info.registers.begin(), info.registers.end());
  info.registers.erase(std::unique(info.registers.begin(), info.registers.end()), info.registers.end());
  std::erase_if(info.registers, [](const auto &r) { return r.first == trashSlot; });
  program->poisoned.insert(program->poisoned.end(), plan.unwritten.begin(), plan.unwritten.end());
}

void DecodeContext::finish() {
  Program &p = *program;
  // Recursion: a function that a call inside it may reach again.
  const std::size_t n = p.functions.size();
  std::vector<std::vector<std::uint32_t>> callees(n);
  for (const FunctionInfo &f : p.functions) {
    auto &list = callees[static_cast<std::size_t>(&f - p.functions.data())];
    for (std::uint32_t i = f.entry; i < f.end; ++i)
      if (p.ops[i].flags & callFlag) {
        const CallSite &site = p.calls[p.ops[i].aux];
        if (site.builtin != Builtin::None)
          continue;
        if (site.function != CallSite::indirect)
          list.push_back(site.function);
        else
          for (std::uint32_t k = 1; k < n; ++k)
            list.push_back(k);
      }
  }
  bool recursive = false;
  // Longest chain of frames, by depth-first search with the state of each function.
  std::vector<std::uint64_t> depth(n, 0);
  std::vector<char> mark(n, 0);
  std::vector<std::pair<std::uint32_t, std::size_t>> stack{{0, 0}};
  while (!stack.empty()) {
    const std::uint32_t f = stack.back().first;
    mark[f] = 1;
    if (stack.back().second < callees[f].size()) {
      const std::uint32_t c = callees[f][stack.back().second++];
      if (mark[c] == 1)
        recursive = true;
      else if (mark[c] == 0)
        stack.emplace_back(c, 0);
      continue;
    }
    for (std::uint32_t c : callees[f])
      depth[f] = std::max(depth[f], depth[c]);
    depth[f] += p.functions[f].frameBytes;
    mark[f] = 2;
    stack.pop_back();
  }
  if (recursive)
    for (std::size_t f = 0; f < n; ++f) {
      std::vector<char> seen(n, 0);
      std::vector<std::uint32_t> todo(callees[f]);
      while (!todo.empty()) {
        const std::uint32_t c = todo.back();
        todo.pop_back();
        if (seen[c])
          continue;
        seen[c] = 1;
        todo.insert(todo.end(), callees[c].begin(), callees[c].end());
      }
      p.functions[f].recursive = seen[f];
    }
  p.localBytes = depth[0] + (recursive || dynamicStack ? dynamicStackBytes : 0);
  p.info.localBytesPerThread = p.functions[0].frameBytes;

  if (p.sharedStatic > options.target->sharedStatic)
    errors.push_back(module.fileName + ": " + shortName(p.info.name) + ": static shared memory takes " +
                     std::to_string(p.sharedStatic) + " bytes, assemblers for " + std::string(options.target->name) +
                     " take " + std::to_string(options.target->sharedStatic) +
                     " (declare it .extern and give its size at the launch: --shared)");
  const std::uint32_t dynamicBase = (p.sharedBegin + p.sharedStatic + dynamicAlign - 1) / dynamicAlign * dynamicAlign;
  if (!dynamicConstants.empty() || !dynamicNames.empty())
    p.sharedStatic = dynamicBase - p.sharedBegin;
  for (const auto &[constant, addend] : dynamicConstants) {
    p.constants[constant].low = dynamicBase + addend;
    if (p.constants[constant].bytes == 4)
      p.constants[constant].low &= 0xFFFFFFFFu;
  }
  for (std::size_t i : dynamicNames)
    p.sharedNames[i].begin = p.sharedNames[i].end = dynamicBase;
  p.info.staticSharedBytes = p.sharedStatic;

  if (!orderedResults.empty() && !p.seesOthers) {
    std::vector<char> isRead(p.registerBytes / 128, 0);
    for (const SlotAccess &a : accesses)
      if (!a.write)
        isRead[a.slot / 128] = 1;
    for (Slot slot : orderedResults)
      p.seesOthers |= isRead[slot / 128] != 0;
    p.inOrder |= p.seesOthers;
  }
}

Result<std::unique_ptr<Program>> decodeEntry(const ptx::Module &module, std::size_t entry,
                                             const DecodeOptions &options) {
  DecodeContext context(module, options);
  return context.run(entry);
}

} // namespace kiln::emulator
