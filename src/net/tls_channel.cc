#include "net/tls_channel.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

namespace lockd {
namespace {

BIO* new_memory() {
  BIO* const memory = BIO_new(BIO_s_mem());
  if (memory == nullptr) throw std::bad_alloc();
  BIO_set_mem_eof_return(memory, -1);  // empty is not the end
  return memory;
}

// As UTF-8, with whatever bytes it has. Empty when it is no text.
std::string text_of(const ASN1_STRING* string) {
  unsigned char* bytes = nullptr;
  const int size = string == nullptr ? -1 : ASN1_STRING_to_UTF8(&bytes, string);
  const std::unique_ptr<unsigned char, void (*)(unsigned char*)> owned(
      bytes, [](unsigned char* memory) { OPENSSL_free(memory); });
  if (size <= 0) return {};
  return {reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size)};
}

std::vector<std::string> common_names(const X509* certificate) {
  std::vector<std::string> names;
  const X509_NAME* const subject = X509_get_subject_name(certificate);
  for (int at = -1; (at = X509_NAME_get_index_by_NID(subject, NID_commonName, at)) >= 0;) {
    names.push_back(text_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at))));
  }
  return names;
}

std::vector<std::string> alternative_names(const X509* certificate) {
  std::vector<std::string> names;
  const std::unique_ptr<GENERAL_NAMES, void (*)(GENERAL_NAMES*)> all(
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)),
      GENERAL_NAMES_free);
  for (int i = 0; all != nullptr && i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(all.get(), i);
    const bool is_text = name->type == GEN_DNS || name->type == GEN_EMAIL || name->type == GEN_URI;
    if (is_text) names.push_back(text_of(name->d.ia5));
  }
  return names;
}

}  // namespace

TlsChannel::TlsChannel(SslHandle ssl)
    : ssl_(std::move(ssl)), incoming_(new_memory()), outgoing_(new_memory()) {
  if (ssl_ == nullptr) throw std::bad_alloc();
  SSL_set_bio(ssl_.get(), incoming_, outgoing_);
}

void TlsChannel::receive(std::string_view sealed) {
  BIO_write(incoming_, sealed.data(), static_cast<int>(sealed.size()));
}

TlsChannel::Progress TlsChannel::open(std::span<char> plain, std::size_t& size) {
  ERR_clear_error();
  size = 0;
  const int result = SSL_read_ex(ssl_.get(), plain.data(), plain.size(), &size);  // handshakes too
  const Progress progress = result > 0 ? Progress::more : explain(result);
  collect();
  return progress;
}

TlsChannel::Progress TlsChannel::explain(int result) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: return Progress::drained;
    case SSL_ERROR_ZERO_RETURN: return Progress::ended;
    default: break;
  }
  const char* const reason = ERR_reason_error_string(ERR_get_error());
  error_ = reason == nullptr ? "protocol error" : reason;
  ERR_clear_error();
  return Progress::failed;
}

CertificateNames TlsChannel::peer_names() const {
  const X509* const certificate = SSL_get0_peer_certificate(ssl_.get());
  if (certificate == nullptr) return {};
  return {common_names(certificate), alternative_names(certificate)};
}

bool TlsChannel::seal(std::string_view plain) {
  ERR_clear_error();
  while (!plain.empty()) {
    const std::string_view piece = plain.substr(0, kPiece);
    const int result = SSL_write(ssl_.get(), piece.data(), static_cast<int>(piece.size()));
    if (result <= 0) {
      explain(result);
      return false;
    }
    collect();
    plain.remove_prefix(static_cast<std::size_t>(result));
  }
  return true;
}

void TlsChannel::end() {
  if (!established()) return;
  ERR_clear_error();
  SSL_shutdown(ssl_.get());
  ERR_clear_error();
  collect();
}

// Takes over what OpenSSL wants to send.
void TlsChannel::collect() {
  while (const std::size_t pending = BIO_ctrl_pending(outgoing_)) {
    const std::size_t before = sealed_.size();
    sealed_.resize(before + pending);
    const int taken = BIO_read(outgoing_, sealed_.data() + before, static_cast<int>(pending));
    sealed_.resize(before + static_cast<std::size_t>(std::max(taken, 0)));
    if (taken <= 0) return;
  }
}

std::string TlsChannel::binding() const {
  constexpr std::string_view kLabel = "EXPORTER-Channel-Binding";
  std::array<unsigned char, 32> bytes{};
  if (SSL_export_keying_material(ssl_.get(), bytes.data(), bytes.size(), kLabel.data(),
                                 kLabel.size(), nullptr, 0, 1) != 1) {
    return {};
  }
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace lockd
