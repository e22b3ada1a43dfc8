// Package embedded is a Redis in this process for people who have none. What uses it does not know: it is reached by
// its address, as any other. It is a package of its own so that a container's program, which never starts one, has
// none of it.
package embedded

import (
	"crypto/rand"
	"encoding/hex"
	"net/url"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/disdel/disdel"
)

// Redis is miniredis on a loopback port with a random password. It keeps no file and knows no ACL; a budget of bytes
// stands for maxmemory.
type Redis struct {
	server   *miniredis.Miniredis
	budget   *budget
	password string
	stop     chan struct{}
	done     sync.WaitGroup
}

// Start starts one with half of the machine's memory as its budget. It returns Unavailable if no loopback port can be
// had.
func Start() (*Redis, error) { return StartWithin(halfOfMemory()) }

// StartWithin starts one that refuses to hold more than limit, as Redis does at maxmemory.
func StartWithin(limit disdel.Bytes) (*Redis, error) {
	secret := make([]byte, 16)
	rand.Read(secret)
	e := &Redis{
		server: miniredis.NewMiniRedis(), budget: &budget{limit: limit, sizes: map[string]disdel.Bytes{}},
		password: hex.EncodeToString(secret), stop: make(chan struct{}),
	}
	e.server.RequireAuth(e.password)
	if err := e.server.StartAddr("127.0.0.1:0"); err != nil {
		return nil, &disdel.Error{Kind: disdel.Unavailable, Op: "start the embedded store", Err: err}
	}
	e.server.Server().SetPreHook(e.budget.hook)
	e.done.Go(e.tick)
	return e, nil
}

// tick moves miniredis' clock, which stands still on its own, so that keys expire.
func (e *Redis) tick() {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			e.server.FastForward(time.Second)
			e.budget.forget(e.server.Exists)
		case <-e.stop:
			return
		}
	}
}

// URL is the address with its password.
func (e *Redis) URL() string {
	u := url.URL{Scheme: "redis", User: url.UserPassword("", e.password), Host: e.server.Addr(), Path: "/0"}
	return u.String()
}

// Close ends the store; what it held is gone.
func (e *Redis) Close() error {
	close(e.stop)
	e.done.Wait()
	e.server.Close()
	return nil
}
