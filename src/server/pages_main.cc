// server_pages: writes the manual pages of dflockd and lockd-server, and the file of settings that
// is installed with them. Run by the build.
//
// usage: server_pages <directory>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "server/option_pages.h"
#include "server/option_table.h"

namespace lockd {
namespace {

void write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return;
  std::fprintf(stderr, "server_pages: %s: cannot be written\n", path.c_str());
  std::exit(EXIT_FAILURE);
}

void write_pages(const std::string& directory) {
  for (const Flavour flavour : {Flavour::dflockd, Flavour::lockd_server}) {
    write(directory + '/' + std::string(program_name(flavour)) + ".1", man_page(flavour));
  }
  write(directory + "/dflockd.toml", starting_config(Flavour::dflockd));
}

}  // namespace
}  // namespace lockd

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: server_pages <directory>\n", stderr);
    return EXIT_FAILURE;
  }
  lockd::write_pages(argv[1]);
}
