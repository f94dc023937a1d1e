#include "ha/leader_record.h"

namespace lockd {
namespace {

// Takes the line "<name>=<value>" from the front of `text`.
bool take_line(std::string_view& text, std::string_view name, std::string* value) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos || !text.starts_with(name)) return false;
  *value = text.substr(name.size(), end - name.size());
  text.remove_prefix(end + 1);
  return true;
}

}  // namespace

std::string to_text(const LeaderRecord& record) {
  return "incarnation=" + record.incarnation + "\nnode=" + record.node +
         "\naddress=" + record.address + "\npolicy=" + record.policy + "\n";
}

// Lines that a later version may add are passed over.
std::optional<LeaderRecord> leader_record_in(std::string_view text) {
  LeaderRecord record;
  if (!take_line(text, "incarnation=", &record.incarnation)) return {};
  if (!take_line(text, "node=", &record.node)) return {};
  if (!take_line(text, "address=", &record.address)) return {};
  if (!take_line(text, "policy=", &record.policy)) return {};
  return record;
}

}  // namespace lockd
