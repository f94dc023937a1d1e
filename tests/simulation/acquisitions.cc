#include "simulation/acquisitions.h"

#include <chrono>

namespace lockd::simulation {

Acquisition* Acquisitions::find(Key key, std::string_view secret) {
  if (secret.empty()) return nullptr;
  for (Acquisition& acquisition : of_keys_[index(key)]) {
    if (secret.ends_with(acquisition.secret)) return &acquisition;
  }
  return nullptr;
}

std::vector<Acquisition*> Acquisitions::recent(Key key) {
  constexpr std::size_t kRecent = 8;
  std::vector<Acquisition*> found;
  std::deque<Acquisition>& all = of_keys_[index(key)];
  for (auto each = all.rbegin(); each != all.rend() && found.size() < kRecent; ++each) {
    if (!each->is_retired) found.push_back(&*each);
  }
  return found;
}

void Acquisitions::prune(Time now, const Promises& promises) {
  for (std::size_t i = 0; i < of_keys_.size(); ++i) {
    const auto number = static_cast<std::uint32_t>(i % keys_);
    const Key key{i < keys_ ? Kind::lock : Kind::semaphore, number};
    std::erase_if(of_keys_[i], [&](const Acquisition& acquisition) {
      return acquisition.on_their_way == 0 &&
             acquisition.asked_at + std::chrono::seconds(60) < now &&
             promises.find_by_secret(key, acquisition.secret) == nullptr;
    });
  }
}

}  // namespace lockd::simulation
