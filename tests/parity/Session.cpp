//===- Session.cpp --------------------------------------------------------===//
#include "tests/parity/Session.h"

#include "support/Text.h"
#include "tests/parity/Generator.h"
#include "tests/parity/Oracle.h"

#include <cstdio>

namespace kiln::parity {

Status Runner::open() {
  device.reset();
  EmulatorOptions options;
  options.secondsBudget = 60;
  KILN_ASSIGN(device, openDevice(name, options));
  return {};
}

Result<Columns> Runner::run(const Form &form, const Cases &cases) {
  if (!device)
    KILN_TRY(open());
  auto results = runForm(*device, form, cases);
  if (!results.ok() && !results.status().message().starts_with("load"))
    device.reset();
  return results;
}

void Tally::add(const Form &form, const Difference &d) {
  if (opcodes.empty() || opcodes.back().first != form.opcode())
    opcodes.emplace_back(form.opcode(), Opcode{});
  Opcode &o = opcodes.back().second;
  ++o.forms;
  o.cases += d.compared;
  o.undefined += d.undefined;
  if (form.approximate() && d.worstUlp > 0)
    ulps.push_back(format("  %-28s %9.3f ulp, %zu results", form.name.c_str(), d.worstUlp, d.compared));
  if (d.cases == 0)
    return;
  ++differing;
  ++o.differing;
  o.differingCases += d.cases;
  o.lines.push_back(format("    %s: %zu of %zu; %s", form.name.c_str(), d.cases, d.compared, d.first.c_str()));
}

void Tally::print() const {
  std::size_t forms = 0, cases = 0, differingCases = 0;
  for (const auto &[name, o] : opcodes) {
    forms += o.forms;
    cases += o.cases;
    differingCases += o.differingCases;
  }
  std::printf("\n%s: %zu forms, %zu results compared; %zu forms differ in %zu results\n", title.c_str(), forms, cases,
              differing, differingCases);
  for (const auto &[name, o] : opcodes) {
    if (o.differing == 0)
      continue;
    std::printf("  %s: %zu of %zu forms differ\n", name.c_str(), o.differing, o.forms);
    for (const std::string &line : o.lines)
      std::printf("%s\n", line.c_str());
  }
  if (!ulps.empty())
    std::printf("  worst distance from the true value (normal results):\n");
  for (const std::string &line : ulps)
    std::printf("  %s\n", line.c_str());
}

Difference compareOracle(const Form &form, const Cases &cases, const Columns &got) {
  if (form.approximate())
    return compareApproximate(form, cases, got);
  Columns want = expected(form, cases);
  if (want.empty())
    return {};
  return compareExact(form, cases, got, want, 0, cases.count(), "host");
}

std::vector<const Form *> selectForms(std::string_view filter) {
  std::vector<const Form *> selected;
  for (const Form &form : allForms())
    if (form.name.find(filter) != std::string::npos)
      selected.push_back(&form);
  return selected;
}

} // namespace kiln::parity
