package interop

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Signs certificates for one case.
type authority struct {
	t           *testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "interop authority"},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	succeed(t, err)
	a.certificate, err = x509.ParseCertificate(der)
	succeed(t, err)
	return a
}

// A certificate for either end of a connection to this machine.
func (a *authority) issue() (der []byte, key *ecdsa.PrivateKey) {
	a.t.Helper()
	key = newKey(a.t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "interop member"},
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	succeed(a.t, err)
	return der, key
}

func (a *authority) serverFlags() []string {
	a.t.Helper()
	der, key := a.issue()
	keyDer, err := x509.MarshalPKCS8PrivateKey(key)
	succeed(a.t, err)
	return []string{"--tls-cert", writePem(a.t, "CERTIFICATE", der),
		"--tls-key", writePem(a.t, "PRIVATE KEY", keyDer)}
}

// Flags of a server that asks its clients for certificates, too.
func (a *authority) strictServerFlags() []string {
	a.t.Helper()
	return append(a.serverFlags(), "--tls-client-ca", writePem(a.t, "CERTIFICATE", a.certificate.Raw))
}

// What a client is given to trust the server by.
func (a *authority) trust() *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(a.certificate)
	return &tls.Config{RootCAs: roots}
}

// The same, with a certificate to be trusted by.
func (a *authority) mutualTrust() *tls.Config {
	a.t.Helper()
	der, key := a.issue()
	config := a.trust()
	config.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
	return config
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	succeed(t, err)
	return key
}

func writePem(t *testing.T, kind string, der []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pem")
	succeed(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return file
}
