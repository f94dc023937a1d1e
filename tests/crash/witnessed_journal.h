// A journal that somebody listens to: what passes through to the real one is written down.
#pragma once

#include <span>

#include "crash/holds.h"
#include "lockd/clock.h"
#include "lockd/journal.h"

namespace lockd::crash {

// Writes down what is appended.
class Scribe {
 public:
  // Where `events` begin and end. A description tells of what was appended before it.
  virtual void appended(Position begin, Position end, std::span<const Event> events,
                        bool is_description, Time now) = 0;

 protected:
  ~Scribe() = default;
};

class WitnessedJournal final : public Journal, private Journal::Source {
 public:
  // `scribe` may be null.
  WitnessedJournal(Journal& journal, const Clock& clock, Scribe* scribe)
      : journal_(journal), clock_(clock), scribe_(scribe) {}

  bool recover(const std::function<void(const Event&)>& apply) override {
    return journal_.recover(apply);
  }
  Position append(std::span<const Event> events) override;
  void commit(Position position) override {
    if (heard_ == nullptr) journal_.commit(position);
  }
  Position durable() const noexcept override { return journal_.durable(); }
  State state() const noexcept override { return journal_.state(); }
  bool is_behind() const noexcept override { return journal_.is_behind(); }
  void attach(Journal::Source* source) override;

  // What the engine says it holds. Not while it writes a snapshot.
  Holds describe();
  bool is_snapshot_open() const { return snapshot_open_; }
  // From now on nothing reaches the journal: what the engine does is a question, not a deed.
  void cut_off() { heard_ = &after_cut_off_; }

 private:
  void progressed() noexcept override { source_->progressed(); }
  bool describe_some(bool from_start) override;
  bool fits(std::size_t size) override { return source_->fits(size); }
  bool apply(const Event& event) override { return source_->apply(event); }
  void lead(Position from, Duration lease_min) override { source_->lead(from, lease_min); }

  Journal& journal_;
  const Clock& clock_;
  Scribe* const scribe_;
  Journal::Source* source_ = nullptr;
  Holds* heard_ = nullptr;  // takes the events instead of the journal
  Holds after_cut_off_;
  bool describing_ = false;
  bool snapshot_open_ = false;
};

}  // namespace lockd::crash
