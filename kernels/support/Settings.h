//===- Settings.h - NAME=VALUE onto a configuration struct -------------------===//
#ifndef KILN_KERNELS_SUPPORT_SETTINGS_H
#define KILN_KERNELS_SUPPORT_SETTINGS_H

#include "kernels/support/Family.h"
#include "support/Text.h"

#include <charconv>
#include <variant>

namespace kiln::kernels {

/// Where a setting goes.
struct SettingSlot {
  std::string_view name;
  std::variant<int *, bool *> field;
};

/// Writes each setting to its slot.  The failure names the setting and what exists.
inline Status applySettings(const Settings &settings, std::initializer_list<SettingSlot> slots) {
  for (const auto &[name, text] : settings) {
    std::vector<std::string> names;
    const SettingSlot *slot = nullptr;
    for (const SettingSlot &s : slots) {
      names.emplace_back(s.name);
      if (s.name == name)
        slot = &s;
    }
    if (!slot)
      return Status::invalid("there is no setting '" + name + "'", "the settings are " + join(names));
    if (bool *const *flag = std::get_if<bool *>(&slot->field)) {
      if (text != "true" && text != "false")
        return Status::invalid(name + "=" + text + ": expected true or false");
      **flag = text == "true";
      continue;
    }
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < -1 || value > 1 << 20)
      return Status::invalid(name + "=" + text + ": expected a whole number up to 2^20");
    *std::get<int *>(slot->field) = value;
  }
  return {};
}

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_SETTINGS_H
