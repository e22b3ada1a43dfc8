package aggregator

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
)

var (
	//go:embed lua/delta.lua
	deltaLua string

	deltaScript = redis.NewScript(deltaLua)
)

// CommitDelta stores the delta that the claim's member sends in a step (from 1), and wakes the workers that wait for
// it. A committed delta never changes: committing the same bytes again changes nothing. Other bytes, and a lost claim,
// are a Conflict. Its other errors are those of PushUpdate.
func (s *Store) CommitDelta(ctx context.Context, c Claim, step int, data []byte) error {
	return s.commitDelta(ctx, &deltaSending{claim: c, step: step, data: data})
}

func (s *Store) commitDelta(ctx context.Context, d *deltaSending) error {
	digest := sha256.Sum256(d.data)
	d.digest, d.sum = hex.EncodeToString(digest[:]), checksum(d.data)
	id := d.claim.ID
	if d.inNews = len(s.servers) == 1 && len(d.data) <= maxInNews; d.inNews {
		d.entry = newsPrefix + randomToken()
	} else {
		d.key, d.parts = s.placeDelta(fmt.Sprintf("%s:%d:", s.keys.delta(id, d.step), d.claim.Fence), len(d.data))
		d.entry = entry(d.key, d.parts)
	}
	verdict, err := s.send(ctx, d)
	switch {
	case err != nil:
		return wrap(err, "send delta", id.String()) // it may be stored nevertheless; Sweep deletes it
	case verdict == "done":
		return nil
	}
	if !d.inNews {
		s.discard(ctx, id.Job, d.entry)
	}
	switch verdict {
	case "same":
		return nil
	case "other":
		return conflict("send delta of step "+strconv.Itoa(d.step), id, "another delta was sent before")
	default:
		return conflict("send delta of step "+strconv.Itoa(d.step), id, "another attempt has taken over")
	}
}

// deltaSending is a delta that is being stored.
type deltaSending struct {
	claim  Claim
	step   int
	last   bool    // the member's last delta
	follow *Deltas // reads new deltas in the same message; nil: nothing is read
	digest string
	sum    string
	inNews bool // it is stored in the news stream; else in parts under a key
	key    string
	parts  int
	entry  string // entry of the table
	data   []byte
}

// maxInNews is the largest delta that is stored in the news stream, so that waiting workers need no further request.
// With several servers no delta is, so that all servers share the load.
const maxInNews = 128 << 10

func (d *deltaSending) piece(i int) []byte {
	return d.data[i*len(d.data)/d.parts : (i+1)*len(d.data)/d.parts]
}

// send stores a delta's parts, after their entry in the index, and commits it. With one server all of it is one
// message; the script checks that the part is there, because an earlier command of the message may have failed. A small
// delta has no part and is passed to the script.
//
// A follower reads new deltas before its own is stored, so that it does not get its own back.
func (s *Store) send(ctx context.Context, d *deltaSending) (verdict string, err error) {
	var script *redis.Cmd
	var news *redis.XStreamSliceCmd
	cmds, _ := s.client.large.Pipelined(ctx, func(p redis.Pipeliner) error {
		if !d.inNews {
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
		if _, err := d.follow.noteReply(news); err != nil {
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
	reply, err := script.StringSlice()
	if err != nil {
		return "", err
	}
	if len(reply) == 3 && d.follow != nil {
		d.follow.noteOwn(d, reply[1], reply[2])
	}
	return reply[0], nil
}

// store writes the parts of a delta on the first server, after their entry in the index.
func (s *Store) store(ctx context.Context, by redis.Pipeliner, d *deltaSending) {
	by.SAdd(ctx, s.keys.index(d.claim.ID.Job), d.entry)
	by.Expire(ctx, s.keys.index(d.claim.ID.Job), keyLife)
	for i := range d.parts {
		if at := part(d.key, i); s.server(at) == s.client {
			by.Set(ctx, at, d.piece(i), keyLife)
		}
	}
}

// sendParts writes the parts of a delta on other servers.
func (s *Store) sendParts(ctx context.Context, d *deltaSending) error {
	if len(s.servers) == 1 {
		return nil
	}
	return forEachN(ctx, d.parts, d.parts, func(ctx context.Context, _, i int) error {
		at := part(d.key, i)
		server := s.server(at)
		if server == s.client {
			return nil
		}
		return server.large.Set(ctx, at, d.piece(i), keyLife).Err()
	})
}

// commitOf are the keys and arguments of the script that commits a delta.
func (s *Store) commitOf(d *deltaSending) (keys []string, args []any) {
	id := d.claim.ID
	table, log, news := s.keys.deltas(id.Job, id.Round), s.keys.log(id.Job, id.Round), s.keys.news(id.Job, id.Round)
	keys = []string{s.keys.work(id), table, log, s.keys.counts(id.Job), s.keys.index(id.Job), news}
	args = []any{
		strconv.FormatUint(d.claim.Fence, 10), fmt.Sprintf("%d:%d", d.step, id.Member), d.digest, d.entry,
		d.step, id.Member, len(d.data), seconds(keyLife), entry(table, 0), entry(log, 0), entry(news, 0), flag(d.last),
		d.sum,
	}
	switch {
	case d.inNews:
		args = append(args, d.data)
	case len(s.servers) == 1:
		keys = append(keys, part(d.key, 0))
	}
	return keys, args
}

// checksum protects a delta for its readers. Its SHA-256 digest, which tells whether two attempts sent the same, would
// take them ten times as long.
func checksum(data []byte) string {
	return strconv.FormatUint(uint64(crc32.Checksum(data, castagnoli)), 16)
}

// flag encodes a Boolean for scripts.
func flag(is bool) string {
	if is {
		return "1"
	}
	return ""
}

// minPart is the smallest part of a delta: for fewer bytes a round trip to another server takes longer than the
// transfer.
const minPart = 4 << 10

// maxPlaceDraws bounds the search for a key whose parts are on different servers.
const maxPlaceDraws = 100

// placeDelta returns a unique key for a delta and the number of its parts: one on every server. The server of a part
// follows from its key, so keys are drawn until all servers have a part.
func (s *Store) placeDelta(prefix string, size int) (key string, parts int) {
	parts = min(len(s.servers), 1+size/minPart)
	for range maxPlaceDraws {
		key = prefix + randomToken()
		on := map[*server]bool{}
		for i := range parts {
			on[s.server(part(key, i))] = true
		}
		if len(on) == parts {
			break
		}
	}
	return key, parts
}

// randomToken is a unique text.
func randomToken() string {
	bytes := make([]byte, 8)
	rand.Read(bytes)
	return hex.EncodeToString(bytes)
}

// Deltas follows the deltas of one round through its news stream. It is for one goroutine.
type Deltas struct {
	store   *Store
	job     disdel.JobID
	round   int
	members int
	first   string              // id of the first entry of log and news; "": none was read
	last    string              // id of the last entry that was read
	newest  []int               // by member: the newest step that it sent; members send in order
	ended   []int               // by member: its last step; 0: it has not left
	sent    map[int][]sentDelta // by step and member
	held    int                 // bytes of deltas from the news that are in memory
	largest int                 // bytes of the largest delta from the news
}

// sentDelta is a committed delta.
type sentDelta struct {
	sum, entry string // entry "": not sent yet; noDelta: there is none; newsPrefix: it is in the news
	at         string // its id in the news
	held       bool   // data is in memory
	data       []byte
}

// Deltas follows a round with so many members from its start.
func (s *Store) Deltas(job disdel.JobID, round, members int) *Deltas {
	return &Deltas{
		store: s, job: job, round: round, members: members, last: "0", newest: make([]int, members),
		ended: make([]int, members), sent: map[int][]sentDelta{},
	}
}

// IdleEvery is how long one read of the news waits, and the time between calls of idle. It is short, so that a wait
// whose context ends soon frees its connection.
const IdleEvery = 250 * time.Millisecond

// logCount is how many entries of the log are read at once.
const logCount = 4096

// newsCount is how many entries of the news are read at once. Their expected size is at most newsBytes, so that a
// message arrives in time on a slow network too.
func (d *Deltas) newsCount() int { return min(max(leastNews, newsBytes/max(1, d.largest)), mostNews) }

const (
	newsBytes           = 512 << 10
	leastNews, mostNews = 4, 64
)

// maxHeld bounds the bytes of deltas in memory. Members far ahead send more than is needed soon; the rest is read when
// it is needed.
const maxHeld = 4 << 20

// Wait returns once every member's delta of a step was sent. Meanwhile it calls idle every IdleEvery. It returns idle's
// error, and the context's cause when that ends.
func (d *Deltas) Wait(ctx context.Context, step int, idle func() error) error {
	return d.wait(ctx, func() bool { return d.complete(step) }, idle)
}

// WaitEnd returns once every member has left, with the last step of any. It waits like Wait.
func (d *Deltas) WaitEnd(ctx context.Context, idle func() error) (last int, err error) {
	err = d.wait(ctx, func() bool { return !slices.Contains(d.ended, 0) }, idle)
	return slices.Max(d.ended), err
}

// ReadLog notes the deltas sent so far without waiting. Late members use it and then fetch deltas one by one.
func (d *Deltas) ReadLog(ctx context.Context) error {
	return d.readAll(ctx, d.store.keys.log(d.job, d.round), logCount)
}

// ReadNews is ReadLog that also reads the deltas themselves.
func (d *Deltas) ReadNews(ctx context.Context) error {
	return d.readAll(ctx, d.store.keys.news(d.job, d.round), d.newsCount())
}

func (d *Deltas) readAll(ctx context.Context, stream string, atOnce int) error {
	for {
		n, err := d.noteReply(d.readStream(ctx, d.store.client, stream, atOnce, noWait))
		if err != nil {
			return wrap(err, "follow deltas", fmt.Sprintf("%s round %d", d.job, d.round))
		}
		if n < atOnce {
			return nil
		}
	}
}

// LogID identifies the log of the round; "" before any entry was read. A restarted round has another id, which
// invalidates everything made from earlier deltas.
func (d *Deltas) LogID() string { return d.first }

// Newest is the newest step that a member has sent. It has sent all earlier ones too.
func (d *Deltas) Newest(member int) int { return d.newest[member] }

// LastStep is the last step of a member that has left or was removed; 0 if that is unknown.
func (d *Deltas) LastStep(member int) int { return d.ended[member] }

// participates tells whether a member takes part in a step, as far as is known.
func (d *Deltas) participates(member, step int) bool {
	return d.ended[member] == 0 || step <= d.ended[member]
}

// Commit is CommitDelta that also reads new deltas in the same message. last marks the member's last delta; nobody
// waits for the member afterwards.
func (d *Deltas) Commit(ctx context.Context, c Claim, step int, data []byte, last bool) error {
	return d.store.commitDelta(ctx, &deltaSending{claim: c, step: step, data: data, last: last, follow: d})
}

// noteOwn notes the delta that was just sent, if it is the next entry of the news.
func (d *Deltas) noteOwn(s *deltaSending, tail, at string) {
	if tail != d.last {
		return // other entries came first: it is read with them
	}
	d.last = at
	d.noteEntry(redis.XMessage{ID: at, Values: map[string]any{
		"step": s.step, "member": s.claim.ID.Member, "entry": s.entry, "last": flag(s.last), "sum": s.sum,
	}})
}

// Own returns what a member has sent in a step. It waits until that is known.
func (d *Deltas) Own(ctx context.Context, step, member int) ([]byte, error) {
	sent := func() bool { return d.sent[step] != nil && d.sent[step][member].entry != "" }
	if err := d.wait(ctx, sent, func() error { return nil }); err != nil {
		return nil, err
	}
	data, err := d.Fetch(ctx, step, member)
	if err != nil {
		return nil, err
	}
	return data[member], nil
}

func (d *Deltas) wait(ctx context.Context, there func() bool, idle func() error) error {
	for !there() {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if _, err := d.noteReply(d.news(ctx, d.store.client, IdleEvery)); err != nil {
			if deadline, limited := ctx.Deadline(); limited && !time.Now().Before(deadline) {
				<-ctx.Done() // the connection may see the deadline before the context does
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return wrap(err, "follow deltas", fmt.Sprintf("%s round %d", d.job, d.round))
		}
		if there() {
			break
		}
		if err := idle(); err != nil {
			return err
		}
	}
	return nil
}

// complete tells whether every remaining member's delta of a step was sent.
func (d *Deltas) complete(step int) bool {
	sent := d.sent[step]
	for m := range d.members {
		if d.participates(m, step) && (sent == nil || sent[m].entry == "") {
			return false
		}
	}
	return true
}

// noWait makes a read return at once.
const noWait = time.Duration(-1)

// news reads new entries of the news, and waits for them up to wait.
func (d *Deltas) news(ctx context.Context, by redis.StreamCmdable, wait time.Duration) *redis.XStreamSliceCmd {
	return d.readStream(ctx, by, d.store.keys.news(d.job, d.round), d.newsCount(), wait)
}

// readStream reads new entries of a stream, and waits for them up to wait.
func (d *Deltas) readStream(ctx context.Context, by redis.StreamCmdable, stream string, atOnce int, wait time.Duration,
) *redis.XStreamSliceCmd {
	return by.XRead(ctx, &redis.XReadArgs{Streams: []string{stream, d.last}, Count: int64(atOnce), Block: wait})
}

// noteReply notes the entries of a reply and returns their number.
func (d *Deltas) noteReply(news *redis.XStreamSliceCmd) (n int, err error) {
	streams, err := news.Result()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for _, stream := range streams {
		for _, m := range stream.Messages {
			d.last, n = m.ID, n+1
			d.noteEntry(m)
		}
	}
	return n, nil
}

// noteEntry notes an entry. It skips foreign entries.
func (d *Deltas) noteEntry(m redis.XMessage) {
	if d.first == "" {
		d.first = m.ID
	}
	text := func(name string) string { return fmt.Sprint(m.Values[name]) }
	step, err1 := strconv.Atoi(text("step"))
	member, err2 := strconv.Atoi(text("member"))
	if errors.Join(err1, err2) != nil || step < 1 || member < 0 || member >= d.members {
		return
	}
	if d.sent[step] == nil {
		d.sent[step] = make([]sentDelta, d.members)
	}
	if text("last") == "1" {
		d.ended[member] = step
	}
	d.newest[member] = max(d.newest[member], step)
	sent := sentDelta{sum: text("sum"), entry: text("entry"), at: m.ID}
	if data, along := m.Values["data"].(string); along && d.held < maxHeld {
		sent.held, sent.data = true, textBytes(data)
		d.held, d.largest = d.held+len(sent.data), max(d.largest, len(sent.data))
	}
	d.sent[step][member] = sent
}

// textBytes returns a text's bytes without a copy; they must not be changed. Copies of all deltas would be garbage at
// once.
func textBytes(text string) []byte {
	if text == "" {
		return []byte{}
	}
	return unsafe.Slice(unsafe.StringData(text), len(text))
}

// Forget drops a step that was folded.
func (d *Deltas) Forget(step int) {
	for _, sent := range d.sent[step] {
		d.held -= len(sent.data)
	}
	delete(d.sent, step)
}

// DropDeltas deletes the deltas of a round.
func (s *Store) DropDeltas(ctx context.Context, job disdel.JobID, round int) error {
	return s.drop(ctx, job, nil, deltaPrefixes(round)...)
}

// deltaPrefixes are the key prefixes of a round's deltas.
func deltaPrefixes(round int) []string {
	return []string{
		fmt.Sprintf("delta:%d:", round), fmt.Sprintf("deltas:%d:", round), fmt.Sprintf("log:%d:", round),
		fmt.Sprintf("news:%d:", round), fmt.Sprintf("draws:%d:", round),
	}
}

// Fetch reads the deltas of a step after Wait or ReadLog: those of some members, or of all if none is named. The result
// is indexed by member, with nil for members that were not asked for or have left. It must not be changed. Fetch
// returns Corrupt, which is counted, for a damaged delta and NotFound for a missing one. Both have the code of a lost
// update, because a committed delta is never sent again and the round has to restart.
func (d *Deltas) Fetch(ctx context.Context, step int, members ...int) ([][]byte, error) {
	if len(members) == 0 {
		for m := range d.members {
			members = append(members, m)
		}
	}
	sent, out := d.sent[step], make([][]byte, d.members)
	var pieces []piece
	for _, m := range members {
		switch {
		case !d.participates(m, step) || sent != nil && sent[m].entry == noDelta:
			continue
		case sent == nil || sent[m].entry == "":
			return nil, &disdel.Error{
				Kind: disdel.Invalid, Op: "fetch deltas", Job: d.job, Msg: fmt.Sprintf("step %d was not waited for", step),
			}
		}
		if strings.HasPrefix(sent[m].entry, newsPrefix) {
			if out[m] = sent[m].data; !sent[m].held {
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
	for i, p := range pieces { // pieces of a member follow each other
		if i > 0 && pieces[i-1].member == p.member {
			p.data = slices.Concat(out[p.member], p.data)
		}
		out[p.member] = p.data
	}
	for _, m := range members {
		if out[m] == nil {
			continue
		}
		if err := d.check(ctx, step, m, out[m]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// noDelta is the entry of a delta that does not exist, because its member was removed.
const noDelta = "none"

// newsPrefix starts the entries of deltas that are in the news. The rest distinguishes deliveries.
const newsPrefix = "news/"

// piece is a part of a member's delta, or a whole delta in the news.
type piece struct {
	member int
	key    string
	at     string // id in the news; "": it is at key
	data   []byte
}

// fetch reads pieces, with one message for each server.
func (d *Deltas) fetch(ctx context.Context, step int, pieces []piece) error {
	on := map[*server][]int{}
	var servers []*server
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
	return forEachN(ctx, len(servers), len(servers), func(ctx context.Context, _, k int) error {
		own := on[servers[k]]
		var gets []func() ([]byte, error)
		server := servers[k].large
		server.Pipelined(ctx, func(p redis.Pipeliner) error { //nolint:errcheck // each command has its error
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
			if data == nil { // an empty delta, not a missing one
				data = []byte{}
			}
			pieces[i].data = data
		}
		return nil
	})
}

// get adds the read of a piece to a message. The returned function gives the data after the reply.
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

// before is the largest id of a stream below id.
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

// check refuses a delta that differs from what its member sent.
func (d *Deltas) check(ctx context.Context, step, m int, data []byte) error {
	if checksum(data) == d.sent[step][m].sum {
		return nil
	}
	return d.store.countDamage(ctx, d.job, d.lost(step, m, disdel.Corrupt, "is not what was sent"))
}

// Unreadable is the error of a delta with the right checksum that cannot be decoded. It is counted as damage, and the
// round has to restart.
func (d *Deltas) Unreadable(ctx context.Context, step, member int, why error) error {
	e := d.lost(step, member, disdel.Corrupt, "cannot be read")
	e.Err = why
	return d.store.countDamage(ctx, d.job, e)
}

// lost is the error of a delta that was sent and cannot be read.
func (d *Deltas) lost(step, member int, kind disdel.Kind, what string) *disdel.Error {
	return &disdel.Error{
		Kind: kind, Code: disdel.CodeLostUpdate, Op: "fetch delta", Job: d.job,
		Subject: &disdel.UpdateID{Job: d.job, Round: d.round, Member: member},
		Msg:     fmt.Sprintf("round %d, step %d of member %d %s", d.round, step, member, what),
	}
}
