package platform

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/race"
	"github.com/disdel/disdel/internal/test/transcripts"
)

// A client that sends what the real OpenWhisk was sent is answered as there: status, the headers that clients go by,
// and bodies by their fields and texts. Times, ids and versions of programs are left out.
func TestTranscriptsOfARealOpenWhisk(t *testing.T) {
	race.SkipMemory(t)
	list, err := transcripts.Load()
	if err != nil {
		t.Fatal(err)
	}
	p := likeTheRecorded(t)
	r := transcripts.Replayer{URL: p.URL(), Key: p.AuthKey()}
	stays := maps.Clone(transcripts.Stays)
	maps.Copy(stays, transcripts.OfTheRuntime) // a container of this test stands for it
	differ := 0
	for i := range list {
		one := &list[i]
		diff, err := r.Send(t.Context(), one)
		if err != nil {
			t.Fatal(err)
		}
		// A busy machine may take the 1.5 seconds of this action's time limit for its start.
		for try := 0; one.Name == "run timesout" && strings.Contains(diff, "during initialization") && try < 10; try++ {
			if diff, err = r.Send(t.Context(), one); err != nil {
				t.Fatal(err)
			}
		}
		reason, meant := stays[one.Name]
		switch {
		case diff != "" && !meant:
			differ++
			t.Errorf("%s: %s %s %.300s\n%s", one.Name, one.Method, one.Path, one.Body, diff)
		case diff == "" && meant:
			t.Errorf("%s: no difference any more (%s)", one.Name, reason)
		}
	}
	t.Logf("%d of %d requests are answered otherwise; %d are listed with a reason", differ, len(list), len(stays))
}

// likeTheRecorded starts a platform with the kinds and limits of the one that was recorded.
func likeTheRecorded(t *testing.T) *Platform {
	t.Helper()
	found := DefaultKinds(os.Args[0])
	kinds := map[string]Kind{}
	for name, kind := range found {
		switch family, _, _ := strings.Cut(name, ":"); family {
		case "python":
			kinds["python:3"] = kind
		case "nodejs":
			kinds["nodejs:20"] = kind
		case "disdel":
			kind.Command = []string{os.Args[0], "serve", "{listen}"}
			kinds[name] = kind
		}
	}
	if len(kinds) < 3 {
		t.Skip("this machine has no interpreter for Python or Node")
	}
	images := map[string]string{"x/python:1": "python:3", "x/disdel:1": disdel.RuntimeKind}
	kinds["bench:1"] = kinds[disdel.RuntimeKind]
	return start(t, func(c *Config) {
		c.Kinds, c.Images = kinds, images
		c.Limits.InvocationsPerMinute, c.Limits.ConcurrentInvocations, c.Limits.FiresPerMinute = 100_000, 1000, 100_000
	})
}
