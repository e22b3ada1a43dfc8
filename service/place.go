package service

import (
	"cmp"
	"context"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
)

// place is where a tenant's jobs exchange their updates: on the servers of all, below a prefix of its own, and with a
// user that reaches nothing else where Redis has users.
type place struct {
	store disdel.Store // the address that actions share
	board *aggregator.Store
}

// ownPlace opens the place of the Service's tenant, that of all for jobs without a tenant.
func (s *Service) ownPlace(ctx context.Context) (place, error) {
	store, err := s.sharedStore()
	if err != nil {
		return place{}, err
	}
	board, err := s.openBoard(ctx)
	if err != nil || s.whose() == "" {
		return place{store, board}, err
	}
	return s.place.get(s.ctx, func() (place, error) {
		own, err := s.tenantStore(ctx, store, board)
		if err != nil {
			return place{}, err
		}
		b, err := aggregator.Open(ctx, own)
		if err == nil {
			s.atEnd(b.Close)
		}
		return place{own, b}, err
	})
}

// tenantStore is a store with a tenant's own prefix, and its own user where the servers have users and this Service is
// one that signs in. Actions of the tenant are given no other one.
func (s *Service) tenantStore(ctx context.Context, all disdel.Store, board *aggregator.Store) (disdel.Store, error) {
	own := disdel.Store{Prefix: cmp.Or(all.Prefix, "disdel") + ":tenant-" + s.whose(), URLs: all.URLs, CA: all.CA}
	password, ok := userPassword(all, own.Prefix)
	if !ok || len(s.cfg.Redis) == 0 {
		return own, nil // whoever reaches the servers may do everything there; the embedded one is this machine's alone
	}
	name := strings.ReplaceAll(own.Prefix, ":", "-")
	err := board.AddUser(ctx, name, password, own.Prefix)
	switch {
	case disdel.KindOf(err) == disdel.Denied:
		s.log.WithField("tenant", s.whose()).Warnf("tenants share one user of Redis: %v", err)
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
		u.User = url.UserPassword(name, password)
		own.URLs = append(own.URLs, u.String())
	}
	return own, nil
}

// userPassword is the password of a tenant's user: the same for all who know those of the servers, and of no use to
// find these out. False where the servers ask for none.
func userPassword(all disdel.Store, prefix string) (string, bool) {
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

// stretched makes guessing the servers' password from that of a tenant's user slow.
const stretched = 200_000
