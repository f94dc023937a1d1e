// server_pages: writes the manual pages and completions of the servers, the files of settings that
// are installed with them, and docs/configuration.md. Run by the build.
//
// usage: server_pages <directory>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "server/settings/option_pages.h"
#include "server/settings/option_table.h"

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
  for (const Flavour flavour : {Flavour::dflockd, Flavour::lockd_server, Flavour::dflockd_ha}) {
    const std::string name(program_name(flavour));
    write(directory + '/' + name + ".1", man_page(flavour));
    write(directory + '/' + name, bash_completion(flavour));
    write(directory + "/_" + name, zsh_completion(flavour));
    write(directory + '/' + name + ".fish", fish_completion(flavour));
  }
  write(directory + "/configuration.md", configuration_page());
  for (const Flavour flavour : {Flavour::dflockd, Flavour::dflockd_ha}) {
    write(directory + '/' + std::string(program_name(flavour)) + ".toml", starting_config(flavour));
  }
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
