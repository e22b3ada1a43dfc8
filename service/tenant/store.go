package tenant

import (
	"cmp"
	"context"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
	"sync"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
)

// SharedStore returns the store of a tenant on the servers of all: only the prefix of its keys is its own.
func SharedStore(name string, all disdel.Store) disdel.Store {
	return disdel.Store{Prefix: cmp.Or(all.Prefix, "disdel") + ":tenant-" + name, URLs: all.URLs, CA: all.CA}
}

// OwnStore is SharedStore with a user of the tenant, which can reach no other keys. It falls back to SharedStore, if
// the servers ask for no password and, with a warning, if they do not let this user make others.
func OwnStore(ctx context.Context, name string, all disdel.Store, board *aggregator.Store, log logrus.FieldLogger,
) (disdel.Store, error) {
	own := SharedStore(name, all)
	password, ok := userPassword(all, own.Prefix)
	if !ok {
		return own, nil // everybody who reaches the servers may do everything there
	}
	user := strings.ReplaceAll(own.Prefix, ":", "-")
	err := board.AddUser(ctx, user, password, own.Prefix)
	switch {
	case disdel.KindOf(err) == disdel.Denied:
		log.WithField("tenant", name).Warnf("tenants share one user of Redis: %v", err)
		return own, nil
	case err != nil:
		return own, err
	}
	own.URLs = nil
	for _, address := range all.URLs {
		u, err := url.Parse(address)
		if err != nil {
			return own, &disdel.Error{Kind: disdel.Invalid, Op: "open store", Msg: "the address is no Redis URL"}
		}
		u.User = url.UserPassword(user, password)
		own.URLs = append(own.URLs, u.String())
	}
	return own, nil
}

// userPassword derives the password of a tenant's user from the passwords of the servers. Every Service that knows
// those derives the same one, and nobody can compute those from it. ok is false if the servers ask for no password.
func userPassword(all disdel.Store, prefix string) (password string, ok bool) {
	var known []string
	for _, address := range all.URLs {
		if u, err := url.Parse(address); err == nil {
			password, _ := u.User.Password()
			known = append(known, password)
		}
	}
	if strings.Join(known, "") == "" {
		return "", false
	}
	key, err := pbkdf2.Key(sha256.New, strings.Join(known, "\x00"), []byte("user of "+prefix), stretched, sha256.Size)
	return hex.EncodeToString(key), err == nil
}

// stretched is the number of PBKDF2 iterations: guessing the servers' passwords from a tenant's has to be slow.
const stretched = 200_000

// Claims are bytes that the running uploads and unfinished jobs of a tenant may still use, on the disk or in Redis. The
// zero value has no claims.
type Claims struct {
	mu   sync.Mutex
	next int                  // guarded by mu: number of the next claim
	all  map[int]disdel.Bytes // guarded by mu: by number
}

// Add adds a claim. It returns the sum of the earlier claims. Calling release again changes nothing.
func (c *Claims) Add(more disdel.Bytes) (before disdel.Bytes, release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.all {
		before += n
	}
	if c.all == nil {
		c.all = map[int]disdel.Bytes{}
	}
	n := c.next
	c.next++
	c.all[n] = more
	return before, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.all, n)
	}
}
