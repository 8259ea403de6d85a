#include "runtime/tune/Space.h"

#include "support/Text.h"

#include <algorithm>

namespace kiln::tune {

Result<Space> Space::create(std::vector<Parameter> parameters) {
  Space out;
  out.all = std::move(parameters);
  if (out.all.empty())
    return Status::invalid("the space has no parameters", "name some: --set NAME=V1,V2");
  double size = 1;
  for (std::size_t i = 0; i < out.all.size(); ++i) {
    const Parameter &p = out.all[i];
    if (p.values.empty())
      return Status::invalid("parameter '" + p.name + "' has no values: the space is empty", "give it at least one");
    for (std::size_t v = 0; v < p.values.size(); ++v)
      if (std::find(p.values.begin(), p.values.begin() + static_cast<std::ptrdiff_t>(v), p.values[v]) !=
          p.values.begin() + static_cast<std::ptrdiff_t>(v))
        return Status::invalid("parameter '" + p.name + "' has the value " + p.values[v] + " twice", "give it once");
    for (std::size_t j = 0; j < i; ++j)
      if (out.all[j].name == p.name)
        return Status::invalid("parameter '" + p.name + "' is there twice", "give all of its values at once");
    size *= static_cast<double>(p.values.size());
  }
  if (size > static_cast<double>(most))
    return Status::invalid(format("the space has %.0f configurations; at most %zu can be judged", size, most),
                           "restrict parameters: --set NAME=V1,V2");
  out.count = static_cast<std::size_t>(size);
  return out;
}

std::size_t Space::add(Configuration configuration) {
  added = std::move(configuration);
  return count;
}

Configuration Space::at(std::size_t number) const {
  if (added && number == count)
    return *added;
  Configuration out(all.size());
  for (std::size_t i = all.size(); i-- > 0; number /= all[i].values.size())
    out[i] = all[i].values[number % all[i].values.size()];
  return out;
}

std::optional<std::size_t> Space::numberOf(const Configuration &configuration) const {
  std::size_t out = 0;
  if (added && configuration == *added)
    return count;
  if (configuration.size() != all.size())
    return {};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto found = std::find(all[i].values.begin(), all[i].values.end(), configuration[i]);
    if (found == all[i].values.end())
      return {};
    out = out * all[i].values.size() + static_cast<std::size_t>(found - all[i].values.begin());
  }
  return out;
}

std::vector<std::size_t> Space::neighbours(std::size_t number) const {
  std::vector<std::size_t> out;
  if (number >= count)
    return out;
  std::size_t step = 1; // between neighbours of the parameter
  for (std::size_t i = all.size(); i-- > 0; step *= all[i].values.size()) {
    const std::size_t place = number / step % all[i].values.size();
    if (place > 0)
      out.push_back(number - step);
    if (place + 1 < all[i].values.size())
      out.push_back(number + step);
  }
  return out;
}

std::string Space::text(const Configuration &configuration) const {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < all.size(); ++i)
    parts.push_back(all[i].name + "=" + configuration[i]);
  return join(parts);
}

} // namespace kiln::tune
