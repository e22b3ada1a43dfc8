package aggregator

import (
	"context"
	"crypto/x509"
	"errors"
	"hash/fnv"
	"net"
	"strings"
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
