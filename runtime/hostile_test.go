package runtime

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// What decides which programs and libraries run, what they trust, or what OpenWhisk itself says is the container's own,
// and /init cannot set it; the log says so. Other variables, and those that the invoker sends, are set.
func TestInitCannotSetWhatIsTheContainersOwn(t *testing.T) {
	set := map[string]string{}
	k := start(t, Config{Setenv: func(name, value string) error { set[name] = value; return nil }})
	status, body, _ := k.post("/init", `{"value":{"name":"a","main":"echo","env":{"LD_PRELOAD":"x","LD_LIBRARY_PATH":"x","PATH":"x","GODEBUG":"x",
		"SSL_CERT_FILE":"x","BASH_ENV":"x","__OW_API_HOST":"x","__OW_WAIT_FOR_ACK":"x","__OW_ACTION_NAME":"/guest/a","__OW_API_KEY":"k","MINE":"1"}}}`)
	if status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	if got := slices.Sorted(maps.Keys(set)); strings.Join(got, " ") != "MINE __OW_ACTION_NAME __OW_API_KEY" {
		t.Errorf("set: %v", got)
	}
	for _, name := range []string{"LD_PRELOAD", "PATH", "__OW_API_HOST"} {
		if !strings.Contains(k.errors.String(), `"`+name+`" of /init was not taken`) {
			t.Errorf("the log says nothing of %s: %s", name, k.errors)
		}
	}
}

// A body that never ends is given up, and an activation may last longer than a body may take.
func TestABodyThatNeverEndsIsGivenUp(t *testing.T) {
	l, err := Listen("tcp:127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	goOn := make(chan struct{})
	wait := func(ctx context.Context, _ json.RawMessage) (any, error) {
		select {
		case <-goOn:
			return map[string]bool{"done": true}, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	const short = 50 * time.Millisecond
	cfg := Config{
		Stdout: io.Discard, Stderr: io.Discard, Setenv: func(string, string) error { return nil },
		BodyWait: short,
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- New(map[disdel.Task]Handler{"wait": wait}, cfg).Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	url := "http://" + l.Addr().String()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	post := func(path, body string) int {
		res, err := client.Post(url+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return 0
		}
		res.Body.Close()
		return res.StatusCode
	}
	if got := post("/init", initBody("wait")); got != 200 {
		t.Fatal(got)
	}
	running := make(chan int, 1)
	go func() { running <- post("/run", `{"value":{}}`) }()
	slow, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	io.WriteString(slow, "POST /run HTTP/1.1\r\nHost: action\r\nContent-Length: 1000\r\n\r\n{")
	res, err := http.ReadResponse(bufio.NewReader(slow), nil) // comes after BodyWait: the activation has outlasted it too
	if err != nil || res.StatusCode != http.StatusRequestEntityTooLarge || !res.Close {
		t.Errorf("%v, %v", res, err)
	}
	close(goOn)
	if got := <-running; got != 200 {
		t.Errorf("the activation that outlasted a body's time: %d", got)
	}
}
