package lockd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authority makes certificates in files.
type authority struct {
	t      *testing.T
	dir    string
	key    *ecdsa.PrivateKey
	cert   *x509.Certificate
	caFile string
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert = template
	a.caFile, _ = a.make("ca", template)
	return a
}

// make writes a certificate and its key.
func (a *authority) make(name string, template *x509.Certificate) (certFile, keyFile string) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	if a.key == nil {
		a.key = key
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.write(name+".pem", "CERTIFICATE", cert), a.write(name+".key", "PRIVATE KEY", private)
}

func (a *authority) write(name, kind string, content []byte) string {
	path := filepath.Join(a.dir, name)
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// of makes one for a host by name, or by address.
func (a *authority) of(name string) (certFile, keyFile string) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	return a.make("of-"+name, template)
}

func TestTLSVerifiesTheServer(t *testing.T) {
	t.Parallel()
	trusted, stranger := newAuthority(t), newAuthority(t)
	cert, key := trusted.of("127.0.0.1")
	server := startServer(t, "--tls-cert", cert, "--tls-key", key)
	try := func(options ...Option) error {
		client := newClient(t, append(options, Servers(server.address()))...)
		held, err := client.TryAcquire(testContext(t), "job", Lease(time.Second))
		if err != nil {
			return err
		}
		time.Sleep(1200 * time.Millisecond) // it renews by TLS
		return held.Release()
	}
	if err := try(CAFile(trusted.caFile)); err != nil {
		t.Error(err)
	}
	if err := try(CAFile(stranger.caFile)); !errors.Is(err, ErrUntrusted) {
		t.Error(err)
	}
	if err := try(TLS(nil)); !errors.Is(err, ErrUntrusted) {
		t.Error("the system's roots:", err)
	}
	if err := try(CAFile(trusted.caFile), TLS(&tls.Config{ServerName: "elsewhere"})); !errors.Is(err, ErrUntrusted) {
		t.Error("its own roots are of the configuration that came last:", err)
	}
	if err := try(TLS(&tls.Config{ServerName: "elsewhere"}), CAFile(trusted.caFile)); !errors.Is(err, ErrUntrusted) {
		t.Error("a host of another name:", err)
	}
	if err := try(); err == nil {
		t.Error("plain text was understood")
	}
}

func TestTLSWithACertificateOfTheClient(t *testing.T) {
	t.Parallel()
	all := newAuthority(t)
	cert, key := all.of("127.0.0.1")
	clientCert, clientKey := all.of("billing")
	server := startServer(t, "--tls-cert", cert, "--tls-key", key, "--tls-client-ca", all.caFile)
	with := newClient(t, Servers(server.address()), CAFile(all.caFile), Certificate(clientCert, clientKey))
	if err := mustAcquire(t, with, "job").Release(); err != nil {
		t.Error(err)
	}
	without := newClient(t, Servers(server.address()), CAFile(all.caFile))
	if _, err := without.TryAcquire(testContext(t), "job"); !errors.Is(err, ErrUnauthorized) {
		t.Error(err)
	}
}
