package aggregator

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
	own "github.com/disdel/disdel/aggregator/embedded"
)

// tenant is a user who may do what ACL says, on keys that start with "t".
func tenant(t *testing.T) serverUnderTest {
	address := plainRedis(t)
	grant(t, address, "t*")
	u, _ := url.Parse(address)
	u.User = url.UserPassword("tenant", "word")
	return serverUnderTest{disdel.Store{URLs: []string{u.String()}}, []string{address}}
}

func grant(t *testing.T, address, prefix string) {
	t.Helper()
	opt, err := redis.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	admin := redis.NewClient(opt)
	defer admin.Close()
	command := []any{"ACL", "SETUSER", "tenant", "on", ">word"}
	for word := range strings.FieldsSeq(ACL(prefix)) {
		command = append(command, word)
	}
	if err := admin.Do(ctx, command...).Err(); err != nil {
		t.Fatal(err)
	}
}

// S5: a tenant reaches nothing outside its prefix, and no command that looks beyond keys.
func TestATenantSeesOnlyItsOwn(t *testing.T) {
	address := plainRedis(t)
	grant(t, address, "mine")
	u, _ := url.Parse(address)
	u.User = url.UserPassword("tenant", "word")
	at := serverUnderTest{disdel.Store{URLs: []string{u.String()}}, []string{address}}
	mine := enter(t, at, "mine")
	push(t, mine, update(1, 1))
	theirs := enter(t, at, "theirs")
	want(t, disdel.Denied, theirs.PushUpdate(ctx, update(1, 1)))
	_, err := theirs.FetchUpdate(ctx, update(1, 1).ID, nil)
	want(t, disdel.Denied, err)
	_, err = theirs.Sweep(ctx, "job-1")
	want(t, disdel.Denied, err)
	_, _, err = theirs.Claim(ctx, update(1, 1).ID, "a", 1)
	want(t, disdel.Denied, err)
	for _, command := range []string{
		"KEYS *", "SCAN 0", "RANDOMKEY", "DBSIZE", "FLUSHALL", "FLUSHDB", "CONFIG GET *", "INFO", "CLIENT LIST", "ACL LIST",
		"MONITOR", "SHUTDOWN",
		"SWAPDB 0 1", "MEMORY STATS", "SUBSCRIBE x", "SCRIPT FLUSH", "REPLICAOF NO ONE", "SLOWLOG GET", "MODULE LIST",
		"FUNCTION LIST",
	} {
		var args []any
		for word := range strings.FieldsSeq(command) {
			args = append(args, word)
		}
		if err := mine.client.Do(ctx, args...).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
			t.Errorf("%s: %v, want NOPERM", command, err)
		}
	}
	c, err := mine.Capacity(ctx)
	if err != nil || c[0].Known {
		t.Errorf("capacity %+v, %v; want unknown", c, err)
	}
	if err := checkRoom(ctx, mine.Store, Need{Workers: 1, Update: 1 << 50}); err != nil {
		t.Errorf("a server that does not tell refuses: %v", err)
	}
}

// authority is a certificate authority for a test and a certificate of its for 127.0.0.1, as files. change spoils the
// latter.
func authority(t *testing.T, change ...func(*x509.Certificate)) (pemText, certificate, key string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	template := func(name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
			NotAfter:              time.Now().Add(time.Hour),
			BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		}
	}
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	root := template("test authority")
	root.IsCA, root.KeyUsage, root.IPAddresses = true, x509.KeyUsageCertSign, nil
	rootDER, err := x509.CreateCertificate(rand.Reader, root, root, &rootKey.PublicKey, rootKey)
	must(err)
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	leaf := template("redis")
	for _, spoil := range change {
		spoil(leaf)
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, root, &leafKey.PublicKey, rootKey)
	must(err)
	keyDER, err := x509.MarshalECPrivateKey(leafKey)
	must(err)
	dir := t.TempDir()
	certificate, key = filepath.Join(dir, "redis.crt"), filepath.Join(dir, "redis.key")
	must(os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leafDER}), 0o600))
	must(os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), 0o600))
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rootDER})), certificate, key
}

// tlsServer speaks TLS to the store, and plain text to the test's own eyes.
func tlsServer(t *testing.T) serverUnderTest { return tlsServerWith(t) }

func tlsServerWith(t *testing.T, change ...func(*x509.Certificate)) serverUnderTest {
	ca, certificate, key := authority(t, change...)
	port, plain := freePort(t), freePort(t)
	s := disdel.Store{URLs: []string{"rediss://:secret@127.0.0.1:" + port + "/0"}, CA: ca}
	at := "redis://:secret@127.0.0.1:" + plain + "/0"
	startRedis(t, disdel.Store{URLs: []string{at}}, "--tls-port", port, "--port", plain, "--tls-cert-file", certificate,
		"--tls-key-file", key, "--tls-auth-clients", "no", "--tls-ca-cert-file", certificate)
	return serverUnderTest{s, []string{at}}
}

// S6: a certificate of the right authority for another machine, and one that is no longer valid, are refused with the
// cause.
func TestACertificateThatIsNotTheServersIsDenied(t *testing.T) {
	for cause, spoil := range map[string]func(*x509.Certificate){
		"127.0.0.1": func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)} },
		"expired":   func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) },
	} {
		s := tlsServerWith(t, spoil).store
		s.URLs = []string{s.URLs[0] + "?max_retries=1"}
		_, err := Open(ctx, s)
		want(t, disdel.Denied, err)
		if err == nil || !strings.Contains(err.Error(), cause) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", cause, err)
		}
	}
}

// S6: an authority that is not the server's, and none, are refused with the cause.
func TestACertificateOfAnotherAuthorityIsDenied(t *testing.T) {
	at := tlsServer(t)
	other, _, _ := authority(t)
	for name, ca := range map[string]string{"another": other, "the system's": ""} {
		s := at.store
		s.URLs, s.CA = []string{s.URLs[0] + "?max_retries=1"}, ca
		_, err := Open(ctx, s)
		want(t, disdel.Denied, err)
		if err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: %v does not say why", name, err)
		}
	}
	s := at.store
	s.CA = "no PEM"
	_, err := Open(ctx, s)
	want(t, disdel.Invalid, err)
	s = at.store
	s.URLs = []string{strings.Replace(strings.Replace(at.store.URLs[0], "rediss", "redis", 1), "/0", "/0?max_retries=1",
		1)}
	if _, err := Open(ctx, s); err == nil {
		t.Error("plain text to a TLS port")
	}
}

// A server that does not take a user repeats the command in what it says of it, password and all: that goes no further.
func TestARefusedUserIsNotToldWithItsPassword(t *testing.T) {
	embedded, err := own.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer embedded.Close()
	limited := plainRedis(t)
	grant(t, limited, "mine")
	u, _ := url.Parse(limited)
	u.User = url.UserPassword("tenant", "word")
	for name, at := range map[string]disdel.Store{
		"one without users":      {URLs: []string{embedded.URL()}},
		"one whose user may not": {URLs: []string{u.String()}, Prefix: "mine"},
	} {
		s, err := Open(ctx, at)
		if err != nil {
			t.Fatal(err)
		}
		err = s.AddUser(ctx, "ann", "CANARYpw", "disdel:ann")
		if disdel.KindOf(err) != disdel.Denied || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s: %v", name, err)
		}
		s.Close()
	}
}
