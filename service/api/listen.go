package api

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/files"
)

// Listener is where a server listens, with TLS or without.
type Listener struct {
	net.Listener
	secure bool
}

// URL is the address of the server for clients.
func (l *Listener) URL() string {
	if l.secure {
		return "https://" + l.Addr().String()
	}
	return "http://" + l.Addr().String()
}

// Listen listens at an address, with the certificate and the key of two files; "" for no TLS. Without TLS it refuses
// (Denied) addresses that other machines reach, unless insecure is set: tokens would not be encrypted.
func Listen(address, certificate, key string, insecure bool) (*Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "listen", Msg: address, Err: err, Hint: "write HOST:PORT"}
	}
	ip := net.ParseIP(host)
	secure := certificate != "" || key != ""
	if local := host == "localhost" || ip != nil && ip.IsLoopback(); !local && !secure && !insecure {
		return nil, &disdel.Error{
			Kind: disdel.Denied, Op: "listen", Msg: "tokens would reach " + address + " in the clear",
			Hint: "name a certificate with --tls-cert and --tls-key, or say --insecure",
		}
	}
	var cfg *tls.Config
	if secure {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, &disdel.Error{Kind: disdel.Invalid, Op: "read certificate", Err: files.Plain(err)}
		}
		cfg = &tls.Config{
			Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		}
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, &disdel.Error{
			Kind: disdel.Unavailable, Op: "listen", Msg: address, Err: err, Hint: "choose another port with --listen",
		}
	}
	if secure {
		l = tls.NewListener(l, cfg)
	}
	return &Listener{l, secure}, nil
}

// Key returns a random text that nobody can guess.
func Key() string {
	secret := make([]byte, 32)
	rand.Read(secret)
	return hex.EncodeToString(secret)
}

// OperatorToken returns the token of the operator of a home's server. It is in a file that only the user may read; a
// missing file is made. It returns Denied if others may read the file.
func OperatorToken(home string) (string, error) {
	path := filepath.Join(home, "server.token")
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		token := Key()
		return token, files.WriteWhole(path, ".token-*", []byte(token+"\n"))
	}
	if err != nil {
		return "", &disdel.Error{Kind: disdel.Denied, Op: "read token", Err: files.Plain(err)}
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", &disdel.Error{
			Kind: disdel.Denied, Op: "read token", Msg: "others may read " + path, Hint: "chmod 600 " + path,
		}
	}
	text, err := files.Read(path)
	return strings.TrimSpace(string(text)), err
}
