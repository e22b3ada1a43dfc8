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

// Deltas follows what the members of a round send, in its news. It is for one goroutine.
type Deltas struct {
	store   *Store
	job     disdel.JobID
	round   int
	members int
	first   string              // entry of log and news that there is; "": none was read
	last    string              // the one that was read last
	newest  []int               // by member: the newest step that it has sent; it sends them in order
	ended   []int               // by member: the step that it left after; 0: it stays
	sent    map[int][]sentDelta // by step: what is there of it, by member
	held    int                 // bytes of deltas that came with the news and were not forgotten
	largest int                 // bytes of one that came so
}

// sentDelta is a delta that was committed.
type sentDelta struct {
	sum, entry string // entry "": it was not sent yet; nothing: there is none; alongside: it lies in the news
	at         string // its id there
	here       bool   // and it was kept
	data       []byte
}

// Deltas follows a round of so many members from its beginning.
func (s *Store) Deltas(job disdel.JobID, round, members int) *Deltas {
	return &Deltas{
		store: s, job: job, round: round, members: members, last: "0", newest: make([]int, members),
		ended: make([]int, members), sent: map[int][]sentDelta{},
	}
}

// IdleEvery is how long one read of the log waits, and the time between calls of idle. It is short, so that a wait
// whose context ends does not hold its connection for long.
const IdleEvery = 250 * time.Millisecond

// logCount is how many entries of the log are read at once.
const logCount = 4096

// newsCount is how many entries of the news are read at once: no more than newsBytes of deltas as large as any so far,
// so that a message comes in time on a slow line, too.
func (d *Deltas) newsCount() int { return min(max(leastNews, newsBytes/max(1, d.largest)), mostNews) }

const (
	newsBytes           = 512 << 10
	leastNews, mostNews = 4, 64
)

// heldMost is how many bytes of deltas are kept as they came: of members that are far ahead more come than are needed
// soon. The others are read when they are.
const heldMost = 4 << 20

// Wait returns once every member's delta of a step is there. While it waits it calls idle every IdleEvery. It
// returns what idle does, and the context's cause when that ends first.
func (d *Deltas) Wait(ctx context.Context, step int, idle func() error) error {
	return d.wait(ctx, func() bool { return d.complete(step) }, idle)
}

// WaitEnd returns once every member has left, with the last step of any. It waits as Wait does.
func (d *Deltas) WaitEnd(ctx context.Context, idle func() error) (last int, err error) {
	err = d.wait(ctx, func() bool { return !slices.Contains(d.ended, 0) }, idle)
	return slices.Max(d.ended), err
}

// Look notes what has been sent so far, and does not wait. It is for who begins in the middle: deltas are read one by
// one when they are fetched.
func (d *Deltas) Look(ctx context.Context) error {
	return d.all(ctx, d.store.keys.log(d.job, d.round), logCount)
}

// Take is Look that has the deltas come along.
func (d *Deltas) Take(ctx context.Context) error {
	return d.all(ctx, d.store.keys.news(d.job, d.round), d.newsCount())
}

func (d *Deltas) all(ctx context.Context, stream string, atOnce int) error {
	for {
		n, err := d.took(d.ask(ctx, d.store.client, stream, atOnce, noWait))
		if err != nil {
			return wrap(err, "follow deltas", fmt.Sprintf("%s round %d", d.job, d.round))
		}
		if n < atOnce {
			return nil
		}
	}
}

// Began names the log of the round by its first entry, "" while none was seen. A round that is begun anew has another
// one: what was made of the deltas before is of no use then.
func (d *Deltas) Began() string { return d.first }

// Newest is the newest step of a member that was seen: it has sent all before it, too.
func (d *Deltas) Newest(member int) int { return d.newest[member] }

// Left is the step that a member has left after, by itself or since it was ended; 0 while nothing is known of that.
func (d *Deltas) Left(member int) int { return d.ended[member] }

// there tells whether a member takes part in a step, as far as is known.
func (d *Deltas) there(member, step int) bool { return d.ended[member] == 0 || step <= d.ended[member] }

// Commit is CommitDelta, and takes what has been sent so far by the same message. With last set it is the member's
// last: nobody waits for it any more.
func (d *Deltas) Commit(ctx context.Context, c Claim, step int, data []byte, last bool) error {
	return d.store.commitDelta(ctx, &sending{claim: c, step: step, data: data, last: last, follow: d})
}

// sentOwn notes what was just sent, where it is the very next entry of the news.
func (d *Deltas) sentOwn(s *sending, tail, at string) {
	if tail != d.last {
		return // others came in between: it is read with them
	}
	d.last = at
	d.take(redis.XMessage{ID: at, Values: map[string]any{
		"step": s.step, "member": s.claim.ID.Member, "entry": s.entry, "last": flag(s.last), "sum": s.sum,
	}})
}

// Own is what a member has sent of a step. It waits as Wait does, though not for others.
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
		if _, err := d.took(d.news(ctx, d.store.client, IdleEvery)); err != nil {
			if deadline, limited := ctx.Deadline(); limited && !time.Now().Before(deadline) {
				<-ctx.Done() // its connection saw the deadline first
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

// complete tells whether the delta of a step has been seen of every member that has not left before.
func (d *Deltas) complete(step int) bool {
	sent := d.sent[step]
	for m := range d.members {
		if d.there(m, step) && (sent == nil || sent[m].entry == "") {
			return false
		}
	}
	return true
}

// noWait is a read that does not wait.
const noWait = time.Duration(-1)

// news reads what is new, with the deltas that come along, waiting for it for a while.
func (d *Deltas) news(ctx context.Context, by redis.StreamCmdable, wait time.Duration) *redis.XStreamSliceCmd {
	return d.ask(ctx, by, d.store.keys.news(d.job, d.round), d.newsCount(), wait)
}

// ask reads what is new in a stream, waiting for it for a while.
func (d *Deltas) ask(ctx context.Context, by redis.StreamCmdable, stream string, atOnce int, wait time.Duration,
) *redis.XStreamSliceCmd {
	return by.XRead(ctx, &redis.XReadArgs{Streams: []string{stream, d.last}, Count: int64(atOnce), Block: wait})
}

// took takes what was asked for, and returns how many entries that were.
func (d *Deltas) took(news *redis.XStreamSliceCmd) (n int, err error) {
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
			d.take(m)
		}
	}
	return n, nil
}

// take notes an entry. What is no entry of ours is passed over: nobody is waited for by it.
func (d *Deltas) take(m redis.XMessage) {
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
	if data, along := m.Values["data"].(string); along && d.held < heldMost {
		sent.here, sent.data = true, textBytes(data)
		d.held, d.largest = d.held+len(sent.data), max(d.largest, len(sent.data))
	}
	d.sent[step][member] = sent
}

// textBytes is a text's own bytes, which nobody may change: a copy of every delta would be garbage right away.
func textBytes(text string) []byte {
	if text == "" {
		return []byte{}
	}
	return unsafe.Slice(unsafe.StringData(text), len(text))
}

// Forget drops what is known of a step that was folded.
func (d *Deltas) Forget(step int) {
	for _, sent := range d.sent[step] {
		d.held -= len(sent.data)
	}
	delete(d.sent, step)
}

// DropDeltas deletes the deltas of a round, which nobody will fold any more.
func (s *Store) DropDeltas(ctx context.Context, job disdel.JobID, round int) error {
	return s.drop(ctx, job, nil, deltaPrefixes(round)...)
}

// deltaPrefixes are those of the keys of a round's deltas.
func deltaPrefixes(round int) []string {
	return []string{
		fmt.Sprintf("delta:%d:", round), fmt.Sprintf("deltas:%d:", round), fmt.Sprintf("log:%d:", round),
		fmt.Sprintf("news:%d:", round), fmt.Sprintf("draws:%d:", round),
	}
}

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
