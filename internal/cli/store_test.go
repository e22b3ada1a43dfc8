package cli

import "testing"

// A job whose updates are spread over several servers, under a prefix of its own, comes to what it comes to on one.
func TestAJobOnSeveralRedisServers(t *testing.T) {
	t.Parallel()
	d := build(t)
	one, ok := redisServer(t)
	if !ok {
		t.Skip("redis-server is not installed; scripts/test-deps.sh installs it")
	}
	two, _ := redisServer(t)
	// as many workers in both jobs: a busy machine may get fewer
	job := []string{"quickstart", "-o", "json", "--set", "training.epochs=2", "--set", "distribution.workers=2"}
	out, errs, code := d.run(append(job, "--redis", one+", "+two, "--redis-prefix", "tenant-7")...)
	if code != 0 {
		t.Fatalf("exit %d\n%s", code, errs)
	}
	spread := parse(t, out)
	out, errs, code = d.run(job...)
	if alone := parse(t, out); code != 0 || alone.Accuracy != spread.Accuracy {
		t.Errorf("exit %d, accuracy %g and %g\n%s", code, spread.Accuracy, alone.Accuracy, errs)
	}
	d.nothingStays()
}
