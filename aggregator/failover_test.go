package aggregator

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/wait"
)

// redisNode is a redis-server process of a cluster or beside a sentinel.
type redisNode struct {
	*redis.Client
	port    string
	bus     string
	process *exec.Cmd
}

func (n *redisNode) address() string { return "127.0.0.1:" + n.port }

func (n *redisNode) kill() {
	n.process.Process.Kill()
	n.process.Wait()
}

// startNode starts a redis-server and waits until it answers.
func startNode(t *testing.T, options ...string) *redisNode {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed; scripts/test-deps.sh installs it")
	}
	n := &redisNode{port: freePort(t)}
	n.process = exec.Command(program, append([]string{
		"--port", n.port, "--bind", "127.0.0.1", "--save", "", "--requirepass", "secret", "--masterauth", "secret",
		"--dir", t.TempDir(), "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1",
	}, options...)...)
	n.start(t, "secret")
	return n
}

func (n *redisNode) start(t *testing.T, password string) {
	t.Helper()
	if err := n.process.Start(); err != nil {
		t.Fatal(err)
	}
	n.Client = redis.NewClient(&redis.Options{Addr: n.address(), Password: password, MaxRetries: -1})
	t.Cleanup(func() { n.Close(); n.kill() })
	wait.Until(t, "redis-server answers", func() bool { return n.Ping(ctx).Err() == nil })
}

// says waits until a command's answer has a text.
func (n *redisNode) says(t *testing.T, text string, command ...any) {
	t.Helper()
	wait.Until(t, fmt.Sprintf("%v of %s says %s", command, n.address(), text), func() bool {
		return strings.Contains(fmt.Sprint(n.Do(ctx, command...).Val()), text)
	})
}

// replicate makes n a replica of another server.
func (n *redisNode) replicate(t *testing.T, of *redisNode) {
	t.Helper()
	if err := n.ReplicaOf(ctx, "127.0.0.1", of.port).Err(); err != nil {
		t.Fatal(err)
	}
	n.says(t, "master_link_status:up", "info", "replication")
}

// caughtUp waits until a replica has everything that its master acknowledged.
func caughtUp(t *testing.T, master *redisNode) {
	t.Helper()
	own := master.Conn() // WAIT counts what its own connection has written, and everything before
	defer own.Close()
	wait.Until(t, "the replica has everything", func() bool {
		return own.Set(ctx, "caught-up", 1, 0).Err() == nil && own.Wait(ctx, 1, time.Second).Val() == 1
	})
}

// sentinelOf starts a sentinel for a master.
func sentinelOf(t *testing.T, master *redisNode, password string) *redisNode {
	t.Helper()
	n := &redisNode{port: freePort(t)}
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("port %s\nbind 127.0.0.1\nsentinel monitor mymaster 127.0.0.1 %s 1\n"+
		"sentinel auth-pass mymaster secret\nsentinel down-after-milliseconds mymaster 500\n"+
		"sentinel failover-timeout mymaster 2000\n", n.port, master.port)
	if password != "" {
		text += "requirepass " + password + "\n"
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	n.process = exec.Command("redis-server", file, "--sentinel")
	n.start(t, password)
	return n
}

// guarded starts a master, a replica and a sentinel that knows both.
func guarded(t *testing.T, password string) (master, replica, guard *redisNode) {
	t.Helper()
	master, replica = startNode(t), startNode(t)
	replica.replicate(t, master)
	guard = sentinelOf(t, master, password)
	guard.says(t, replica.port, "sentinel", "replicas", "mymaster")
	return master, replica, guard
}

func sentinels(t *testing.T) serverUnderTest {
	master, _, guard := guarded(t, "")
	return serverUnderTest{
		disdel.Store{URLs: []string{"redis-sentinel://:secret@" + guard.address() + "/mymaster"}},
		[]string{"redis://:secret@" + master.address() + "/0"},
	}
}

// clusterOf starts a cluster of three masters. The first one has the slots up to a number.
func clusterOf(t *testing.T, first int) []*redisNode {
	t.Helper()
	var nodes []*redisNode
	ranges := [][2]int{{0, first}, {first + 1, first + (16384-first)/2}, {first + (16384-first)/2 + 1, 16383}}
	for _, slots := range ranges {
		n := joined(t, nodes)
		if err := n.Do(ctx, "cluster", "addslotsrange", slots[0], slots[1]).Err(); err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, n)
	}
	for _, n := range nodes {
		n.says(t, "cluster_known_nodes:3", "cluster", "info")
		n.says(t, "cluster_state:ok", "cluster", "info")
	}
	return nodes
}

// joined starts a node that joins a cluster.
func joined(t *testing.T, cluster []*redisNode) *redisNode {
	t.Helper()
	bus := freePort(t)
	n := startNode(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-port", bus)
	n.bus = bus
	for _, other := range cluster {
		if err := n.Do(ctx, "cluster", "meet", "127.0.0.1", other.port, other.bus).Err(); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// backedUp adds a replica of the first node to a cluster.
func backedUp(t *testing.T, nodes []*redisNode) *redisNode {
	t.Helper()
	id := nodes[0].Do(ctx, "cluster", "myid").Val()
	n := joined(t, nodes)
	n.says(t, "cluster_known_nodes:4", "cluster", "info")
	wait.Until(t, "the node follows the first one", func() bool {
		return n.Do(ctx, "cluster", "replicate", id).Err() == nil
	})
	n.says(t, "master_link_status:up", "info", "replication")
	for _, other := range nodes {
		other.says(t, n.port, "cluster", "slots") // that is, it has got something from its master
	}
	return n
}

func redisCluster(t *testing.T) serverUnderTest {
	at := serverUnderTest{}
	nodes := clusterOf(t, 16384/3)
	for _, n := range nodes {
		at.admins = append(at.admins, "redis://:secret@"+n.address()+"/0")
	}
	at.store.URLs = at.admins[1:]
	return at
}

// halfARound is a round of four members of which two have pushed. The caller lets a server fail, then the rest follows.
func halfARound(t *testing.T, s *place) (finish func() disdel.Update) {
	t.Helper()
	s.column = 4
	var ids []disdel.UpdateID
	var claims []Claim
	for m := range 4 {
		claims = append(claims, claim(t, s, update(m, 1).ID, "a", 1, Claimed))
		ids = append(ids, claims[m].ID)
	}
	push(t, s, under(claims[0], 0))
	push(t, s, under(claims[1], 1))
	return func() disdel.Update {
		t.Helper()
		if _, state, err := s.Claim(ctx, ids[0], "b", 2); err != nil || state != ClaimCommitted {
			t.Errorf("a committed update can be made again: %v, %v", state, err)
		}
		for m := 2; m < 4; m++ {
			push(t, s, under(claims[m], uint64(m)))
		}
		push(t, s, under(claims[3], 3)) // a second delivery
		mean, err := s.Reduce(ctx, ids, someWeights(0))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := s.Counts(ctx, "job-1"); err != nil || n.Damaged > 0 || n.Stale > 0 {
			t.Errorf("counts %+v, %v", n, err)
		}
		return mean
	}
}

// wantMean compares a round with one on a server that never failed.
func wantMean(t *testing.T, got disdel.Update) {
	t.Helper()
	want := halfARound(t, enter(t, embedded(t), "calm"))()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-without a failover +with one):\n%s", diff)
	}
}

// A failover of a sentinel's master in the middle of a round loses no update and counts none twice.
func TestAFailoverBySentinelInARound(t *testing.T) {
	for name, password := range map[string]string{"open sentinel": "", "sentinel with the password": "secret"} {
		t.Run(name, func(t *testing.T) {
			master, replica, guard := guarded(t, password)
			address := "redis-sentinel://:secret@" + guard.address() + "/mymaster?max_retries=100"
			s := enter(t, serverUnderTest{store: disdel.Store{URLs: []string{address}}}, "guarded")
			if err := s.AddUser(ctx, "tenant", "word", "guarded"); err != nil {
				t.Fatal(err)
			}
			if users := fmt.Sprint(replica.Do(ctx, "acl", "users").Val()); !strings.Contains(users, "tenant") {
				t.Errorf("users of the replica are %s", users)
			}
			finish := halfARound(t, s)
			caughtUp(t, master)
			master.kill()
			wantMean(t, finish())
			if role := replica.Info(ctx, "replication").Val(); !strings.Contains(role, "role:master") {
				t.Errorf("the replica was not promoted: %s", role)
			}
			if err := s.Check(ctx, "job-1"); err != nil {
				t.Error(err)
			}
		})
	}
}

// A failover of a cluster's master in the middle of a round loses no update and counts none twice. A client that knows
// the old layout follows MOVED.
func TestAFailoverOfAClusterInARound(t *testing.T) {
	for name, fail := range map[string]func(*testing.T, *redisNode, *redisNode){
		"killed": func(t *testing.T, master, replica *redisNode) { master.kill() },
		"moved": func(t *testing.T, master, replica *redisNode) {
			if err := replica.Do(ctx, "cluster", "failover").Err(); err != nil {
				t.Fatal(err)
			}
			replica.says(t, "role:master", "info", "replication")
		},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := clusterOf(t, 16381)
			replica := backedUp(t, nodes)
			store := disdel.Store{URLs: []string{
				"redis://:secret@" + nodes[0].address() + "/0?max_retries=100",
				"redis://:secret@" + nodes[1].address() + "/0?max_retries=100",
			}}
			s := enter(t, serverUnderTest{store: store}, "cluster")
			if err := s.AddUser(ctx, "tenant", "word", "cluster"); err != nil {
				t.Fatal(err)
			}
			if users := fmt.Sprint(replica.Do(ctx, "acl", "users").Val()); !strings.Contains(users, "tenant") {
				t.Errorf("users of the replica are %s", users)
			}
			finish := halfARound(t, s)
			caughtUp(t, nodes[0])
			fail(t, nodes[0], replica)
			wantMean(t, finish())
			late := enter(t, serverUnderTest{store: store}, "cluster") // one node that it names is gone
			if _, state, err := late.Claim(ctx, update(0, 1).ID, "c", 3); err != nil || state != ClaimCommitted {
				t.Errorf("a late client: %v, %v", state, err)
			}
			if err := late.Check(ctx, "job-1"); err != nil {
				t.Error(err)
			}
			c, err := late.Capacity(ctx)
			if err == nil && (len(c) != 1 || !c[0].Known) {
				t.Errorf("capacity %+v", c)
			}
		})
	}
}

// A tenant's user of a cluster may do what a job needs, under its prefix.
func TestATenantOfACluster(t *testing.T) {
	at := redisCluster(t)
	all := enter(t, at, "all")
	if err := all.AddUser(ctx, "tenant", "word", "mine"); err != nil {
		t.Fatal(err)
	}
	for i, address := range at.store.URLs {
		at.store.URLs[i] = strings.Replace(address, "redis://:secret@", "redis://tenant:word@", 1)
	}
	mine, theirs := enter(t, at, "mine"), enter(t, at, "theirs")
	push(t, mine, update(1, 1))
	want(t, disdel.Denied, theirs.PushUpdate(ctx, update(1, 1)))
}

// An address that cannot work is refused by the first command, with the address that would.
func TestAnAddressThatCannotWorkIsToldAtOnce(t *testing.T) {
	master, replica, guard := guarded(t, "")
	node := clusterOf(t, 5000)[0]
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	for name, c := range map[string]struct {
		address string
		kind    disdel.Kind
		says    []string
	}{
		"a replica": {
			"redis://:secret@" + replica.address() + "/0", disdel.Unavailable,
			[]string{replica.address() + " is a read-only replica of " + master.address(), "redis://" + master.address()},
		},
		"a sentinel": {
			"redis://" + guard.address() + "/0", disdel.Invalid,
			[]string{guard.address() + " is a Sentinel", "redis-sentinel://" + guard.address() + "/mymaster"},
		},
		"a sentinel, with a password that it does not ask for": {
			"redis://:secret@" + guard.address() + "/0", disdel.Invalid, []string{guard.address() + " is a Sentinel"},
		},
		"no master": {
			"redis-sentinel://" + guard.address(), disdel.Invalid, []string{"names no master", "/mymaster"},
		},
		"another master": {
			"redis-sentinel://:secret@" + guard.address() + "/other", disdel.Invalid,
			[]string{"do not know this master", "SENTINEL MASTERS"},
		},
		"a database of a cluster": {
			"redis://:secret@" + node.address() + "/3", disdel.Invalid, []string{"has no database 3", "leave the number out"},
		},
		"no sentinel": {
			"redis-sentinel://" + l.Addr().String() + "/mymaster?max_retries=1", disdel.Unavailable,
			[]string{l.Addr().String() + " (Sentinel, master mymaster)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(context.Background(), disdel.Store{URLs: []string{c.address}})
			want(t, c.kind, err)
			text := fmt.Sprint(err) + " " + disdel.AsError(err).Hint
			for _, part := range c.says {
				if !strings.Contains(text, part) {
					t.Errorf("%q does not say %q", text, part)
				}
			}
			if strings.Contains(text, "secret") {
				t.Errorf("%q has the password", text)
			}
		})
	}
}
