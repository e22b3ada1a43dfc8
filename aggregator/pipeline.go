package aggregator

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
)

// ErrStageRestarted is returned by a Pipeline after a stage has joined again: what the stages sent each other before is
// void, and all of them begin again.
var ErrStageRestarted = errors.New("another stage of the network has started again")

// ErrStagesPaused is returned by Receive where the stage before ended its leg.
var ErrStagesPaused = errors.New("the stage before has paused")

// Place is a stage's place in a job: the stages of a replica train one network together.
type Place struct {
	Round, Replica int
	Stage, Stages  int
}

// Joined is what a stage tells the others when it joins.
type Joined struct {
	Done     int       // batches of the round that its state has; 0: it begins the round
	Deadline time.Time // of its activation; zero: there is none
}

// Pipeline passes the values of micro-batches between the stages of a replica. Each boundary between two stages has a
// queue in each direction, in order. A value is deleted when it was received, and what ReceiveKept receives the second
// time. Everything is for one generation of the
// stages: after a stage has joined again the others get ErrStageRestarted, and join again too. It is for one goroutine.
type Pipeline struct {
	store  *Store
	job    disdel.JobID
	at     Place
	own    string // of this attempt
	tokens []string
	sent   map[direction]*channel
	got    map[direction]*channel
	buffer []byte    // of a block, as it comes
	block  []float32 // the same, as values
	waited time.Duration
}

// direction is where values go: to the next stage, to the one before, or between the first and the last one.
type direction string

const (
	forwards  direction = "forward"
	backwards direction = "back"
	shared    direction = "shared"
)

func directionOf(forward bool) direction {
	if forward {
		return forwards
	}
	return backwards
}

// sender is the stage that this one receives from.
func (p *Pipeline) sender(d direction) int {
	switch d {
	case forwards:
		return p.at.Stage - 1
	case backwards:
		return p.at.Stage + 1
	default:
		return p.at.Stages - 1 - p.at.Stage
	}
}

// Message is what a stage passes, in blocks: where the values are, or where they belong.
type Message interface {
	Len() int
	Block(first, n int) []float32    // n values from one on, which nobody changes
	Set(first int, values []float32) // sets values from one on
}

// Values is a Message of a slice of values.
type Values []float32

// Len implements Message.
func (v Values) Len() int { return len(v) }

// Block implements Message.
func (v Values) Block(first, n int) []float32 { return v[first : first+n] }

// Set implements Message.
func (v Values) Set(first int, values []float32) { copy(v[first:], values) }

// channel is one direction of a boundary.
type channel struct {
	key    string
	number uint64   // of messages so far
	last   string   // id of the last announcement that was read
	recent []string // entries of messages that may not have been received
	unread []announcement
	kept   []announcement // received by ReceiveKept, and to be received again
}

// announcement says where a message is.
type announcement struct {
	number        uint64
	key           string
	values, parts int
	sums          []byte
	pause         bool
}

// Pipeline returns the queues of a stage. The claim is that of its work.
func (s *Store) Pipeline(c Claim, at Place) *Pipeline {
	return &Pipeline{store: s, job: c.ID.Job, at: at, own: fmt.Sprintf("%d-%s", c.Fence, randomToken())}
}

// Waited is how long this stage has waited for others: until they joined, sent values or came to the end.
func (p *Pipeline) Waited() time.Duration { return p.waited }

// waits counts the time since begun as waited.
func (p *Pipeline) waits(begun time.Time) { p.waited += time.Since(begun) }

// pipelineKey is the hash with the newest attempt of each stage.
func (k keys) pipeline(job disdel.JobID, at Place) string {
	return fmt.Sprintf("%s:pipeline:%d:%d", k.job(job), at.Round, at.Replica)
}

// Join tells the others that this stage is there, and waits until all are. It returns what each has told. Meanwhile it
// calls idle every IdleEvery, and returns idle's error.
func (p *Pipeline) Join(ctx context.Context, told Joined, idle func() error) ([]Joined, error) {
	p.leave(ctx)
	text, err := json.Marshal(struct {
		Own string
		Joined
	}{p.own, told})
	if err != nil {
		return nil, wrap(err, "join stages", string(p.job))
	}
	key := p.store.keys.pipeline(p.job, p.at)
	_, err = p.store.client.Pipelined(ctx, func(by redis.Pipeliner) error {
		by.SAdd(ctx, p.store.keys.index(p.job), entry(key, 0))
		by.HSet(ctx, key, strconv.Itoa(p.at.Stage), text)
		by.Expire(ctx, key, keyLife)
		return nil
	})
	if err != nil {
		return nil, wrap(err, "join stages", string(p.job))
	}
	defer p.waits(time.Now())
	for {
		all, err := p.read(ctx)
		if err != nil {
			return nil, err
		}
		if len(all) == p.at.Stages {
			return p.begin(all), nil
		}
		if err := p.pause(ctx, idle); err != nil {
			return nil, err
		}
	}
}

// stageEntry is the entry of a stage in the hash.
type stageEntry struct {
	Own string
	Joined
	Over string // the generation that it has computed all steps of
}

// read returns the entries of the stages that have joined, in their order.
func (p *Pipeline) read(ctx context.Context) ([]stageEntry, error) {
	fields, err := p.store.client.HGetAll(ctx, p.store.keys.pipeline(p.job, p.at)).Result()
	if err != nil {
		return nil, wrap(err, "read stages", string(p.job))
	}
	var out []stageEntry
	for i := range p.at.Stages {
		var e stageEntry
		if text, there := fields[strconv.Itoa(i)]; !there || json.Unmarshal([]byte(text), &e) != nil {
			continue
		}
		e.Over = fields[overField(i)]
		out = append(out, e)
	}
	return out, nil
}

func overField(stage int) string { return "over " + strconv.Itoa(stage) }

// begin begins a generation.
func (p *Pipeline) begin(all []stageEntry) (told []Joined) {
	p.tokens = nil
	for _, e := range all {
		p.tokens, told = append(p.tokens, e.Own), append(told, e.Joined)
	}
	p.sent, p.got = map[direction]*channel{}, map[direction]*channel{}
	for _, d := range []direction{forwards, backwards, shared} {
		p.sent[d] = &channel{key: p.channelKey(p.at.Stage, d), last: "0"}
		p.got[d] = &channel{key: p.channelKey(p.sender(d), d), last: "0"}
	}
	return told
}

// generation names the attempts that work together.
func (p *Pipeline) generation() string {
	digest := sha256.New()
	for _, t := range p.tokens {
		digest.Write([]byte(t + "\n"))
	}
	return hex.EncodeToString(digest.Sum(nil)[:8])
}

// channelKey is the key of what a stage sends.
func (p *Pipeline) channelKey(from int, d direction) string {
	return fmt.Sprintf("%s:%s:%d:%s", p.store.keys.pipeline(p.job, p.at), p.generation(), from, d)
}

// Check returns ErrStageRestarted if a stage has joined again.
func (p *Pipeline) Check(ctx context.Context) error {
	_, err := p.check(ctx)
	return err
}

func (p *Pipeline) check(ctx context.Context) ([]stageEntry, error) {
	all, err := p.read(ctx)
	if err != nil {
		return nil, err
	}
	same := func(e stageEntry, token string) bool { return e.Own == token }
	if !slices.EqualFunc(all, p.tokens, same) {
		return nil, ErrStageRestarted
	}
	return all, nil
}

// pause waits a little, and calls idle.
func (p *Pipeline) pause(ctx context.Context, idle func() error) error {
	select {
	case <-time.After(IdleEvery / 5):
		return idle()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// End tells the others that this stage has computed all steps, and waits until all have. The updates of the stages
// belong together only then.
func (p *Pipeline) End(ctx context.Context, idle func() error) error {
	key, generation := p.store.keys.pipeline(p.job, p.at), p.generation()
	if err := p.store.client.HSet(ctx, key, overField(p.at.Stage), generation).Err(); err != nil {
		return wrap(err, "end stages", string(p.job))
	}
	defer p.waits(time.Now())
	for {
		all, err := p.check(ctx)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(e stageEntry) bool { return e.Over != generation }) {
			p.leave(ctx)
			return nil
		}
		if err := p.pause(ctx, idle); err != nil {
			return err
		}
	}
}

// leave deletes what was sent and not received, and what was not read. A sweep deletes what it misses.
func (p *Pipeline) leave(ctx context.Context) {
	if p.sent == nil {
		return
	}
	var entries []string
	for _, c := range p.sent {
		entries = append(entries, c.recent...)
	}
	for _, c := range p.got {
		p.look(ctx, c, noWait) //nolint:errcheck // a sweep deletes them
		for _, a := range append(c.unread, c.kept...) {
			entries = append(entries, entry(a.key, a.parts))
		}
	}
	p.store.discard(ctx, p.job, entries...) //nolint:errcheck // the same
	p.sent, p.got = nil, nil
}

// pipelineBlock is the number of values of a block of a message.
const pipelineBlock = 1 << 18

// keptMessages is how many of its newest messages a stage deletes itself if it begins again.
const keptMessages = 256

// Send passes values to the next stage, or to the one before. It returns OverLimit if Redis is out of memory, with the
// size of the message.
func (p *Pipeline) Send(ctx context.Context, forward bool, values Message) error {
	return p.send(ctx, directionOf(forward), values, "")
}

// SendShared passes values of a weight that the first and the last stage share: from one of them to the other. It
// returns OverLimit as Send does.
func (p *Pipeline) SendShared(ctx context.Context, values []float32) error {
	return p.send(ctx, shared, Values(values), "")
}

// SendPause tells the next stage that this one ends its leg.
func (p *Pipeline) SendPause(ctx context.Context) error {
	return p.send(ctx, forwards, Values(nil), flag(true))
}

// blocksOf is the number of blocks of so many values.
func blocksOf(values int) int { return (values + pipelineBlock - 1) / pipelineBlock }

// within is the first value and the number of values of block i of a message of n.
func within(i, n int) (first, count int) {
	return i * pipelineBlock, min(pipelineBlock, n-i*pipelineBlock)
}

func (p *Pipeline) send(ctx context.Context, to direction, values Message, pause string) error {
	c, s := p.sent[to], p.store
	n := values.Len()
	blocks := blocksOf(n)
	key := fmt.Sprintf("%s:%d", c.key, c.number)
	sums := make([]byte, 4*blocks)
	err := s.register(ctx, p.job, entry(key, blocks), entry(c.key, 0))
	if err == nil {
		err = forEachN(ctx, blocks, writeDepth, func(ctx context.Context, _, i int) error {
			at, data := part(key, i), floatBytes(values.Block(within(i, n)))
			binary.LittleEndian.PutUint32(sums[4*i:], crc32.Checksum(data, castagnoli))
			return s.server(at).large.Set(ctx, at, data, keyLife).Err()
		})
	}
	if err == nil {
		_, err = s.client.Pipelined(ctx, func(by redis.Pipeliner) error {
			by.XAdd(ctx, &redis.XAddArgs{Stream: c.key, Values: []any{
				"number", c.number, "values", n, "sums", sums, "pause", pause,
			}})
			by.Expire(ctx, c.key, keyLife)
			return nil
		})
	}
	if err = wrap(err, "send values of a stage", string(p.job)); disdel.KindOf(err) == disdel.OverLimit {
		e := *disdel.AsError(err)
		e.Msg = fmt.Sprintf("Redis has no room for %v of one micro-batch; each boundary between stages holds those of a step",
			disdel.Bytes(4*n))
		e.Hint = "give Redis more memory (maxmemory), or lower training.batchSize"
		err = &e
	}
	c.number++
	c.recent = append(c.recent, entry(key, blocks))
	c.recent = c.recent[max(0, len(c.recent)-keptMessages):]
	return err
}

// Receive sets values to the next ones of the stage before, or of the next one: as many as the caller knows that a
// message has. It returns ErrStagesPaused, ErrStageRestarted, and Corrupt for a message that is damaged or has another
// size. Meanwhile it calls idle as Join does.
func (p *Pipeline) Receive(ctx context.Context, forward bool, values Message, idle func() error) error {
	return p.receive(ctx, directionOf(forward), values, false, idle)
}

// ReceiveKept is Receive of the stage before, but the message stays in Redis. ReceiveAgain receives such messages once
// more, in their order, and deletes them. Its errors are those of Receive.
func (p *Pipeline) ReceiveKept(ctx context.Context, values Message, idle func() error) error {
	return p.receive(ctx, forwards, values, true, idle)
}

// ReceiveAgain receives a message of ReceiveKept again.
func (p *Pipeline) ReceiveAgain(ctx context.Context, values Message) error {
	c := p.got[forwards]
	a := c.kept[0]
	c.kept = c.kept[1:]
	return p.take(ctx, a, values, false)
}

// ReceiveShared returns the next values of SendShared of the other stage, as Receive does.
func (p *Pipeline) ReceiveShared(ctx context.Context, values []float32, idle func() error) error {
	return p.receive(ctx, shared, Values(values), false, idle)
}

func (p *Pipeline) receive(ctx context.Context, from direction, values Message, keep bool, idle func() error) error {
	c := p.got[from]
	if err := p.await(ctx, c, idle); err != nil {
		return err
	}
	a := c.unread[0]
	c.unread = c.unread[1:]
	if a.pause {
		return ErrStagesPaused
	}
	if keep {
		c.kept = append(c.kept, a)
	}
	return p.take(ctx, a, values, keep)
}

// take reads a message, and deletes it if it is not to be kept.
func (p *Pipeline) take(ctx context.Context, a announcement, values Message, keep bool) error {
	err := p.fetch(ctx, a, values)
	if err == nil && !keep {
		err = p.store.remove(ctx, p.job, []string{entry(a.key, a.parts)})
	}
	if err != nil {
		if changed := p.Check(ctx); changed != nil {
			return changed
		}
	}
	return wrap(err, "read values of a stage", string(p.job))
}

// await returns once a channel has a message.
func (p *Pipeline) await(ctx context.Context, c *channel, idle func() error) error {
	defer p.waits(time.Now())
	for len(c.unread) == 0 {
		if err := p.look(ctx, c, IdleEvery); err != nil || len(c.unread) > 0 {
			return err
		}
		if err := p.Check(ctx); err != nil {
			return err
		}
		if err := idle(); err != nil {
			return err
		}
	}
	return nil
}

// look reads announcements, and waits for them up to wait.
func (p *Pipeline) look(ctx context.Context, c *channel, wait time.Duration) error {
	streams, err := p.store.client.XRead(ctx, &redis.XReadArgs{
		Streams: []string{c.key, c.last}, Count: mostNews, Block: wait,
	}).Result()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return wrap(err, "read values of a stage", string(p.job))
	}
	for _, stream := range streams {
		for _, m := range stream.Messages {
			c.last = m.ID
			a, err := c.announced(m)
			if err != nil {
				return err
			}
			if a.number == c.number { // an earlier one was announced twice, as its sender got no answer
				c.number++
				c.unread = append(c.unread, a)
			}
		}
	}
	return nil
}

// announced reads an announcement.
func (c *channel) announced(m redis.XMessage) (a announcement, err error) {
	text := func(name string) string { return fmt.Sprint(m.Values[name]) }
	a.number, err = strconv.ParseUint(text("number"), 10, 64)
	if err == nil {
		a.values, err = strconv.Atoi(text("values"))
	}
	if a.sums = []byte(text("sums")); err != nil || a.values < 0 || a.number > c.number {
		return a, &disdel.Error{Kind: disdel.Corrupt, Op: "read values of a stage", Msg: "a message is missing or damaged"}
	}
	a.key, a.pause = fmt.Sprintf("%s:%d", c.key, a.number), text("pause") == flag(true)
	a.parts = blocksOf(a.values)
	return a, nil
}

// fetch reads a message into values, block by block.
func (p *Pipeline) fetch(ctx context.Context, a announcement, values Message) error {
	damaged := &disdel.Error{Kind: disdel.Corrupt, Op: "read values of a stage", Job: p.job, Msg: "a message is damaged"}
	n := values.Len()
	if a.values != n || len(a.sums) != 4*a.parts {
		return damaged
	}
	if most := min(n, pipelineBlock); len(p.block) < most {
		p.buffer, p.block = make([]byte, 4*most+bufferSpare), make([]float32, most)
	}
	for i := range a.parts {
		first, count := within(i, n)
		at := part(a.key, i)
		data, err := p.store.fetch(ctx, p.store.server(at), at, p.buffer)
		if err != nil {
			return err
		}
		if len(data) != 4*count || crc32.Checksum(data, castagnoli) != binary.LittleEndian.Uint32(a.sums[4*i:]) {
			return damaged
		}
		for k := range count {
			p.block[k] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*k:]))
		}
		values.Set(first, p.block[:count])
	}
	return nil
}
