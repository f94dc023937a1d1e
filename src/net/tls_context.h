// What a server shows its clients over TLS: its certificate and key, and whom it lets in.
//
// TLS 1.2 and later, ciphers with forward secrecy and authentication only, no renegotiation, no
// compression, no session tickets (nothing to steal, nothing to rotate). Made once from files and
// never changed: to reload is to make another one. A channel that was opened keeps what it needs.
// Any thread may open channels.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>

namespace lockd {

struct TlsFiles {
  std::string certificate;  // PEM, with the chain behind it
  std::string key;          // PEM
  std::string client_ca;    // PEM; when not empty, clients must show a certificate signed by it
};

class TlsContext {
 public:
  // Null, and a line for people in `error`, when the files cannot be used.
  static std::shared_ptr<const TlsContext> load(const TlsFiles& files, std::string& error);

  // For SSL_new, which takes a reference of its own.
  SSL_CTX* handle() const {
    return const_cast<boost::asio::ssl::context&>(context_).native_handle();
  }

 private:
  TlsContext();
  std::string use(const TlsFiles& files);

  boost::asio::ssl::context context_;
};

}  // namespace lockd
