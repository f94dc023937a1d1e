#include "lockctl/output/top_view.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "lockctl/output/output.h"

namespace lockd::cli {
namespace {

std::string padded(std::string text, std::size_t columns) {
  text = cut_to(text, columns);
  text.append(columns - columns_of(text), ' ');
  return text;
}

std::string padded_left(std::string text, std::size_t columns) {
  text = cut_to(text, columns);
  text.insert(0, columns - columns_of(text), ' ');
  return text;
}

// How often a second between two snapshots; "-" when that is not known.
std::string rate(const TopPicture& picture, std::uint64_t TotalsView::*field) {
  if (!picture.before || !picture.before->view.totals || !picture.now->view.totals) return "-";
  const double seconds =
      std::chrono::duration<double>(picture.now->at - picture.before->at).count();
  const std::uint64_t now = *picture.now->view.totals.*field;
  const std::uint64_t before = *picture.before->view.totals.*field;
  if (seconds <= 0 || now < before) return "-";  // another process has taken its place
  const double per_second = static_cast<double>(now - before) / seconds;
  if (per_second >= 100) return grouped(static_cast<std::uint64_t>(std::llround(per_second)));
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", per_second);
  return text;
}

std::string heading(const TopPicture& picture) {
  std::string text = "lockctl top  " + picture.server;
  if (!picture.now) return text;
  const ServerView& view = picture.now->view;
  if (!view.version.empty()) text += "  " + printable(view.version);
  if (view.uptime) text += "  up " + human(*view.uptime);
  if (view.draining) text += "  draining";
  if (view.ready == false) text += "  not ready";
  return text;
}

std::vector<std::string> stats(const TopPicture& picture) {
  const ServerView& view = picture.now->view;
  std::vector<std::string> lines{
      "connections " + grouped(view.connections) + "   keys " + grouped(view.keys) +
          (view.keys_max == 0 ? "" : " of " + grouped(view.keys_max)) + " (" +
          grouped(view.keys_idle) + " idle)   listeners " + grouped(view.listeners),
      "locks held " + grouped(view.locks_held) + ", waiting " + grouped(view.lock_waiters) +
          "   semaphore holders " + grouped(view.semaphore_holders) + ", waiting " +
          grouped(view.semaphore_waiters)};
  if (view.totals) {
    lines.push_back("a second: grants " + rate(picture, &TotalsView::grants) + ", contended " +
                    rate(picture, &TotalsView::contended) + ", renewals " +
                    rate(picture, &TotalsView::renewals));
    lines.push_back("          releases " + rate(picture, &TotalsView::releases) + ", expiries " +
                    rate(picture, &TotalsView::expiries) + ", timeouts " +
                    rate(picture, &TotalsView::timeouts));
  }
  return lines;
}

// The columns of the table; the key and the holder share what the others leave.
struct Layout {
  static constexpr std::size_t kNumbers = 2 * 9 + 3 * 8 + 5 * 2;  // and the gaps

  explicit Layout(std::size_t columns) {
    const std::size_t left = columns > kNumbers + 4 ? columns - kNumbers - 2 : 2;
    key = left * 3 / 5;
    holder = left - key;
  }

  std::string row(const std::string& name, const std::string& waiters, const std::string& holders,
                  const std::string& who, const std::string& held, const std::string& waited,
                  const std::string& expires) const {
    return padded(name, key) + "  " + padded_left(waiters, 9) + "  " + padded_left(holders, 9) +
           "  " + padded(who, holder) + "  " + padded_left(held, 8) + "  " +
           padded_left(waited, 8) + "  " + padded_left(expires, 8);
  }

  std::size_t key;
  std::size_t holder;
};

// The most telling first: there is not always room for all of it.
std::string who_text(const HoldView& hold) {
  const IdentityView& identity = hold.identity;
  std::string text = text_or_dash(identity.client.empty() ? hold.holder : identity.client);
  for (const std::string& more :
       {share_text(hold.mode, hold.permits), identity.note, identity.peer}) {
    if (!more.empty()) text += ' ' + more;
  }
  return printable(text);
}

std::string key_row(const KeyView& key, const Layout& layout) {
  const HoldView none;
  const HoldView& hold = key.holds.empty() ? none : key.holds.front();
  return layout.row(printable(key.key), std::to_string(key.waiters), count_text(key),
                    who_text(hold), if_known(longest_hold(key)),
                    key.queue.empty() ? "-" : human(key.queue.front().waited),
                    if_known(hold.expires_in));
}

}  // namespace

void choose(std::vector<KeyView>& keys, const TopChoice& choice) {
  std::erase_if(
      keys, [&](const KeyView& key) { return key.key.find(choice.filter) == std::string::npos; });
  std::stable_sort(keys.begin(), keys.end(), [&](const KeyView& a, const KeyView& b) {
    return comes_before(a, b, choice.order);
  });
}

TopControls::Answer TopControls::press(char key) {
  if (typing_) return type(key);
  switch (key) {
    case 'q':
    case 'Q':
    case '\x04': return Answer::quit;
    case 'k': return sort(KeyOrder::key);
    case 'w': return sort(KeyOrder::waiters);
    case 't': return sort(KeyOrder::wait);
    case 'h': return sort(KeyOrder::held);
    case '/': typing_ = true; return Answer::redraw;
    default: return Answer::nothing;
  }
}

TopControls::Answer TopControls::sort(KeyOrder order) {
  choice_.order = order;
  return Answer::redraw;
}

TopControls::Answer TopControls::type(char key) {
  constexpr std::size_t kFilterSizeMax = 256;  // as that of a key
  constexpr char kEscape = '\x1b';
  constexpr char kDelete = '\x7f';
  std::string& filter = choice_.filter;
  const auto byte = static_cast<unsigned char>(key);
  if (key == kEscape) filter.clear();
  if (key == kEscape || key == '\n' || key == '\r') {
    typing_ = false;
  } else if (key == kDelete || key == '\b') {
    while (!filter.empty() && (filter.back() & 0xC0) == 0x80) filter.pop_back();
    if (!filter.empty()) filter.pop_back();
  } else if (byte >= 0x20 && filter.size() < kFilterSizeMax) {
    filter += key;
  }
  return Answer::redraw;
}

std::string TopControls::text() const {
  if (typing_)
    return "only keys with: " + printable(choice_.filter) + "_   (Enter, or Esc for all)";
  const auto marked = [&](KeyOrder order, const char* text) {
    return choice_.order == order ? '[' + std::string(text) + ']' : std::string(text);
  };
  std::string text = "q quits   sort: " + marked(KeyOrder::key, "k key") + ' ' +
                     marked(KeyOrder::waiters, "w waiters") + ' ' +
                     marked(KeyOrder::wait, "t time waited") + ' ' +
                     marked(KeyOrder::held, "h held") + "   / filters";
  if (!choice_.filter.empty()) text += ", now " + in_quotes(choice_.filter);
  return text;
}

std::string draw(const TopPicture& picture, ScreenSize size, const Style& style) {
  std::vector<std::string> lines{style.reversed(padded(heading(picture), size.columns))};
  const auto add = [&](const std::string& line) { lines.push_back(cut_to(line, size.columns)); };
  if (picture.now) {
    for (const std::string& line : stats(picture)) add(line);
  } else if (picture.trouble.empty()) {
    add("asking ...");
  }
  lines.push_back(picture.trouble.empty() ? "" : style.red(cut_to(picture.trouble, size.columns)));
  if (picture.now) {
    const Layout layout(size.columns);
    lines.push_back(style.bold(
        cut_to(layout.row("KEY", "WAITERS", "HOLDERS", "HOLDER", "HELD", "WAITED", "EXPIRES"),
               size.columns)));
    for (const KeyView& key : picture.now->keys) {
      if (lines.size() + 1 >= size.rows) break;
      add(key_row(key, layout));
    }
  }
  if (lines.size() + 1 < size.rows) lines.resize(size.rows - 1);
  std::string footer = picture.footer;
  if (picture.now && picture.now->is_partial) footer += "  (some of the keys)";
  lines.push_back(style.dim(cut_to(footer, size.columns)));
  // A terminal of a line or two shows what it can.
  if (lines.size() > size.rows) lines.resize(size.rows);
  std::string frame;
  for (const std::string& line : lines) frame += (&line == &lines.front() ? "" : "\n") + line;
  return frame;
}

}  // namespace lockd::cli
