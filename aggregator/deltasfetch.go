package aggregator

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
)

// Fetch reads the deltas of a step that were waited for, or looked for: those of some members, or of all where none is
// named. They are in the order of the members, nil for those that were not asked for, or have left. It returns Corrupt,
// which is counted, for one that is not what its sender committed, and NotFound for one that is gone.
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

// piece is a part of a member's delta.
type piece struct {
	member int
	key    string
	data   []byte
}

// fetch reads pieces, those of a server by one message.
func (d *Deltas) fetch(ctx context.Context, step int, pieces []piece) error {
	on := map[*redis.Client][]int{}
	var servers []*redis.Client
	for i, p := range pieces {
		server := d.store.server(p.key)
		if on[server] == nil {
			servers = append(servers, server)
		}
		on[server] = append(on[server], i)
	}
	return eachOf(ctx, len(servers), len(servers), func(ctx context.Context, _, k int) error {
		own := on[servers[k]]
		var gets []*redis.StringCmd
		patient(servers[k]).Pipelined(ctx, func(p redis.Pipeliner) error { //nolint:errcheck // each says it
			for _, i := range own {
				gets = append(gets, p.Get(ctx, pieces[i].key))
			}
			return nil
		})
		for n, i := range own {
			data, err := gets[n].Bytes()
			if err != nil {
				return wrap(err, "fetch delta", fmt.Sprintf("%s round %d step %d of %d", d.job, d.round, step, pieces[i].member))
			}
			pieces[i].data = data
		}
		return nil
	})
}

// check refuses a delta that is not what its member sent.
func (d *Deltas) check(ctx context.Context, step, m int, data []byte) error {
	if checksum(data) == d.sent[step][m].sum {
		return nil
	}
	return d.store.countDamage(ctx, d.job, &disdel.Error{
		Kind: disdel.Corrupt, Op: "fetch delta", Job: d.job,
		Msg: fmt.Sprintf("round %d, step %d of member %d is not what was sent", d.round, step, m),
	})
}
