package platform

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// What a program has printed before its answer is in its activation's log, though nobody waits for the reader's turn;
// and what came in parts is whole.
func TestWhatWasPrintedBeforeAnAnswerIsInItsLog(t *testing.T) {
	l := newLogs()
	l.expectNoSentinels()
	if err := l.attach(&exec.Cmd{}); err != nil {
		t.Fatal(err)
	}
	for _, p := range l.readers {
		go p.run()
	}
	long := strings.Repeat("x", 3*readSize/2)
	for i := range 200 {
		j := l.begin(fmt.Sprint(i), 10)
		fmt.Fprintf(l.readers[0].in, "said %d\n%s", i, long)
		fmt.Fprintf(l.readers[1].in, "not ended %d", i)
		if !l.finish(j, time.Minute) {
			t.Fatal("a log that needs no sentinel is not whole")
		}
		if got, want := j.texts(), fmt.Sprintf("said %d|%s|not ended %d", i, long, i); got != want {
			t.Fatalf("%d: %.100q", i, got)
		}
	}
	for _, p := range l.readers {
		p.in.Close()
	}
	l.close(time.Minute)
}

// The output of a process that ended is read to its end, and not for ever where another process holds it.
func TestOutputIsReadForAMomentAfterItsProcess(t *testing.T) {
	for script, want := range map[string]string{
		"echo one; echo two":  "one|two",
		"sleep 100 & echo $!": "", // the sleeper has both streams
	} {
		l := newLogs()
		cmd := exec.Command("sh", "-c", script)
		if err := l.attach(cmd); err != nil {
			t.Fatal(err)
		}
		j := l.begin("a", 1)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		l.read()
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		wait := time.Minute
		if want == "" {
			wait = 10 * time.Millisecond
		}
		l.close(wait)
		l.finish(j, 0)
		if want == "" {
			if err := exec.Command("kill", j.texts()).Run(); err != nil {
				t.Errorf("%q: %v", j.texts(), err)
			}
		} else if j.texts() != want {
			t.Errorf("%s: %q", script, j.texts())
		}
	}
}

// Programs of scripts print no sentinels where the platform asks them not to. Their logs are whole all the same, with
// lines that were not ended.
func TestScriptsLogsAreWholeWithoutSentinels(t *testing.T) {
	kinds := DefaultKinds("unused")
	p := start(t, func(c *Config) { c.Kinds = kinds })
	for kind, code := range map[string]string{
		"python:3": `import sys\ndef main(args):\n    sys.stdout.write('one')\n` +
			`    print('two', file=sys.stderr)\n    return {}`,
		"nodejs:20": `function main () { process.stdout.write('one'); console.error('two'); return {} }`,
	} {
		if _, ok := kinds[kind]; !ok {
			t.Logf("this machine has no %s", kind)
			continue
		}
		must(t, p, "PUT", "_/actions/a?overwrite=true", fmt.Sprintf(`{"exec":{"kind":%q,"code":"%s"}}`, kind, code))
		for range 3 {
			id := must(t, p, "POST", "_/actions/a?blocking=true", `{}`).at("activationId")
			got := must(t, p, "GET", fmt.Sprintf("_/activations/%v/logs", id), "")
			lines := fmt.Sprint(got.at("logs.0"), "\n", got.at("logs.1"))
			if !strings.Contains(lines, "stdout: one") || !strings.Contains(lines, "stderr: two") || got.at("logs.2") != nil {
				t.Errorf("%s: %s", kind, got.body)
			}
		}
		p.pool.mu.Lock()
		for _, c := range p.pool.free {
			if !c.logs.noSentinels {
				t.Errorf("%s: a container that prints sentinels", kind)
			}
		}
		p.pool.mu.Unlock()
	}
}
