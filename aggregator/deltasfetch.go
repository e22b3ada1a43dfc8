package aggregator

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
)

// Fetch reads the deltas of a step that were waited for, or looked for: those of some members, or of all where none is
// named. They are in the order of the members, nil for those that were not asked for, or have left, and not to be
// changed: their bytes are those of the reply. It returns Corrupt, which is counted, for one that is not what its
// sender committed, and NotFound for one that is gone. Both have the code of a lost update: nobody sends a delta again
// that was committed once, so that the round has to be begun anew.
func (d *Deltas) Fetch(ctx context.Context, step int, of ...int) ([][]byte, error) {
	if len(of) == 0 {
		for m := range d.members {
			of = append(of, m)
		}
	}
	sent, out := d.sent[step], make([][]byte, d.members)
	var pieces []piece
	for _, m := range of {
		switch {
		case !d.there(m, step) || sent != nil && sent[m].entry == nothing:
			continue
		case sent == nil || sent[m].entry == "":
			return nil, &disdel.Error{
				Kind: disdel.Invalid, Op: "fetch deltas", Job: d.job, Msg: fmt.Sprintf("step %d was not waited for", step),
			}
		}
		if strings.HasPrefix(sent[m].entry, alongside) {
			if out[m] = sent[m].data; !sent[m].here {
				pieces = append(pieces, piece{member: m, at: sent[m].at})
			}
			continue
		}
		_, keys := entryKeys(sent[m].entry)
		for _, key := range keys {
			pieces = append(pieces, piece{member: m, key: key})
		}
	}
	if err := d.fetch(ctx, step, pieces); err != nil {
		return nil, err
	}
	for i, p := range pieces { // a member's follow each other
		if i > 0 && pieces[i-1].member == p.member {
			p.data = slices.Concat(out[p.member], p.data)
		}
		out[p.member] = p.data
	}
	for _, m := range of {
		if out[m] == nil {
			continue
		}
		if err := d.check(ctx, step, m, out[m]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// nothing is the index entry of a delta that there is none of: its member was ended.
const nothing = "none"

// alongside is what entries of deltas begin with that lie in the news. What follows tells two deliveries apart.
const alongside = "news/"

// piece is a part of a member's delta, or all of one that lies in the news.
type piece struct {
	member int
	key    string
	at     string // id in the news; "": it lies at the key
	data   []byte
}

// fetch reads pieces, those of a server by one message.
func (d *Deltas) fetch(ctx context.Context, step int, pieces []piece) error {
	on := map[*redis.Client][]int{}
	var servers []*redis.Client
	for i, p := range pieces {
		server := d.store.client
		if p.at == "" {
			server = d.store.server(p.key)
		}
		if on[server] == nil {
			servers = append(servers, server)
		}
		on[server] = append(on[server], i)
	}
	return eachOf(ctx, len(servers), len(servers), func(ctx context.Context, _, k int) error {
		own := on[servers[k]]
		var gets []func() ([]byte, error)
		patient(servers[k]).Pipelined(ctx, func(p redis.Pipeliner) error { //nolint:errcheck // each says it
			for _, i := range own {
				gets = append(gets, d.get(ctx, p, pieces[i]))
			}
			return nil
		})
		for n, i := range own {
			data, err := gets[n]()
			if errors.Is(err, redis.Nil) {
				return d.lost(step, pieces[i].member, disdel.NotFound, "is gone from the store")
			}
			if err != nil {
				return wrap(err, "fetch delta", fmt.Sprintf("%s round %d step %d of %d", d.job, d.round, step, pieces[i].member))
			}
			if data == nil { // of no bytes, which is not the same as none
				data = []byte{}
			}
			pieces[i].data = data
		}
		return nil
	})
}

// get asks for a piece; what it returns tells what came, once the message was answered.
func (d *Deltas) get(ctx context.Context, by redis.Pipeliner, p piece) func() ([]byte, error) {
	if p.at == "" {
		return by.Get(ctx, p.key).Bytes
	}
	news := by.XRead(ctx, &redis.XReadArgs{
		Streams: []string{d.store.keys.news(d.job, d.round), before(p.at)}, Count: 1, Block: noWait,
	})
	return func() ([]byte, error) {
		streams, err := news.Result()
		if err != nil {
			return nil, err
		}
		for _, stream := range streams {
			for _, m := range stream.Messages {
				if m.ID == p.at {
					return fmt.Append(nil, m.Values["data"]), nil
				}
			}
		}
		return nil, redis.Nil
	}
}

// before is an id of a stream that is smaller than one of its entries, and larger than those before that.
func before(id string) string {
	text, tail, _ := strings.Cut(id, "-")
	ms, err1 := strconv.ParseUint(text, 10, 64)
	number, err2 := strconv.ParseUint(tail, 10, 64)
	switch {
	case errors.Join(err1, err2) != nil || ms == 0 && number == 0:
		return "0"
	case number > 0:
		return fmt.Sprintf("%d-%d", ms, number-1)
	default:
		return fmt.Sprintf("%d-%d", ms-1, uint64(math.MaxUint64))
	}
}

// check refuses a delta that is not what its member sent.
func (d *Deltas) check(ctx context.Context, step, m int, data []byte) error {
	if checksum(data) == d.sent[step][m].sum {
		return nil
	}
	return d.store.countDamage(ctx, d.job, d.lost(step, m, disdel.Corrupt, "is not what was sent"))
}

// Unreadable is the error of a delta that is what its sender committed and yet none; why is what its reader says. It is
// counted as damage, and has the round begun anew.
func (d *Deltas) Unreadable(ctx context.Context, step, member int, why error) error {
	e := d.lost(step, member, disdel.Corrupt, "cannot be read")
	e.Err = why
	return d.store.countDamage(ctx, d.job, e)
}

// lost is the error of a delta that was sent and cannot be had.
func (d *Deltas) lost(step, member int, kind disdel.Kind, what string) *disdel.Error {
	return &disdel.Error{
		Kind: kind, Code: disdel.CodeLostUpdate, Op: "fetch delta", Job: d.job,
		Subject: &disdel.UpdateID{Job: d.job, Round: d.round, Member: member},
		Msg:     fmt.Sprintf("round %d, step %d of member %d %s", d.round, step, member, what),
	}
}
