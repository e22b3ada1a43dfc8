package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"

	"github.com/disdel/disdel"
	owruntime "github.com/disdel/disdel/runtime"
)

// A container serves /init once, which says what it is to do, and /run for every activation.
func ExampleServer() {
	greet := func(_ context.Context, params json.RawMessage) (any, error) {
		var p struct{ Name string }
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, &disdel.Error{Kind: disdel.Invalid, Op: "greet", Err: err}
		}
		return map[string]string{"greeting": "hello " + p.Name}, nil
	}
	var logs strings.Builder
	s := owruntime.New(map[disdel.Task]owruntime.Handler{"greet": greet}, owruntime.Config{
		Stdout: &logs, Stderr: io.Discard, Setenv: func(string, string) error { return nil },
	})
	l, err := owruntime.Listen("tcp:127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()

	post := func(path, body string) {
		res, err := http.Post("http://"+l.Addr().String()+path, "application/json", strings.NewReader(body))
		if err != nil {
			log.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		fmt.Println(res.StatusCode, string(text), err)
	}
	post("/init", `{"value": {"main": "greet"}}`)
	post("/run", `{"value": {"name": "world"}}`)
	http.DefaultClient.CloseIdleConnections()
	stop()
	fmt.Println(<-done)
	fmt.Println("logs end with the sentinel:", strings.HasSuffix(strings.TrimSpace(logs.String()), owruntime.Sentinel))
	// Output:
	// 200 {"ok":true} <nil>
	// 200 {"greeting":"hello world"} <nil>
	// <nil>
	// logs end with the sentinel: true
}

// What this process holds, and what its container may hold: 0 where nothing bounds it.
func ExampleMemory() {
	resident, peak := owruntime.Memory()
	fmt.Println(resident <= peak, owruntime.ContainerLimit() >= 0)
	// Output: true true
}
