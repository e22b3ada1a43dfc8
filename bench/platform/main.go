// Command platform measures `disdel platform up` as its clients see it, from another process and through OpenWhisk's
// own client, and prints lines of the form
//
//	figure NAME VALUE UNIT
//
// It is also the action that it measures with: started as `platform runtime --listen ADDRESS` it answers /init and /run
// and does nothing. It judges nothing.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/runtime"
)

func main() {
	program := flag.String("program", "bin/disdel", "the built program")
	only := flag.String("only", "idle,crowd,replay,speed", "parts to measure")
	activations := flag.Int("activations", 100_000, "stored activations for list_ms")
	flag.Parse()
	rig.Main(func() error {
		switch args := flag.Args(); {
		case len(args) == 3 && args[0] == "runtime":
			return noop(args[2])
		case len(args) > 0:
			return errors.New("usage: platform runtime --listen ADDRESS")
		}
		path, err := filepath.Abs(*program)
		if err != nil {
			return err
		}
		self, err := os.Executable()
		if err != nil {
			return err
		}
		return rig.RunParts(parts(path, self, *activations), *only)
	})
}

// noop is an action that does nothing, or does as the crowd does, for as long as its platform lets it live.
func noop(address string) error {
	l, err := runtime.Listen(address)
	if err != nil {
		return err
	}
	nothing := func(context.Context, json.RawMessage) (any, error) { return map[string]bool{"done": true}, nil }
	handlers := map[disdel.Task]runtime.Handler{"noop": nothing, crowdTask: inACrowd}
	return runtime.New(handlers, runtime.Config{}).Serve(context.Background(), l)
}

// inACrowd prints its number, and ends as it is told to.
func inACrowd(_ context.Context, params json.RawMessage) (any, error) {
	var in struct {
		Number int
		End    string
	}
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, err
	}
	fmt.Println("number", in.Number)
	switch in.End {
	case endsBadly:
		return nil, &disdel.Error{Kind: disdel.Invalid, Msg: fmt.Sprintf("number %d", in.Number)}
	case endsDead:
		os.Exit(1)
	}
	return map[string]int{"number": in.Number}, nil
}
