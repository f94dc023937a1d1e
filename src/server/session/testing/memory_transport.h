// A transport to memory: what may leave is handed to sent(), and the peer is there until it closes.
// For the simulation, the fuzz targets and the benchmarks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/session/transport.h"

namespace lockd {

class MemoryTransport : public Transport {
 public:
  void attach(HostedSession& hosted) override { hosted_ = &hosted; }
  std::string& output() override { return output_; }
  void flush() override { send(output_.size()); }
  void cork() override { corked_ = output_.size(); }
  bool uncork() override {
    send(corked_);
    return !output_.empty();
  }
  std::uint64_t bytes_written() const override { return sent_ + output_.size(); }
  void roll_back_output(std::uint64_t from) override {
    output_.resize(std::max(from, sent_) - sent_);
    corked_ = std::min(corked_, output_.size());
  }
  void resume_input() override {}
  bool has_unread() const override { return false; }
  bool input_pending() const override { return false; }
  bool peer_has_left() const override { return false; }
  bool has_room_for(Push) override { return true; }
  void on_turn_end() override {}
  void on_session_end() override {}
  void close_gently() override {
    flush();
    close();
  }

 protected:
  HostedSession& hosted() const { return *hosted_; }
  virtual void sent(std::string_view bytes) = 0;

 private:
  void send(std::size_t size) {
    if (size > 0) sent(std::string_view(output_).substr(0, size));
    output_.erase(0, size);
    sent_ += size;
  }

  HostedSession* hosted_ = nullptr;
  std::string output_;
  std::size_t corked_ = 0;
  std::uint64_t sent_ = 0;
};

}  // namespace lockd
