// One end of a TLS connection, without a socket: sealed bytes go in and come out.
//
// OpenSSL works on memory, so that what goes to the wire can be sent with the connection's one
// write per turn, and nothing is read that was not asked for. Used by one thread at a time.
#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockd {

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
using SslHandle = std::unique_ptr<SSL, FreeSsl>;

// What a certificate says of whose it is.
struct CertificateNames {
  std::vector<std::string> common_names{};       // of its subject
  std::vector<std::string> alternative_names{};  // of hosts, of mailboxes, and URIs
};

class TlsChannel {
 public:
  // `ssl` knows which end it is: see SSL_set_accept_state and SSL_set_connect_state. Throws
  // std::bad_alloc when it is null, as SSL_new leaves it when there is no memory.
  explicit TlsChannel(SslHandle ssl);

  enum class Progress {
    more,     // there is plain text; there may be more
    drained,  // nothing is left to open
    ended,    // the peer has said that it sends no more
    failed,   // it cannot go on: see error()
  };

  // OpenSSL's memory grows to the largest piece it was given, and stays so: pieces of one record.
  static constexpr std::size_t kPiece = 16 * 1024;

  // Takes in what came from the wire, at most kPiece. open() must have drained what came before.
  void receive(std::string_view sealed);
  // Goes on with the handshake, then fills `plain` from its beginning; `size` says how far.
  Progress open(std::span<char> plain, std::size_t& size);

  // Whether the handshake is done. Before that nothing can be sealed.
  bool established() const { return SSL_is_init_finished(ssl_.get()) == 1; }
  // Appends to sealed(). False when that failed. Precondition: established().
  bool seal(std::string_view plain);
  // The last that is said: that nothing more will come.
  void end();

  // What is to be sent. Whoever has sent it takes it away.
  std::string& sealed() { return sealed_; }
  const std::string& sealed() const { return sealed_; }
  // What OpenSSL keeps of what came: the part of a record, for which it has room for a whole one.
  std::size_t unopened() const {
    const bool has_part = BIO_ctrl_pending(incoming_) > 0 || SSL_has_pending(ssl_.get()) == 1;
    return has_part ? kPiece : 0;
  }
  std::string_view error() const { return error_; }
  // X509_V_OK, or why the peer's certificate was not believed.
  long verify_result() const { return SSL_get_verify_result(ssl_.get()); }
  // Of the certificate that the peer has shown; none: it has shown none. Precondition:
  // established().
  CertificateNames peer_names() const;
  // What only its two ends know of this connection, and no other has (RFC 9266). Likewise.
  std::string binding() const;

 private:
  void collect();
  Progress explain(int result);

  const SslHandle ssl_;
  BIO* const incoming_;  // owned by ssl_, as is the other
  BIO* const outgoing_;
  std::string sealed_;
  std::string error_;
};

}  // namespace lockd
