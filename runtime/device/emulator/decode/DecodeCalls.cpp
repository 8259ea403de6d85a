// call: the values that go over, and the functions that the emulator provides itself.
#include "runtime/device/emulator/decode/DecodeState.h"

namespace kiln::emulator {

using ptx::Operand;

static Builtin builtinNamed(std::string_view name) {
  return name == "vprintf"        ? Builtin::Vprintf
         : name == "__assertfail" ? Builtin::AssertFail
         : name == "malloc"       ? Builtin::Malloc
         : name == "free"         ? Builtin::Free
                                  : Builtin::None;
}

bool DecodeContext::call(const ptx::Instruction &instruction, Op &op) {
  const Operand *returns = nullptr, *callee = nullptr, *arguments = nullptr;
  std::string_view prototype;
  for (const Operand &operand : instruction.operands) {
    if (operand.kind == Operand::Kind::List)
      (callee ? arguments : returns) = &operand;
    else if (operand.kind == Operand::Kind::Register && !callee)
      callee = &operand;
    else if (operand.kind == Operand::Kind::Register)
      prototype = operand.text;
    else
      return error(instruction, "expected (results), function, (arguments), prototype");
  }
  if (!callee)
    return error(instruction, "names no function");
  const Symbol *target = find(callee->text);
  if (!target)
    return error(instruction, "function '" + std::string(callee->text) + "' is not declared");

  CallSite site;
  auto values = [&](const Operand *list, std::vector<CallValue> &out, bool result) {
    if (!list)
      return true;
    for (const Operand &operand : list->elements) {
      CallValue value;
      const Symbol *symbol = operand.kind == Operand::Kind::Register ? find(operand.text) : nullptr;
      if (symbol && symbol->kind == Symbol::Kind::Frame) {
        value.where = static_cast<std::uint32_t>(symbol->address);
        value.bytes = static_cast<std::uint32_t>(symbol->size);
      } else if (symbol && symbol->kind == Symbol::Kind::Register) {
        value.isRegister = true;
        value.where = symbol->slot;
        value.bytes = symbol->bytes;
        result ? wrote(symbol->slot, symbol->bytes) : read(symbol->slot, symbol->bytes);
      } else if (!result && operand.kind == Operand::Kind::Integer) {
        value.isRegister = true;
        value.bytes = 8;
        value.where = constant(operand.bits, 8);
      } else if (operand.kind == Operand::Kind::Sink) {
        value.isRegister = true;
        value.where = trashSlot;
        value.bytes = 16;
      } else {
        return error(instruction, "'" + std::string(operand.text) + "' is neither a register nor a .param variable");
      }
      out.push_back(value);
    }
    return true;
  };
  if (!values(arguments, site.arguments, false) || !values(returns, site.returns, true))
    return false;

  op.run = internalHandler("%call");
  if (target->kind == Symbol::Kind::Function) {
    const ptx::Function &function = module.functions[target->address];
    if (!function.hasBody) {
      site.builtin = builtinNamed(function.name);
      if (site.builtin == Builtin::None)
        return error(instruction,
                     "function '" + std::string(function.name) + "' is declared but not defined in this module");
      const std::size_t wanted = site.builtin == Builtin::Vprintf ? 2 : site.builtin == Builtin::AssertFail ? 5 : 1;
      if (site.arguments.size() != wanted)
        return error(instruction, std::string(function.name) + " takes " + std::to_string(wanted) + " arguments");
      op.run = internalHandler("%builtin");
      if (site.builtin != Builtin::AssertFail)
        needsOrder(); // output and heap addresses depend on the order of blocks
    } else {
      if (function.isEntry)
        return error(instruction, "'" + std::string(function.name) + "' is a kernel");
      if (function.parameters.size() != site.arguments.size() || function.returns.size() != site.returns.size())
        return error(instruction, "'" + std::string(function.name) + "' takes " +
                                      std::to_string(function.parameters.size()) + " arguments and gives " +
                                      std::to_string(function.returns.size()) + " results");
      site.function = functionFor(target->address);
    }
  } else if (target->kind == Symbol::Kind::Register && target->bytes == 8) {
    if (!prototype.empty()) {
      const Symbol *list = find(prototype);
      if (!list || list->kind != Symbol::Kind::List)
        return error(instruction, "'" + std::string(prototype) + "' is not a prototype");
    }
    op.s[0] = target->slot;
    read(target->slot, 8);
    op.run = internalHandler("%callindirect");
    if (!indirectCalls) {
      indirectCalls = true;
      // Functions whose addresses stand in the initialisers of variables may be called.
      for (const ptx::Variable &v : module.variables)
        for (const ptx::Variable::Init &init : v.init)
          if (init.kind == ptx::Variable::Init::Kind::Symbol)
            if (const auto f = functionByName.find(init.symbol);
                f != functionByName.end() && module.functions[f->second].hasBody)
              functionFor(f->second);
    }
  } else {
    return error(instruction, "'" + std::string(callee->text) + "' is not a function");
  }
  op.aux = static_cast<std::uint32_t>(program->calls.size());
  op.flags = callFlag;
  program->calls.push_back(std::move(site));
  return true;
}

} // namespace kiln::emulator
