package main

import (
	"context"
	"crypto/x509"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
)

// store is the address that a job's actions share: the user's Redis, one or several, or the embedded one.
func (s *stack) store() (disdel.Store, error) {
	out := disdel.Store{Prefix: s.cli.String("redis-prefix")}
	addresses, err := s.redisAddresses()
	if err != nil {
		return out, err
	}
	if out.CA, err = readAuthority(s.cli.String("redis-ca"), addresses); err != nil {
		return out, err
	}
	if len(addresses) > 0 {
		out.URL, out.More = addresses[0], addresses[1:]
		return out, nil
	}
	e, err := aggregator.StartEmbedded()
	if err != nil {
		return out, err
	}
	s.atEnd(e.Close)
	out.URL = e.URL()
	return out, nil
}

// redisAddresses are those of --redis, each with the password of the environment where it has none of its own.
func (s *stack) redisAddresses() ([]string, error) {
	var out []string
	for address := range strings.SplitSeq(s.cli.String("redis"), ",") {
		address, err := withPassword(strings.TrimSpace(address), "DISDEL_REDIS_PASSWORD")
		if err != nil {
			return nil, err
		}
		if address != "" {
			out = append(out, address)
		}
	}
	return out, nil
}

// readAuthority is the text of --redis-ca. It returns Invalid for a file that cannot be read or has no certificate, and where
// no address would make use of it.
func readAuthority(file string, addresses []string) (string, error) {
	if file == "" {
		return "", nil
	}
	if !strings.Contains(strings.Join(addresses, ","), "rediss://") {
		return "", usageError{&disdel.Error{Kind: disdel.Invalid, Msg: "--redis-ca is for servers that speak TLS", Hint: "name them with --redis rediss://HOST:PORT/0"}}
	}
	text, err := readFile(file)
	if err != nil {
		return "", err
	}
	if !x509.NewCertPool().AppendCertsFromPEM(text) {
		return "", &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + file, Msg: "it has no certificate in PEM",
			Hint: "name the file of the authority that signed the server's certificate; it begins with -----BEGIN CERTIFICATE-----",
		}
	}
	return string(text), nil
}

func (s *stack) board(ctx context.Context, at disdel.Store) (*aggregator.Store, error) {
	b, err := aggregator.Open(ctx, at)
	if err == nil {
		s.atEnd(b.Close)
	}
	return b, err
}

// heartbeats gives what is known of an invocation that has failed, oldest first.
type heartbeats func(ctx context.Context, inv disdel.Invocation) []disdel.Progress

// beatsWait bounds the look for the heartbeats of an action that has failed: they are evidence, and the job can do without.
const beatsWait = 2 * time.Second

// beatsOn looks for heartbeats on the board that a job's actions share. It has the last one of each action.
func beatsOn(board *aggregator.Store) heartbeats {
	return func(ctx context.Context, inv disdel.Invocation) (out []disdel.Progress) {
		if inv.Job == "" {
			return nil
		}
		ctx, stop := context.WithTimeout(ctx, beatsWait)
		defer stop()
		all, err := board.Progress(ctx, inv.Job)
		if err != nil {
			return nil
		}
		for _, p := range all {
			if p.Task == inv.Task && p.Round == inv.Round && p.Level == inv.Level && p.Member == inv.Member {
				out = append(out, p)
			}
		}
		return out
	}
}
