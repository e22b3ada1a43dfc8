package aggregator

import (
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
)

// R5: a Redis with an append-only file that is killed and started again loses nothing, and what is under way waits for
// it.
func TestARestartOfRedisIsWaitedFor(t *testing.T) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed; scripts/test-deps.sh installs it")
	}
	port, dir := freePort(t), t.TempDir()
	var running *exec.Cmd
	start := func() {
		running = exec.Command(program, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes",
			"--appendfsync", "always", "--dir", dir)
		if err := running.Start(); err != nil {
			t.Error(err)
		}
	}
	kill := func() {
		running.Process.Kill()
		running.Wait()
	}
	start()
	defer func() { kill() }()
	address := "redis://127.0.0.1:" + port + "/0?max_retries=30"
	s := enter(t, serverUnderTest{disdel.Store{URLs: []string{address}}, []string{address}}, "restart")
	s.column = 4
	var ids []disdel.UpdateID
	for m := range 4 {
		c := claim(t, s, update(m, 1).ID, "a", 1, Claimed)
		push(t, s, under(c, uint64(m)))
		ids = append(ids, c.ID)
	}
	before, err := s.Reduce(ctx, ids, someWeights(0))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		kill()
		back := make(chan struct{})
		go func() {
			defer close(back)
			time.Sleep(100 * time.Millisecond) // so that the reads meet a server that is not there
			start()
		}()
		after, err := s.Reduce(ctx, ids, someWeights(0))
		<-back
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("(-before +after):\n%s", diff)
		}
	}
	if _, state, err := s.Claim(ctx, ids[0], "b", 2); err != nil || state != ClaimCommitted {
		t.Errorf("after the restarts: %v, %v", state, err)
	}
	if err := s.client.ScriptFlush(ctx).Err(); err != nil && err != redis.Nil {
		t.Fatal(err)
	}
	c := claim(t, s, update(9, 1).ID, "a", 1, Claimed) // scripts are sent again
	push(t, s, under(c, 9))
}
