package aggregator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
)

// Store is a job's data in Redis. It is safe for concurrent use.
type Store struct {
	client      *server   // the first one, which has heads, claims and everything small
	servers     []*server // all servers, including the first; they have the columns of large values
	connections *connections
	keys        keys
	column      int // values per column
	lease       time.Duration
	slack       int // see WithSlack
}

// Open connects to the Redis servers that s names (see disdel.Store) and checks that they answer and accept writes. It
// returns Invalid for a bad address or prefix, Denied for a wrong password, and Unavailable otherwise, for example for
// a read-only replica. Every action of a job must use the same servers in the same order.
func Open(ctx context.Context, s disdel.Store) (*Store, error) {
	prefix := s.Prefix
	if prefix == "" {
		prefix = "disdel"
	}
	if strings.ContainsAny(prefix, " {}*?[]\\\r\n\t") {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "open store",
			Msg:  "the prefix \"" + prefix + "\" contains a space, a brace or a wildcard",
			Hint: "use letters, digits, - and :",
		}
	}
	store := &Store{keys: keys{prefix}, column: columnValues, lease: defaultLease}
	store.connections = &connections{open: map[net.Conn]struct{}{}, dial: dialerOf(ctx)}
	var err error
	if store.servers, err = openServers(ctx, s, store.connections); err != nil {
		return nil, err
	}
	store.client = store.servers[0]
	return store, nil
}

// WithSlack returns the same store, on the same connections, for a protocol with workers that lag behind. The round of
// an update is the version of the reference that it starts from. It can be claimed and committed while the newest
// reference is at most slack ahead. 0, the default, is a barrier. References are always published one after another,
// each from the newest. All users of a job must use the same slack, and drop a round only when no worker can still
// reach it.
func (s *Store) WithSlack(slack int) *Store {
	lax := *s
	lax.slack = max(0, slack)
	return &lax
}

// SilenceRedis stops go-redis from logging to standard error. Its logger is global, so only a program's main may call
// this. Callers get every error anyway.
func SilenceRedis() { redis.SetLogger(silent{}) }

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// Close ends the connections.
func (s *Store) Close() error {
	var all error
	for _, c := range s.servers {
		all = errors.Join(all, c.close())
	}
	if all != nil {
		return wrap(all, "close store", "")
	}
	return nil
}

// wrap translates a Redis error. It returns an Error of ours unchanged.
func wrap(err error, op, what string) error {
	if err == nil {
		return nil
	}
	var ours *disdel.Error
	if errors.As(err, &ours) {
		return err
	}
	e := &disdel.Error{Kind: disdel.Unavailable, Op: op, Msg: what, Err: err}
	var network net.Error
	switch text := err.Error(); {
	case errors.Is(err, redis.Nil):
		e.Kind, e.Err = disdel.NotFound, nil
	case errors.Is(err, context.Canceled):
		e.Kind = disdel.Canceled
	case strings.HasPrefix(text, "WRONGPASS"), strings.HasPrefix(text, "NOAUTH"), strings.HasPrefix(text, "NOPERM"):
		e.Kind, e.Hint = disdel.Denied, "check the user and password of the Redis URL, and what the user may do"
	case strings.HasPrefix(text, "OOM"):
		e.Kind, e.Hint = disdel.OverLimit, "give Redis more memory (maxmemory), or run fewer workers at once"
	case strings.Contains(text, "x509:"), strings.Contains(text, "tls:"):
		e.Kind, e.Hint = disdel.Denied, "check the certificate of Redis and the authority that it is checked against"
	case errors.As(err, &network), errors.Is(err, context.DeadlineExceeded):
		e.Hint = "check that Redis runs and can be reached from here"
	}
	return e
}

// keyLife is how long a key lives after its last write: long enough to examine a job that hung overnight, short enough
// that crashed jobs do not fill the server.
const keyLife = 24 * time.Hour

// heartbeatLife is how long a job's heartbeats live after the newest one. An action that outlives its job's Sweep may
// still send one, which nobody deletes. It is longer than the longest batch.
const heartbeatLife = time.Hour

// keys builds every key. A key contains job, round, level and member, so that a second delivery has the key of the
// first. The job is in braces, so that a sharded Redis keeps a job on one server.
type keys struct{ prefix string }

func (k keys) job(id disdel.JobID) string { return fmt.Sprintf("%s:{%s}", k.prefix, id) }

// value is the key of a committed head.
func (k keys) value(kind kind, id disdel.UpdateID) string {
	return fmt.Sprintf("%s:%s:%d:%d:%d", k.job(id.Job), kind, id.Round, id.Level, id.Member)
}

// staged is the key of a head before its commit, and the prefix of its columns. The fence separates claims, the token
// two deliveries under one claim.
func (k keys) staged(h *head) string {
	return fmt.Sprintf("%s:%d:%016x", k.value(h.kind, h.id), h.fence, h.token)
}

// work is the key of the claim on an update, and of its digest once it is committed.
func (k keys) work(id disdel.UpdateID) string {
	return fmt.Sprintf("%s:%s%d:%d:%d", k.job(id.Job), claimPrefix, id.Round, id.Level, id.Member)
}

// claimPrefix starts the keys of claims, after the job's prefix.
const claimPrefix = "work:"

func (k keys) progress(job disdel.JobID) string { return k.job(job) + ":progress" }

// progressField is the field of an action's last heartbeat.
func progressField(p disdel.Progress) string {
	return fmt.Sprintf("%s/%d/%d/%d", p.Task, p.Level, p.Member, p.Round)
}

func (k keys) cancel(job disdel.JobID) string { return k.job(job) + ":cancel" }

// kept is the key that marks an ended job whose data a later run may reuse.
func (k keys) kept(job disdel.JobID) string { return k.job(job) + ":kept" }

// references is the key of the digests of published references by round, and of the newest round.
func (k keys) references(job disdel.JobID) string { return k.job(job) + ":references" }

// states is the key of the index entries of committed states by round, member and level.
func (k keys) states(job disdel.JobID) string { return k.job(job) + ":states" }

// delta is the key prefix of a member's delta of a step, before fence and token.
func (k keys) delta(id disdel.UpdateID, step int) string {
	return fmt.Sprintf("%s:delta:%d:%d:%d", k.job(id.Job), id.Round, step, id.Member)
}

// deltas is the key of the digests and index entries of a round's committed deltas, by step and member.
func (k keys) deltas(job disdel.JobID, round int) string {
	return fmt.Sprintf("%s:deltas:%d:", k.job(job), round)
}

// draws is the key of the batches that each member took from a round's queue, by step.
func (k keys) draws(job disdel.JobID, round int) string {
	return fmt.Sprintf("%s:draws:%d:", k.job(job), round)
}

// log is the key of the stream with an entry for every committed delta of a round. Late members read it.
func (k keys) log(job disdel.JobID, round int) string {
	return fmt.Sprintf("%s:log:%d:", k.job(job), round)
}

// news is the key of the stream with the small deltas themselves: one message brings all of it to every waiting worker.
func (k keys) news(job disdel.JobID, round int) string {
	return fmt.Sprintf("%s:news:%d:", k.job(job), round)
}

func (k keys) counts(job disdel.JobID) string { return k.job(job) + ":counts" }

// index is the key of the set of all values and claims of a job, so that a sweep need not scan the server.
func (k keys) index(job disdel.JobID) string { return k.job(job) + ":keys" }

// single are the keys that a job has once.
func (k keys) single(job disdel.JobID) []string {
	return []string{
		k.progress(job), k.cancel(job), k.kept(job), k.references(job), k.states(job), k.counts(job), k.index(job),
	}
}

// part is the key of one column of a large value.
func part(key string, i int) string { return key + ":" + strconv.Itoa(i) }

// entry is an entry of the index: a key and the number of its columns.
func entry(key string, parts int) string { return key + " " + strconv.Itoa(parts) }

// maxParts bounds how many keys one index entry can delete.
const maxParts = 1 << 20

// entryKeys parses an index entry into the key and the keys of its columns. Other text is a key by itself.
func entryKeys(text string) (key string, parts []string) {
	at := strings.LastIndexByte(text, ' ')
	if at < 0 {
		return text, nil
	}
	n, err := strconv.Atoi(text[at+1:])
	if err != nil || n < 0 || n > maxParts {
		return text, nil
	}
	key = text[:at]
	for i := range n {
		parts = append(parts, part(key, i))
	}
	return key, parts
}

// connections are a store's open connections. go-redis checks a context only before a command and at its start, so a
// read on a dead connection would outlast the claim by minutes.
type connections struct {
	sync.Mutex
	open map[net.Conn]struct{}
	dial Dialer // nil: the network's
}

// Dialer makes a connection to an address of a Redis server, as net.Dialer.DialContext does.
type Dialer = func(ctx context.Context, network, address string) (net.Conn, error)

type dialerKey struct{}

// WithDialer returns a context in which Open connects with dial. Simulations use it: their servers are in the same
// process, and their connections lose what they are told to lose.
func WithDialer(ctx context.Context, dial Dialer) context.Context {
	return context.WithValue(ctx, dialerKey{}, dial)
}

func dialerOf(ctx context.Context) Dialer {
	dial, _ := ctx.Value(dialerKey{}).(Dialer)
	return dial
}

// dialer returns a dial function that tracks its connections.
func (l *connections) dialer(opt *redis.Options) func(ctx context.Context, network, address string) (net.Conn, error) {
	dial := l.dial
	if dial == nil {
		dial = redis.NewDialer(opt)
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		l.Lock()
		defer l.Unlock()
		l.open[c] = struct{}{}
		plain := trackedConn{c, l}
		if s, ok := c.(syscall.Conn); ok { // go-redis checks idle connections by their socket
			return trackedSocket{plain, s}, nil
		}
		return plain, nil
	}
}

type trackedConn struct {
	net.Conn
	all *connections
}

// Close implements net.Conn.
func (l trackedConn) Close() error {
	l.all.Lock()
	delete(l.all.open, l.Conn)
	l.all.Unlock()
	return l.Conn.Close()
}

type trackedSocket struct {
	trackedConn
	syscall.Conn
}

// interruptAll ends the pending reads and writes of all connections. Commands of other contexts are retried, as after
// any network failure; idle connections stay usable.
func (l *connections) interruptAll() {
	l.Lock()
	defer l.Unlock()
	for c := range l.open {
		c.SetDeadline(time.Unix(1, 0)) //nolint:errcheck // it may be closed already
	}
}

// interruptEvery is the time between interruptions, because a command may start just after one.
const interruptEvery = 50 * time.Millisecond

// interruptAfter ends commands with columns when ctx ends. The caller calls done when its commands have returned.
func (l *connections) interruptAfter(ctx context.Context) (done func()) {
	returned, quiet := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(quiet)
		again := time.NewTicker(interruptEvery)
		defer again.Stop()
		for {
			l.interruptAll()
			select {
			case <-returned:
				return
			case <-again.C:
			}
		}
	})
	return func() {
		close(returned)
		if !stop() {
			<-quiet
		}
	}
}

// commands are all Redis commands that a Store needs. None reaches beyond a tenant's keys, such as KEYS, SCAN,
// RANDOMKEY, DBSIZE, FLUSHALL and CONFIG. INFO is missing too; without it the check for room is skipped.
var commands = []string{
	"hello", "auth", "ping", "select", "get", "set", "getrange", "exists", "expire", "rename", "unlink", "time",
	"hset", "hget", "hmget", "hgetall", "hincrby", "sadd", "srem", "smembers", "eval", "evalsha",
	"xadd", "xread", "cluster|slots", "asking",
}

// ACL returns the rule of Redis' ACL SETUSER that allows a user only the keys of a prefix: "ACL SETUSER name on
// >password RULE". Each server of a store needs it, and each replica that may become one.
func ACL(prefix string) string {
	return "resetkeys resetchannels ~" + prefix + ":* -@all +" + strings.Join(commands, " +")
}
