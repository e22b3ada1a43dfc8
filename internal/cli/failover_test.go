package cli

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/wait"
)

// redisProcess is a redis-server on a loopback port.
type redisProcess struct {
	port    string
	process *exec.Cmd
}

func startRedis(t *testing.T, options ...string) redisProcess {
	t.Helper()
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Skip("redis-server is not installed; scripts/test-deps.sh installs it")
	}
	r := redisProcess{port: loopbackPort(t)}
	r.process = exec.Command("redis-server", append(options, "--port", r.port, "--bind", "127.0.0.1", "--save", "",
		"--dir", t.TempDir(), "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1")...)
	if err := r.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.kill)
	wait.Until(t, "redis-server answers", func() bool { return r.ask("ping") == "PONG\n" })
	return r
}

func (r redisProcess) kill() {
	r.process.Process.Kill()
	r.process.Wait()
}

// ask is what a server answers to a command.
func (r redisProcess) ask(words ...string) string {
	out, _ := exec.Command("redis-cli", append([]string{"-p", r.port}, words...)...).Output()
	return string(out)
}

func loopbackPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// sentinelFor starts a master, its replica and a sentinel, and returns the address for --redis.
func sentinelFor(t *testing.T) (address string, masters []redisProcess) {
	t.Helper()
	master := startRedis(t)
	replica := startRedis(t, "--replicaof", "127.0.0.1 "+master.port)
	wait.Until(t, "the replica follows", func() bool {
		return strings.Contains(replica.ask("info", "replication"), "master_link_status:up")
	})
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	text := "sentinel monitor mymaster 127.0.0.1 " + master.port + " 1\nsentinel down-after-milliseconds mymaster 500\n" +
		"sentinel failover-timeout mymaster 2000\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	guard := startRedis(t, file, "--sentinel")
	wait.Until(t, "the sentinel knows the replica", func() bool {
		return strings.Contains(guard.ask("sentinel", "replicas", "mymaster"), replica.port)
	})
	return "redis-sentinel://127.0.0.1:1,127.0.0.1:" + guard.port + "/mymaster", []redisProcess{master}
}

// clusterFor starts a cluster of three masters with a replica each, and returns the address for --redis.
func clusterFor(t *testing.T) (address string, masters []redisProcess) {
	t.Helper()
	words := []string{"--cluster-replicas", "1", "--cluster-yes", "--cluster", "create"}
	var nodes []redisProcess
	for range 6 {
		n := startRedis(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-port", loopbackPort(t))
		nodes, words = append(nodes, n), append(words, "127.0.0.1:"+n.port)
	}
	if out, err := exec.Command("redis-cli", words...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, n := range nodes {
		wait.Until(t, "the node knows all replicas", func() bool {
			return strings.Count(n.ask("cluster", "slots"), "\n127.0.0.1\n") == 6
		})
	}
	return fmt.Sprintf("redis://127.0.0.1:%s,redis://127.0.0.1:%s", nodes[0].port, nodes[5].port), nodes[:3]
}

// A Redis that fails over in the middle of a job costs no round and counts none twice: the weights are those of the job
// that nobody disturbed.
func TestAJobOutlivesAFailoverOfItsRedis(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) (string, []redisProcess){
		"Sentinel": sentinelFor, "cluster": clusterFor,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := build(t)
			job := d.file(strings.Replace(steadyJob, "epochs: 16", "epochs: 8", 1))
			if _, errs, code := d.run("submit", job, "-q"); code != 0 {
				t.Fatalf("exit %d\n%s", code, errs)
			}
			want, calm := d.weights("steady"), d.record()

			address, masters := start(t)
			said, ended, _ := d.follows("submit", job, "--redis", address)
			before := len(d.checkpoints())
			d.until("two rounds", func() bool { return len(d.checkpoints()) > before+1 })
			struck := 0
			for _, m := range masters {
				if m.ask("dbsize") != "0\n" {
					m.kill()
					struck++
				}
			}
			if struck != 1 {
				t.Fatalf("%d masters had keys", struck)
			}
			if code := ended(); code != 0 {
				t.Fatalf("exit %d\n%s", code, said())
			}
			r := d.record()
			if r.ID == calm.ID || r.Status != disdel.StatusSucceeded || len(r.Rounds) != len(calm.Rounds) {
				t.Errorf("%s %v with %d rounds, %d without a failover", r.ID, r.Status, len(r.Rounds), len(calm.Rounds))
			}
			if d.weights("steady") != want {
				t.Error("the weights are others than without a failover")
			}
			d.nothingStays()
		})
	}
}
