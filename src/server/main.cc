// lockd, and what its links dflockd and lockd-server do: one server, whose profile follows from the
// name it is called by.
#include "server/program.h"

namespace {

lockd::Profile profile_by(const char* path) { return lockd::profile_of(path); }

}  // namespace

int main(int argc, char** argv) {
  return lockd::run_program(argc, argv, {.profile_of = profile_by});
}
