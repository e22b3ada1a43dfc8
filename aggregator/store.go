package aggregator

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/disdel/disdel"
)

// Store is a job's place in Redis. It is safe for concurrent use.
type Store struct {
	client  *redis.Client   // of the first server: heads, claims, everything small
	servers []*redis.Client // all of them, the first too: the columns of large values
	lines   *lines
	keys    keys
	column  int // values of a column
	lease   time.Duration
	slack   int // see WithSlack
}

// Open connects to the servers of Redis that s names (redis:// or rediss://, as go-redis' ParseURL reads them), and
// checks that they answer. It returns Invalid for an address or prefix that is none, Denied for a refused
// password and Unavailable otherwise. Every action of a job must be given the same servers in the same order.
func Open(ctx context.Context, s disdel.Store) (*Store, error) {
	prefix := s.Prefix
	if prefix == "" {
		prefix = "disdel"
	}
	if strings.ContainsAny(prefix, " {}*?[]\\\r\n\t") {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "open store", Msg: "the prefix \"" + prefix + "\" has a space, a brace or a wildcard",
			Hint: "use letters, digits, - and :",
		}
	}
	store := &Store{keys: keys{prefix}, column: columnValues, lease: defaultLease}
	store.lines = &lines{open: map[net.Conn]struct{}{}}
	if len(s.URLs) == 0 {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "open store", Msg: "no address was given"}
	}
	for _, address := range s.URLs {
		client, err := store.connect(ctx, address, s.CA)
		if err != nil {
			store.Close()
			return nil, err
		}
		store.servers = append(store.servers, client)
	}
	store.client = store.servers[0]
	return store, nil
}

// WithSlack is the same store, on the same connections, for a protocol whose workers may lag behind. An update's round
// is the version of the reference that it starts from; it can be claimed and committed as long as the newest reference
// is at most slack ahead of it. 0, as Open gives it, is the barrier: what a round did not take in time is of no use.
// References are published one after another in any case, each made from the newest. All that claim and push for a job
// must agree on slack, and drop a round only when it is out of everybody's reach.
func (s *Store) WithSlack(slack int) *Store {
	lax := *s
	lax.slack = max(0, slack)
	return &lax
}

// A Redis that restarts reads its file and answers within seconds, so commands are tried for that long before they
// fail. max_retries in the address sets another number of tries.
const (
	tries      = 8
	leastPause = 50 * time.Millisecond
	mostPause  = 2 * time.Second
)

// idleTime is how long a connection may lie idle and still be used: a container between two activations is paused, and
// what stands between it and Redis forgets connections without a word.
const idleTime = time.Minute

// transferTimeout is the time that a column may take, or a head with its only one. go-redis counts from the beginning
// of a command, whether or not bytes move: a hundred workers that push at once over 10 MB/s have 30 KB/s for each
// connection.
const transferTimeout = 5 * time.Minute

// patient is a server's client for what may be large. It has the same connections.
func patient(server *redis.Client) *redis.Client { return server.WithTimeout(transferTimeout) }

func (s *Store) connect(ctx context.Context, address, authority string) (*redis.Client, error) {
	opt, err := redis.ParseURL(address)
	if err != nil {
		// the URL may hold a password
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "open store", Msg: "the address is no Redis URL",
			Hint: "write redis://HOST:PORT/0, or rediss:// for TLS",
		}
	}
	if authority != "" && opt.TLSConfig != nil {
		opt.TLSConfig.RootCAs = x509.NewCertPool()
		if !opt.TLSConfig.RootCAs.AppendCertsFromPEM([]byte(authority)) {
			return nil, &disdel.Error{Kind: disdel.Invalid, Op: "open store", Msg: "the certificate authority is no PEM text"}
		}
	}
	opt.DisableIdentity = true // miniredis does not know CLIENT SETINFO
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	if opt.MaxRetries == 0 {
		opt.MaxRetries = tries - 1
	}
	opt.MinRetryBackoff, opt.MaxRetryBackoff, opt.DialerRetries = leastPause, mostPause, 2
	opt.DialTimeout, opt.ReadTimeout, opt.WriteTimeout = 5*time.Second, 30*time.Second, 30*time.Second
	if opt.ConnMaxIdleTime == 0 {
		opt.ConnMaxIdleTime = idleTime
	}
	opt.ContextTimeoutEnabled = true // without it a command outlasts the deadline of its context
	opt.Dialer = s.lines.dialer(opt)
	client := redis.NewClient(opt)
	if err := client.Ping(ctx).Err(); err != nil {
		client.Close()
		return nil, wrap(err, "open store", "Redis at "+opt.Addr)
	}
	return client, nil
}

// server is where a part lies.
func (s *Store) server(key string) *redis.Client {
	if len(s.servers) == 1 {
		return s.client
	}
	h := fnv.New32a()
	h.Write([]byte(key))
	return s.servers[h.Sum32()%uint32(len(s.servers))]
}

// Quiet has go-redis keep to itself what it would print to standard error. Its logger is the process's, so this is for
// a program's main to decide; every error comes back to the caller anyway.
func Quiet() { redis.SetLogger(silent{}) }

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// Close ends the connections.
func (s *Store) Close() error {
	var all error
	for _, c := range s.servers {
		all = errors.Join(all, c.Close())
	}
	if all != nil {
		return wrap(all, "close store", "")
	}
	return nil
}

// wrap tells what a Redis error means. An error that is ours already stays as it is.
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

// keyLife is how long a key outlives its last write: long enough to look into a job that hangs over night, short enough
// that what a crash leaves does not fill the server.
const keyLife = 24 * time.Hour

// keys builds every key. They carry job, round, level and member, so that a second delivery meets the first one's key,
// and the job in braces, so that a sharded Redis keeps a job together.
type keys struct{ prefix string }

func (k keys) job(id disdel.JobID) string { return fmt.Sprintf("%s:{%s}", k.prefix, id) }

// value is where the committed head of a value lies.
func (k keys) value(kind kind, id disdel.UpdateID) string {
	return fmt.Sprintf("%s:%s:%d:%d:%d", k.job(id.Job), kind, id.Round, id.Level, id.Member)
}

// staged is where a value lies before it is committed, and where its parts stay afterwards. The fence keeps claims
// apart, the token two deliveries under one claim.
func (k keys) staged(h *head) string {
	return fmt.Sprintf("%s:%d:%016x", k.value(h.kind, h.id), h.fence, h.token)
}

// work is the claim on an update and, once it is committed, its digest.
func (k keys) work(id disdel.UpdateID) string {
	return fmt.Sprintf("%s:%s%d:%d:%d", k.job(id.Job), claimPrefix, id.Round, id.Level, id.Member)
}

// claimPrefix begins what the keys of claims have after the job's.
const claimPrefix = "work:"

func (k keys) progress(job disdel.JobID) string { return k.job(job) + ":progress" }

// progressField is the place of an action's last heartbeat.
func progressField(p disdel.Progress) string {
	return fmt.Sprintf("%s/%d/%d/%d", p.Task, p.Level, p.Member, p.Round)
}

func (k keys) cancel(job disdel.JobID) string { return k.job(job) + ":cancel" }

// kept is there of a job that ended with something for a later run of it.
func (k keys) kept(job disdel.JobID) string { return k.job(job) + ":kept" }

// references is the digest of every published reference by round, and the newest round.
func (k keys) references(job disdel.JobID) string { return k.job(job) + ":references" }

// states is where the parts of every committed state lie, as index entries, by round, member and level.
func (k keys) states(job disdel.JobID) string { return k.job(job) + ":states" }

// delta is what a member sends of a step; a claim's fence and a token follow.
func (k keys) delta(id disdel.UpdateID, step int) string {
	return fmt.Sprintf("%s:delta:%d:%d:%d", k.job(id.Job), id.Round, step, id.Member)
}

// deltas is the digest and the index entry of every committed delta of a round, by step and member.
func (k keys) deltas(job disdel.JobID, round int) string {
	return fmt.Sprintf("%s:deltas:%d:", k.job(job), round)
}

// draws is which batch of a round's queue each step of each member has.
func (k keys) draws(job disdel.JobID, round int) string {
	return fmt.Sprintf("%s:draws:%d:", k.job(job), round)
}

// log is the stream that tells of every committed delta of a round. Who begins in the middle looks through it.
func (k keys) log(job disdel.JobID, round int) string {
	return fmt.Sprintf("%s:log:%d:", k.job(job), round)
}

// news is the log with what was sent, of deltas that are small: one message gives all of it to every worker that waits.
func (k keys) news(job disdel.JobID, round int) string {
	return fmt.Sprintf("%s:news:%d:", k.job(job), round)
}

func (k keys) counts(job disdel.JobID) string { return k.job(job) + ":counts" }

// index is the set of all values and claims of a job, so that a sweep needs no scan of the server.
func (k keys) index(job disdel.JobID) string { return k.job(job) + ":keys" }

// single are the keys of a job that are there once.
func (k keys) single(job disdel.JobID) []string {
	return []string{
		k.progress(job), k.cancel(job), k.kept(job), k.references(job), k.states(job), k.counts(job), k.index(job),
	}
}

// part is one column of a value that is too large for one key.
func part(key string, i int) string { return key + ":" + strconv.Itoa(i) }

// entry is what the index keeps of a key: the key and how many parts lie beside it.
func entry(key string, parts int) string { return key + " " + strconv.Itoa(parts) }

// maxParts bounds what an index entry may have a sweep delete.
const maxParts = 1 << 20

// entryKeys reads an entry: the key, then its parts. What is no entry of ours is the key itself.
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

// lines are a store's open connections. go-redis looks at a context before a command and at its deadline when the
// command starts, and not again: a read on a line that has gone dead would outlast the claim that it was for by
// minutes.
type lines struct {
	sync.Mutex
	open map[net.Conn]struct{}
}

// dialer has connections enter and leave the list.
func (l *lines) dialer(opt *redis.Options) func(ctx context.Context, network, address string) (net.Conn, error) {
	dial := redis.NewDialer(opt)
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		l.Lock()
		defer l.Unlock()
		l.open[c] = struct{}{}
		plain := line{c, l}
		if s, ok := c.(syscall.Conn); ok { // go-redis asks the socket whether an idle connection still stands
			return socketLine{plain, s}, nil
		}
		return plain, nil
	}
}

type line struct {
	net.Conn
	all *lines
}

// Close implements net.Conn.
func (l line) Close() error {
	l.all.Lock()
	delete(l.all.open, l.Conn)
	l.all.Unlock()
	return l.Conn.Close()
}

type socketLine struct {
	line
	syscall.Conn
}

// cut ends the reads and writes that are under way on all lines. Commands of another context among them are tried
// again, as after any failure of a connection; a line that was idle is as good as before.
func (l *lines) cut() {
	l.Lock()
	defer l.Unlock()
	for c := range l.open {
		c.SetDeadline(time.Unix(1, 0)) //nolint:errcheck // it is closed already
	}
}

// cutEvery is the time between cuts: a command may have started just after one.
const cutEvery = 50 * time.Millisecond

// with ends commands that carry columns when the context does. done is to be called when they have returned.
func (l *lines) with(ctx context.Context) (done func()) {
	returned, quiet := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(quiet)
		again := time.NewTicker(cutEvery)
		defer again.Stop()
		for {
			l.cut()
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

// commands is all that a Store asks of Redis. What reaches beyond a tenant's keys is not among it: KEYS, SCAN,
// RANDOMKEY, DBSIZE, FLUSHALL, CONFIG. INFO is not either: without it the check for room before a job is left out.
var commands = []string{
	"hello", "auth", "ping", "select", "get", "set", "getrange", "exists", "expire", "rename", "unlink", "time",
	"hset", "hget", "hmget", "hgetall", "hincrby", "sadd", "srem", "smembers", "eval", "evalsha",
	"xadd", "xread",
}

// ACL is the rule of Redis' ACL SETUSER or of an ACL file's line, after the user's name and password, that lets a user
// work with the keys of a prefix and nothing else: "ACL SETUSER name on >password RULE". Each server that values are
// spread over needs it.
func ACL(prefix string) string {
	return "resetkeys resetchannels ~" + prefix + ":* -@all +" + strings.Join(commands, " +")
}

// AddUser lets a user work with the keys of a prefix and nothing else, see ACL, on every server of the store; one that
// is there gets the password and the rule anew, and continues with what it does. It returns Denied where a server does
// not let the store's own user make others, or knows none. What the server says of it is told to nobody: it repeats
// the password.
func (s *Store) AddUser(ctx context.Context, name, password, prefix string) error {
	command := []any{"ACL", "SETUSER", name, "on", "resetpass", ">" + password}
	for word := range strings.FieldsSeq(ACL(prefix)) {
		command = append(command, word)
	}
	for _, server := range s.servers {
		err := server.Do(ctx, command...).Err()
		var said redis.Error
		switch {
		case errors.As(err, &said):
			return &disdel.Error{
				Kind: disdel.Denied, Op: "add user", Msg: "Redis does not let its user add others, or knows none",
				Hint: "give the user of the address +acl|setuser",
			}
		case err != nil:
			return wrap(err, "add user", name)
		}
	}
	return nil
}

// Check tells whether every server of the store answers and takes writes of a job. It deletes a key that nobody has: a
// read-only replica refuses that too. It returns Unavailable for a server that does not answer before ctx ends, and
// Denied for one that refuses the user or the write. The error names the server without its user and password.
func (s *Store) Check(ctx context.Context, job disdel.JobID) error {
	for _, server := range s.servers {
		once := *server.Options()
		once.MaxRetries = -1 // what a refusal says would be lost in tries
		client := redis.NewClient(&once)
		err := client.Unlink(ctx, s.keys.job(job)+":none").Err()
		client.Close() //nolint:errcheck // it was asked one thing
		if err == nil {
			continue
		}
		e := disdel.AsError(wrap(err, "check store", ""))
		out := &disdel.Error{Kind: e.Kind, Op: e.Op, Msg: "Redis at " + server.Options().Addr, Hint: e.Hint, Err: err}
		if redis.IsReadOnlyError(err) {
			out.Kind, out.Hint = disdel.Denied, "it is a replica, which takes no writes: name the server that it copies"
		}
		return out
	}
	return nil
}
