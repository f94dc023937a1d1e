// Records in etcd are lines of "<name>=<value>", in a fixed order: whoever looks with etcdctl can
// read them. Lines that a later version adds behind them are passed over.
#pragma once

#include <string>
#include <string_view>

namespace lockd {

// Takes the line "<name><value>" from the front of `text`. False if another is there.
inline bool take_line(std::string_view& text, std::string_view name, std::string* value) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos || !text.starts_with(name)) return false;
  *value = text.substr(name.size(), end - name.size());
  text.remove_prefix(end + 1);
  return true;
}

}  // namespace lockd
