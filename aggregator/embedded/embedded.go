// Package embedded is a Redis server in this process for people without one. Clients connect to it by its address, like
// to any other. It is a separate package, so that programs that never start it do not contain it.
package embedded

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"github.com/disdel/disdel"
)

// Redis is miniredis on a loopback port with a random password. It has no file and no ACL. It emulates maxmemory by a
// budget of bytes.
type Redis struct {
	server   *miniredis.Miniredis
	budget   *budget
	password string
	stop     chan struct{}
	done     sync.WaitGroup
}

// Start starts a server with half of the machine's memory as its budget. It returns Unavailable without a free loopback
// port.
func Start() (*Redis, error) { return StartWithin(defaultLimit()) }

// StartWithin starts a server that refuses to hold more than limit bytes, like Redis at maxmemory.
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

// tick advances miniredis' clock, so that keys expire.
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

// URL is the address with the password.
func (e *Redis) URL() string {
	u := url.URL{Scheme: "redis", User: url.UserPassword("", e.password), Host: e.server.Addr(), Path: "/0"}
	return u.String()
}

// Close ends the server and drops its data.
func (e *Redis) Close() error {
	close(e.stop)
	e.done.Wait()
	e.server.Close()
	return nil
}

// budget counts the bytes of the values and refuses writes beyond its limit with Redis' error, because miniredis has no
// maxmemory. It sees every command before miniredis does.
type budget struct {
	limit disdel.Bytes
	mu    sync.Mutex
	used  disdel.Bytes
	sizes map[string]disdel.Bytes
}

const outOfMemory = "OOM command not allowed when used memory > 'maxmemory'."

// hook returns true if it has answered a command itself.
func (b *budget) hook(c *server.Peer, command string, args ...string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case command == "SET" && len(args) > 1:
		size := disdel.Bytes(len(args[0]) + len(args[1]))
		if b.used-b.sizes[args[0]]+size > b.limit {
			c.WriteError(outOfMemory)
			return true
		}
		b.resize(args[0], size)
	case command == "XADD" && len(args) > 1:
		size := b.sizes[args[0]]
		for _, text := range args[1:] {
			size += disdel.Bytes(len(text))
		}
		if b.used-b.sizes[args[0]]+size > b.limit {
			c.WriteError(outOfMemory)
			return true
		}
		b.resize(args[0], size)
	case command == "DEL", command == "UNLINK":
		for _, key := range args {
			b.resize(key, 0)
		}
	case command == "RENAME" && len(args) == 2:
		size := b.sizes[args[0]]
		b.resize(args[0], 0)
		b.resize(args[1], size)
	case command == "INFO" && len(args) == 1 && strings.EqualFold(args[0], "memory"):
		c.WriteBulk(fmt.Sprintf("# Memory\r\nused_memory:%d\r\nmaxmemory:%d\r\nmaxmemory_policy:noeviction\r\n", b.used,
			b.limit))
		return true
	}
	return false
}

func (b *budget) resize(key string, size disdel.Bytes) {
	b.used += size - b.sizes[key]
	if b.sizes[key] = size; size == 0 {
		delete(b.sizes, key)
	}
}

// forget subtracts values that have expired or were never stored.
func (b *budget) forget(exists func(key string) bool) {
	b.mu.Lock()
	keys := make([]string, 0, len(b.sizes))
	for key := range b.sizes {
		keys = append(keys, key)
	}
	b.mu.Unlock()
	for _, key := range keys {
		if !exists(key) { // without our lock: a script holds miniredis' lock while it calls hook
			b.mu.Lock()
			b.resize(key, 0)
			b.mu.Unlock()
		}
	}
}

// defaultLimit is half of the machine's memory, or 4 GB if that is unknown.
func defaultLimit() disdel.Bytes {
	text, _ := os.ReadFile("/proc/meminfo")
	fields := strings.Fields(string(text))
	if len(fields) < 2 || fields[0] != "MemTotal:" {
		return 4 << 30
	}
	kib, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 4 << 30
	}
	return disdel.Bytes(kib) * 1024 / 2
}
