#include "tests/barriers/SubjectArguments.h"

#include <gtest/gtest.h>

namespace kiln::test {

using Role = language::TensorPart::Role;

std::vector<std::string> divisibleFacts(const language::Kernel &kernel, bool aligned) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < kernel.arguments().size(); ++i)
    if (const auto &part = kernel.arguments()[i].part)
      if (part->role == Role::Pointer ||
          (aligned && part->role == Role::Stride && part->dim + 1 < part->rank && !part->optional))
        out.push_back(std::to_string(i) + "=16");
  return out;
}
std::vector<std::string> unitFacts(const language::Kernel &kernel) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < kernel.arguments().size(); ++i)
    if (const auto &part = kernel.arguments()[i].part; part && part->role == Role::Stride && !part->optional)
      if (part->dim + 1 == part->rank)
        out.push_back(std::to_string(i) + "=1");
  return out;
}

std::vector<Argument> argumentsOf(const language::Kernel &kernel, const std::map<std::string, Whole> &tensors,
                                  const std::map<std::string, Argument> &numbers) {
  std::vector<Argument> out;
  for (const auto &a : kernel.arguments()) {
    if (!a.part) {
      EXPECT_TRUE(numbers.contains(a.name)) << "no value for the argument '" << a.name << "'";
      out.push_back(numbers.at(a.name));
      continue;
    }
    const auto found = tensors.find(a.part->tensor);
    const auto d = static_cast<std::size_t>(a.part->dim);
    if (found == tensors.end())
      out.push_back(std::int64_t(0));
    else if (a.part->role == Role::Pointer)
      out.push_back(found->second.address);
    else
      out.push_back(a.part->role == Role::Extent ? found->second.extents[d] : found->second.strides[d]);
  }
  return out;
}

} // namespace kiln::test
