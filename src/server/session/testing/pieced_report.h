// A report that is what it was given, piece by piece. For tests.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/reports/report.h"

namespace lockd {

class PiecedReport final : public ReportRest, public std::enable_shared_from_this<PiecedReport> {
 public:
  explicit PiecedReport(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {}

  // What a server would answer.
  static ReportPiece answer(const ReportRequest& request, const std::vector<std::string>& pieces) {
    if (request.rest != nullptr) return request.rest->next();
    return std::make_shared<PiecedReport>(pieces)->next();
  }

  ReportPiece next() override {
    std::string text = pieces_[made_++];
    return {std::move(text), 0, made_ < pieces_.size() ? shared_from_this() : nullptr};
  }

 private:
  const std::vector<std::string> pieces_;
  std::size_t made_ = 0;
};

}  // namespace lockd
