package aggregator

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/disdel/disdel"
)

// server is one Redis server, the master that sentinels name, or a whole cluster. In a cluster all keys of a job are on
// one master, because the job is the hash tag of its keys.
type server struct {
	redis.UniversalClient
	large   redis.UniversalClient // for commands with columns: it has more time for each
	name    string                // its addresses, for messages
	retries int                   // of a command
	options *redis.Options        // of connections; those of a sentinel's master but for Addr
	connect func(retries int, timeout time.Duration) redis.UniversalClient
	master  string // name of the master that the sentinels know; "": there are none
	guards  []redis.Options
}

// A restarting Redis answers within seconds, so commands are retried for that long. A failover takes longer: others
// have to agree that the master is gone. max_retries in the address sets the number of tries.
const (
	tries         = 8
	failoverTries = 24
	leastPause    = 50 * time.Millisecond
	mostPause     = 2 * time.Second
)

// idleTime is how long an idle connection is reused. A container is paused between activations, and network devices
// forget idle connections silently.
const idleTime = time.Minute

// idleConnections is how many idle connections to a server are kept: for as many reads and writes as run at once, and
// for a heartbeat beside them. The service would otherwise keep as many as its busiest moment had, with 64 KB each.
const idleConnections = readDepth + writeDepth + 1

// commandTimeout bounds a small command.
const commandTimeout = 30 * time.Second

// transferTimeout bounds one command with a column. go-redis counts from the start of the command, whether or not bytes
// move. A hundred workers that share 10 MB/s have 100 KB/s each.
const transferTimeout = 5 * time.Minute

// topologyAge is the age at which a cluster is asked again which server has which keys.
const topologyAge = 2 * time.Second

// redirects is how many servers of a cluster one try of a command asks.
const redirects = 3

func invalidAddress(msg, hint string) error {
	return &disdel.Error{Kind: disdel.Invalid, Op: "open store", Msg: msg, Hint: hint}
}

// openServers opens the servers that s names. Addresses of sentinels with the same master are one server, and addresses
// of a cluster's nodes are one server too. Of a cluster only one node has to answer.
func openServers(ctx context.Context, s disdel.Store, tracked *connections) (out []*server, err error) {
	if len(s.URLs) == 0 {
		return nil, invalidAddress("no address was given", "name a server with --redis redis://HOST:PORT/0")
	}
	var single []*redis.Options
	guards, order := map[string][]redis.Options{}, []string{}
	for _, text := range s.URLs {
		opt, master, err := parseAddress(text, s.CA)
		if err != nil {
			return nil, err
		}
		if master != "" && guards[master] == nil {
			order = append(order, master)
		}
		if master == "" {
			single = append(single, opt)
		} else {
			guards[master] = append(guards[master], *opt)
		}
	}
	for _, opt := range single {
		out = append(out, newSingle(opt, tracked))
	}
	for _, master := range order {
		out = append(out, newGuarded(master, guards[master], "", tracked))
	}
	inCluster, err := examineAll(ctx, out, tracked)
	if err == nil && !inCluster {
		return out, nil
	}
	closeAll(out)
	if err == nil && len(order) > 0 {
		err = invalidAddress("a node of a Redis cluster stands beside the address of a Sentinel",
			"name nodes of one cluster alone, or Sentinels alone")
	}
	if err != nil {
		return nil, err
	}
	return openCluster(ctx, single, tracked)
}

func closeAll(servers []*server) {
	for _, s := range servers {
		s.close() //nolint:errcheck // nothing was written
	}
}

// examineAll examines all servers at once. It returns true as soon as one is a node of a cluster.
func examineAll(ctx context.Context, servers []*server, tracked *connections) (inCluster bool, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var found atomic.Bool
	err = forEachN(ctx, len(servers), len(servers), func(_ context.Context, _, i int) error {
		mode, err := servers[i].examine(ctx, tracked)
		if mode == "cluster" {
			found.Store(true)
			stop()
		}
		return err
	})
	if found.Load() {
		return true, nil
	}
	return false, err
}

// parseAddress reads one address. The address of a sentinel also has the name of its master.
func parseAddress(text, authority string) (opt *redis.Options, master string, err error) {
	// no error may repeat the URL, which may contain a password
	bad := invalidAddress("the address is not a Redis URL",
		"write redis://HOST:PORT/0, rediss:// for TLS, or redis-sentinel://HOST:PORT/MASTER")
	u, err := url.Parse(text)
	if err != nil {
		return nil, "", bad
	}
	scheme, guard := strings.CutSuffix(u.Scheme, "-sentinel")
	if guard {
		if u.Scheme, master, u.Path = scheme, strings.Trim(u.Path, "/"), ""; master == "" {
			return nil, "", invalidAddress("the address of a Sentinel names no master",
				"write redis-sentinel://HOST:PORT/MASTER, for example /mymaster")
		}
		if u.Port() == "" {
			u.Host = net.JoinHostPort(u.Hostname(), "26379")
		}
		text = u.String()
	}
	if opt, err = redis.ParseURL(text); err != nil {
		return nil, "", bad
	}
	if opt.TLSConfig != nil && authority != "" {
		opt.TLSConfig.RootCAs = x509.NewCertPool()
		if !opt.TLSConfig.RootCAs.AppendCertsFromPEM([]byte(authority)) {
			return nil, "", invalidAddress("the certificate authority is not PEM text", "")
		}
	}
	if opt.TLSConfig != nil && guard {
		opt.TLSConfig.ServerName = "" // the master has another name
	}
	opt.DisableIdentity = true // miniredis does not know CLIENT SETINFO
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	opt.MinRetryBackoff, opt.MaxRetryBackoff, opt.DialerRetries = leastPause, mostPause, 2
	opt.DialTimeout = 5 * time.Second
	if opt.ConnMaxIdleTime == 0 {
		opt.ConnMaxIdleTime = idleTime
	}
	if opt.MaxIdleConns == 0 {
		opt.MaxIdleConns = idleConnections
	}
	opt.ContextTimeoutEnabled = true // otherwise a command ignores the deadline of its context
	return opt, master, nil
}

// complete adds the clients of a server.
func (s *server) complete(usual int) *server {
	if s.retries = s.options.MaxRetries; s.retries == 0 {
		s.retries = usual - 1
	}
	s.UniversalClient = s.connect(s.retries, commandTimeout)
	if c, ok := s.UniversalClient.(*redis.Client); ok {
		s.large = c.WithTimeout(transferTimeout) // on the same connections
	} else {
		s.large = s.connect(s.retries, transferTimeout)
	}
	return s
}

func newSingle(opt *redis.Options, tracked *connections) *server {
	opt.Dialer = tracked.dialer(opt)
	s := &server{name: opt.Addr, options: opt}
	s.connect = func(retries int, timeout time.Duration) redis.UniversalClient {
		own := *opt
		own.MaxRetries, own.ReadTimeout, own.WriteTimeout = retries, timeout, timeout
		return redis.NewClient(&own)
	}
	return s.complete(tries)
}

// newGuarded is the master that sentinels name. password is that of the sentinels.
func newGuarded(master string, guards []redis.Options, password string, tracked *connections) *server {
	opt := &guards[0]
	dial := tracked.dialer(opt)
	var at []string
	for i := range guards {
		at = append(at, guards[i].Addr)
		guards[i].Dialer = dial
	}
	s := &server{
		name: strings.Join(at, ", ") + " (Sentinel, master " + master + ")", options: opt, master: master, guards: guards,
	}
	s.connect = func(retries int, timeout time.Duration) redis.UniversalClient {
		return redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: master, SentinelAddrs: at, SentinelPassword: password, Dialer: dial, DB: opt.DB,
			Username: opt.Username, Password: opt.Password, TLSConfig: opt.TLSConfig,
			MaxRetries: retries, MinRetryBackoff: leastPause, MaxRetryBackoff: mostPause,
			DialTimeout: opt.DialTimeout, DialerRetries: opt.DialerRetries, ReadTimeout: timeout, WriteTimeout: timeout,
			ConnMaxIdleTime: opt.ConnMaxIdleTime, MaxIdleConns: opt.MaxIdleConns,
			ContextTimeoutEnabled: true, DisableIdentity: true,
		})
	}
	return s.complete(failoverTries)
}

func openCluster(ctx context.Context, nodes []*redis.Options, tracked *connections) ([]*server, error) {
	opt := nodes[0]
	if opt.DB != 0 {
		return nil, noDatabase(opt)
	}
	var at []string
	for _, n := range nodes {
		at = append(at, n.Addr)
	}
	tls := opt.TLSConfig
	if tls != nil {
		tls = tls.Clone()
		tls.ServerName = "" // each node has its own
	}
	own := *opt
	own.TLSConfig = tls
	dial := tracked.dialer(&own)
	s := &server{name: strings.Join(at, ", ") + " (cluster)", options: &own}
	s.connect = func(retries int, timeout time.Duration) redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: at, Dialer: dial, Username: opt.Username, Password: opt.Password, TLSConfig: tls,
			MaxRedirects: max(retries, redirects), MinRetryBackoff: leastPause, MaxRetryBackoff: mostPause,
			DialTimeout: opt.DialTimeout, DialerRetries: opt.DialerRetries, ReadTimeout: timeout, WriteTimeout: timeout,
			ConnMaxIdleTime: opt.ConnMaxIdleTime, MaxIdleConns: opt.MaxIdleConns,
			ContextTimeoutEnabled: true, DisableIdentity: true,
			MaintNotificationsConfig:   opt.MaintNotificationsConfig,
			ClusterStateReloadInterval: topologyAge,
			DisableRoutingPolicies:     true, // they need COMMAND, which a tenant's user may not call
		})
	}
	s.complete(failoverTries)
	if err := s.Ping(ctx).Err(); err != nil {
		s.close() //nolint:errcheck // nothing was written
		return nil, wrap(err, "open store", "Redis at "+s.name)
	}
	return []*server{s}, nil
}

// noDatabase is the error for a node of a cluster that is named with the number of a database.
func noDatabase(opt *redis.Options) error {
	return invalidAddress(fmt.Sprintf("%s is a node of a Redis cluster, which has no database %d", opt.Addr, opt.DB),
		"leave the number out, or write /0")
}

// close ends the connections.
func (s *server) close() error {
	err := s.UniversalClient.Close()
	if _, shared := s.large.(*redis.Client); shared {
		return err
	}
	return errors.Join(err, s.large.Close())
}

// examine checks that a server answers and can be written to. It returns the server's mode: standalone or cluster; "" if
// the server does not tell.
func (s *server) examine(ctx context.Context, tracked *connections) (mode string, err error) {
	err = s.Ping(ctx).Err()
	if err != nil && s.master != "" && redis.IsAuthError(err) && s.options.Password != "" {
		s.close() //nolint:errcheck // nothing was written
		*s = *newGuarded(s.master, s.guards, s.options.Password, tracked)
		err = s.Ping(ctx).Err()
	}
	if err != nil && strings.Contains(err.Error(), "SELECT is not allowed in cluster mode") {
		return "", noDatabase(s.options)
	}
	if s.master != "" && errors.Is(err, redis.Nil) {
		return "", invalidAddress("the Sentinels of Redis at "+s.name+" do not know this master",
			"redis-cli -h HOST -p PORT SENTINEL MASTERS lists the names that they know")
	}
	if err != nil {
		return "", wrap(err, "open store", "Redis at "+s.name)
	}
	hello, err := s.Do(ctx, "hello").Result()
	if err != nil { // the user may not ask; the first command tells more
		return "", nil
	}
	mode = field(hello, "mode")
	switch role := field(hello, "role"); {
	case mode == "sentinel":
		return mode, s.isSentinel(ctx)
	case mode != "cluster" && (role == "replica" || role == "slave"):
		return mode, s.isReplica(ctx)
	}
	return mode, nil
}

// field is a text of a reply that is a map, or a list of names and values as older servers send it.
func field(reply any, name string) string {
	switch r := reply.(type) {
	case map[any]any:
		if v := r[name]; v != nil {
			return fmt.Sprint(v)
		}
	case []any:
		for i := 0; i+1 < len(r); i += 2 {
			if r[i] == name {
				return fmt.Sprint(r[i+1])
			}
		}
	}
	return ""
}

// isSentinel is the error for a sentinel that is named as if it was a server.
func (s *server) isSentinel(ctx context.Context) error {
	var names []string
	masters, _ := s.Do(ctx, "sentinel", "masters").Slice() // without it the hint has no name
	for _, m := range masters {
		names = append(names, field(m, "name"))
	}
	if len(names) == 0 {
		names = []string{"MASTER"}
	}
	return invalidAddress("Redis at "+s.name+" is a Sentinel, which stores no data",
		fmt.Sprintf("write redis-sentinel://%s/%s, with commas between several", s.name, strings.Join(names, " or ")))
}

// isReplica is the error for a read-only replica. It is Unavailable, since a failover ends that state.
func (s *server) isReplica(ctx context.Context) error {
	e := &disdel.Error{
		Kind: disdel.Unavailable, Op: "open store", Msg: "Redis at " + s.name + " is a read-only replica",
		Hint: "name the server that it copies",
	}
	if s.master != "" {
		e.Msg = "the master of Redis at " + s.name + " is read-only"
		e.Hint = "a failover may be under way: try again in a minute"
		return e
	}
	text, _ := s.Info(ctx, "replication").Result()
	info := infoFields(text)
	if host := info["master_host"]; host != "" {
		e.Msg += " of " + net.JoinHostPort(host, info["master_port"])
		e.Hint = "write redis://" + net.JoinHostPort(host, info["master_port"]) + "/0, or name its Sentinels: " +
			"redis-sentinel://HOST:PORT/MASTER"
	}
	return e
}

// infoFields parses INFO's text.
func infoFields(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// eachMaster calls f with a client of every server that is written to, several at once.
func (s *server) eachMaster(ctx context.Context, f func(context.Context, *redis.Client) error) error {
	if c, ok := s.UniversalClient.(*redis.ClusterClient); ok {
		return c.ForEachMaster(ctx, f)
	}
	return f(ctx, s.UniversalClient.(*redis.Client))
}

// eachReplica calls f with a client of every replica that a failover may turn into a master.
func (s *server) eachReplica(ctx context.Context, f func(context.Context, *redis.Client) error) error {
	if c, ok := s.UniversalClient.(*redis.ClusterClient); ok {
		return c.ForEachSlave(ctx, f)
	}
	for _, opt := range s.guards {
		password := opt.Password
		opt.Username, opt.Password, opt.DB = "", "", 0
		guard := redis.NewSentinelClient(&opt)
		replicas, err := guard.Replicas(ctx, s.master).Result()
		if err != nil && redis.IsAuthError(err) {
			guard.Close() //nolint:errcheck // another one follows
			opt.Password = password
			guard = redis.NewSentinelClient(&opt)
			replicas, err = guard.Replicas(ctx, s.master).Result()
		}
		guard.Close() //nolint:errcheck // it made only requests
		if err != nil {
			continue
		}
		for _, r := range replicas {
			own := *s.options
			own.Addr, own.MaxRetries = net.JoinHostPort(r["ip"], r["port"]), -1
			c := redis.NewClient(&own)
			err = errors.Join(err, f(ctx, c))
			c.Close() //nolint:errcheck // it made only requests
		}
		return err
	}
	return nil
}

// server is the server of a column's key.
func (s *Store) server(key string) *server {
	if len(s.servers) == 1 {
		return s.client
	}
	h := fnv.New32a()
	h.Write([]byte(key))
	return s.servers[h.Sum32()%uint32(len(s.servers))]
}

// AddUser creates or updates a Redis user that may only use the keys of a prefix (see ACL), on every server and on the
// replicas that answer. It returns Denied if a server does not allow that. It hides the server's text, which repeats
// the password.
func (s *Store) AddUser(ctx context.Context, name, password, prefix string) error {
	command := []any{"ACL", "SETUSER", name, "on", "resetpass", ">" + password}
	for word := range strings.FieldsSeq(ACL(prefix)) {
		command = append(command, word)
	}
	add := func(ctx context.Context, c *redis.Client) error { return c.Do(ctx, command...).Err() }
	for _, server := range s.servers {
		err := server.eachMaster(ctx, add)
		var redisErr redis.Error
		switch {
		case errors.As(err, &redisErr):
			return &disdel.Error{
				Kind: disdel.Denied, Op: "add user", Msg: "the Redis user may not add users, or this Redis has no users",
				Hint: "give the user of the address +acl|setuser",
			}
		case err != nil:
			return wrap(err, "add user", name)
		}
		server.eachReplica(ctx, add) //nolint:errcheck // one that is away gets the user next time
	}
	return nil
}

// Check tests whether every server answers and accepts writes of a job. It deletes a key that does not exist, which a
// read-only replica refuses too. It returns Unavailable for a server that does not answer before ctx ends, and Denied
// for one that refuses the user or the write. The error names the server without its password.
func (s *Store) Check(ctx context.Context, job disdel.JobID) error {
	for _, server := range s.servers {
		once := server.connect(-1, commandTimeout) // retries would hide the reason of a refusal
		err := once.Unlink(ctx, s.keys.job(job)+":none").Err()
		once.Close() //nolint:errcheck // it made only one request
		if err == nil {
			continue
		}
		e := disdel.AsError(wrap(err, "check store", ""))
		out := &disdel.Error{Kind: e.Kind, Op: e.Op, Msg: "Redis at " + server.name, Hint: e.Hint, Err: err}
		if redis.IsReadOnlyError(err) && server.master == "" {
			out.Kind, out.Hint = disdel.Denied, "it is a read-only replica: name the server that it copies"
		}
		return out
	}
	return nil
}

// capacity is the memory of a server. Of a cluster it is that of the master with the least free memory, because a job
// is on one of them.
func (s *server) capacity(ctx context.Context) (Capacity, error) {
	var mu sync.Mutex
	var all []Capacity
	err := s.eachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		out := Capacity{Server: s.name}
		text, err := c.Info(ctx, "memory").Result()
		switch {
		case err == nil:
			out.read(text)
		case ctx.Err() != nil || isNetworkError(err):
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, out)
		return nil
	})
	if err != nil || len(all) == 0 {
		return Capacity{Server: s.name}, wrap(err, "read capacity", "Redis at "+s.name)
	}
	return slices.MinFunc(all, func(a, b Capacity) int { return int(a.Free() - b.Free()) }), nil
}
