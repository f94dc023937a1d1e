// An engine on a journal in a real directory, to be started again and again.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/testing/eventually.h"
#include "journal/testing/temporary_directory.h"
#include "lockd/engine.h"
#include "lockd/file_journal.h"

namespace lockd {

class FileJournalTest : public testing::Test {
 protected:
  // How long a test waits for what must happen: long, as the machine may be busy.
  static constexpr Duration kSoon = std::chrono::seconds(60);

  void start(Duration sync_interval = {}, std::uint32_t shards = 16) {
    start({.directory = directory_, .sync_interval = sync_interval}, shards);
  }

  void start(FileJournalOptions options, std::uint32_t shards = 16) {
    stop();
    options.log = [this](std::string_view line) {
      const std::lock_guard lock(log_mutex_);
      log_.emplace_back(line);
    };
    journal_ = FileJournal::open(options);
    engine_.emplace(
        EngineOptions{.shards = shards, .clock = &journal_->clock(), .journal = journal_.get()});
  }

  void stop() {
    engine_.reset();
    journal_.reset();
  }

  std::size_t segments() const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      if (entry.path().extension() == ".log") ++count;
    }
    return count;
  }

  bool logged(std::string_view words) {
    const std::lock_guard lock(log_mutex_);
    for (const std::string& line : log_) {
      if (line.find(words) != std::string::npos) return true;
    }
    return false;
  }

  const TemporaryDirectory temporary_;
  const std::string directory_ = temporary_.path() + "/journal";
  std::mutex log_mutex_;
  std::vector<std::string> log_;
  std::unique_ptr<FileJournal> journal_;
  std::optional<Engine> engine_;
};

}  // namespace lockd
