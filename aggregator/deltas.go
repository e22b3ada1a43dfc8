package aggregator

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"strconv"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed lua/delta.lua
	deltaLua string

	deltaScript = redis.NewScript(deltaLua)
)

// CommitDelta stores what the member that has the claim sends of a step (from 1), and tells the workers that wait for
// it. Once there, a step's delta never changes: the same again changes nothing, as from a later attempt that comes to
// the same; another one is a Conflict, and so is one under a claim that is lost. Errors are PushUpdate's otherwise.
func (s *Store) CommitDelta(ctx context.Context, c Claim, step int, data []byte) error {
	return s.commitDelta(ctx, &sending{claim: c, step: step, data: data})
}

func (s *Store) commitDelta(ctx context.Context, d *sending) error {
	digest := sha256.Sum256(d.data)
	d.digest, d.sum = hex.EncodeToString(digest[:]), checksum(d.data)
	id := d.claim.ID
	if d.along = len(s.servers) == 1 && len(d.data) <= mostAlong; d.along {
		d.entry = alongside + token()
	} else {
		d.key, d.parts = s.placeDelta(fmt.Sprintf("%s:%d:", s.keys.delta(id, d.step), d.claim.Fence), len(d.data))
		d.entry = entry(d.key, d.parts)
	}
	verdict, err := s.send(ctx, d)
	switch {
	case err != nil:
		return wrap(err, "send delta", id.String()) // it may be there all the same: leave it to the sweep
	case verdict == "done":
		return nil
	}
	if !d.along {
		s.discard(ctx, id.Job, d.entry)
	}
	switch verdict {
	case "same":
		return nil
	case "other":
		return conflict("send delta of step "+strconv.Itoa(d.step), id, "another one was sent before")
	default:
		return conflict("send delta of step "+strconv.Itoa(d.step), id, "another attempt has taken over")
	}
}

// sending is a delta on its way to its key.
type sending struct {
	claim  Claim
	step   int
	last   bool    // of its member
	follow *Deltas // takes what is new by the same message; nil: nobody does
	digest string
	sum    string
	along  bool // it goes into the news; else it lies in parts at a key
	key    string
	parts  int
	entry  string // of the table
	data   []byte
}

// mostAlong is how large a delta is that goes into the news, so that waiting workers need no request.
// Where there are several servers all of them serve all deltas, and none goes there.
const mostAlong = 128 << 10

func (d *sending) piece(i int) []byte {
	return d.data[i*len(d.data)/d.parts : (i+1)*len(d.data)/d.parts]
}

// send stores a delta's parts, after their entry in the index, and commits it. Where there is one server all of it goes
// in one message: the script looks whether the part is there, since what comes first in a message may have failed. A
// small delta has no part: the script is given it.
//
// Who follows the round takes what is new before its own delta is there, so that it is not sent that back.
func (s *Store) send(ctx context.Context, d *sending) (verdict string, err error) {
	var script *redis.Cmd
	var news *redis.XStreamSliceCmd
	cmds, _ := patient(s.client).Pipelined(ctx, func(p redis.Pipeliner) error {
		if !d.along {
			s.store(ctx, p, d)
		}
		if len(s.servers) == 1 {
			if d.follow != nil {
				news = d.follow.news(ctx, p, noWait)
			}
			keys, args := s.commitOf(d)
			script = deltaScript.EvalSha(ctx, p, keys, args...)
		}
		return nil
	})
	for _, c := range cmds {
		if err := c.Err(); err != nil && c != redis.Cmder(script) && c != redis.Cmder(news) {
			return "", err
		}
	}
	if news != nil {
		if _, err := d.follow.took(news); err != nil {
			return "", err
		}
	}
	if err := s.sendParts(ctx, d); err != nil {
		return "", err
	}
	if script == nil || redis.HasErrorPrefix(script.Err(), "NOSCRIPT") {
		keys, args := s.commitOf(d)
		script = deltaScript.Run(ctx, s.client, keys, args...)
	}
	said, err := script.StringSlice()
	if err != nil {
		return "", err
	}
	if len(said) == 3 && d.follow != nil {
		d.follow.sentOwn(d, said[1], said[2])
	}
	return said[0], nil
}

// store puts those parts of a delta that lie on the first server there, after their entry in the index.
func (s *Store) store(ctx context.Context, by redis.Pipeliner, d *sending) {
	by.SAdd(ctx, s.keys.index(d.claim.ID.Job), d.entry)
	by.Expire(ctx, s.keys.index(d.claim.ID.Job), keyLife)
	for i := range d.parts {
		if at := part(d.key, i); s.server(at) == s.client {
			by.Set(ctx, at, d.piece(i), keyLife)
		}
	}
}

// sendParts stores those parts of a delta that lie on other servers than the first.
func (s *Store) sendParts(ctx context.Context, d *sending) error {
	if len(s.servers) == 1 {
		return nil
	}
	return eachOf(ctx, d.parts, d.parts, func(ctx context.Context, _, i int) error {
		at := part(d.key, i)
		server := s.server(at)
		if server == s.client {
			return nil
		}
		return patient(server).Set(ctx, at, d.piece(i), keyLife).Err()
	})
}

// commitOf is what the script gets about a delta.
func (s *Store) commitOf(d *sending) (keys []string, args []any) {
	id := d.claim.ID
	table, log, news := s.keys.deltas(id.Job, id.Round), s.keys.log(id.Job, id.Round), s.keys.news(id.Job, id.Round)
	keys = []string{s.keys.work(id), table, log, s.keys.counts(id.Job), s.keys.index(id.Job), news}
	args = []any{
		strconv.FormatUint(d.claim.Fence, 10), fmt.Sprintf("%d:%d", d.step, id.Member), d.digest, d.entry,
		d.step, id.Member, len(d.data), seconds(keyLife), entry(table, 0), entry(log, 0), entry(news, 0), flag(d.last),
		d.sum,
	}
	switch {
	case d.along:
		args = append(args, d.data)
	case len(s.servers) == 1:
		keys = append(keys, part(d.key, 0))
	}
	return keys, args
}

// checksum is what a delta is held against when it is read, which all members do: its digest, which says whether two
// attempts came to the same, would take ten times as long.
func checksum(data []byte) string {
	return strconv.FormatUint(uint64(crc32.Checksum(data, castagnoli)), 16)
}

// flag is a truth as scripts have it.
func flag(is bool) string {
	if is {
		return "1"
	}
	return ""
}

// leastPart is how small a delta is that lies on one server, whole: another round trip would take longer than its
// bytes.
const leastPart = 4 << 10

// drawsOfPlaces bounds how long a place on all servers is looked for.
const drawsOfPlaces = 100

// placeDelta is a key for a delta of so many bytes that nobody else has, and the number of its parts: one on every
// server, so that all of them serve every delta. Where a part lies follows from its key, and keys are drawn until they
// fit.
func (s *Store) placeDelta(prefix string, size int) (key string, parts int) {
	parts = min(len(s.servers), 1+size/leastPart)
	for range drawsOfPlaces {
		key = prefix + token()
		on := map[*redis.Client]bool{}
		for i := range parts {
			on[s.server(part(key, i))] = true
		}
		if len(on) == parts {
			break
		}
	}
	return key, parts
}

// token is a text that nobody else has.
func token() string {
	bytes := make([]byte, 8)
	rand.Read(bytes)
	return hex.EncodeToString(bytes)
}
