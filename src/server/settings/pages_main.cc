// server_pages: writes the manual pages and completions of the servers, the files of settings that
// are installed with them, and docs/configuration.md. Run by the build.
//
// usage: server_pages <directory>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "base/version.h"
#include "config/pages.h"
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
  const std::string source = "lockd " + std::string(kVersion);
  for (const Profile profile :
       {Profile::lockd, Profile::dflockd, Profile::lockd_server, Profile::lockd_ha}) {
    const config::Command& server = program(profile);
    const std::string name(server.name);
    write(directory + '/' + name + ".1", config::man_page(config::place_of(server), source));
    write(directory + '/' + name, config::bash_completion(server));
    write(directory + "/_" + name, config::zsh_completion(server));
    write(directory + '/' + name + ".fish", config::fish_completion(server));
    if (profile != Profile::lockd && profile != Profile::lockd_ha) continue;  // no service
    write(directory + '/' + name + ".toml", config::starting_config(name, settings(profile)));
  }
  write(directory + "/configuration.md", configuration_page());
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
