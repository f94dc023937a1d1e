// Sockets on this machine.
#pragma once

#include <netinet/in.h>

#include <cstdint>

namespace lockd {

sockaddr_in loopback(std::uint16_t port);

// A socket that is bound to the port; 0 picks a free one. -1, and errno, when somebody has it.
int bind_to_loopback(std::uint16_t port);
// The same, and listens; the program ends when it cannot.
int listen_on_loopback(std::uint16_t port = 0, int backlog = 128);
std::uint16_t port_of(int socket);

// A port for a server that is killed and must find it free when it is started again: below the
// range from which the system takes ports for connections. Never the same twice. For one thread.
std::uint16_t free_port();

// What is written is sent at once.
void be_prompt(int socket);

}  // namespace lockd
