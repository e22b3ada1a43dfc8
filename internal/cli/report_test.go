package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/history/couchlite"
)

// keepRecord is the scripts' command `record FILE...`: it puts records into the history of the script's home folder.
func keepRecord(ts *testscript.TestScript, neg bool, files []string) {
	if neg || len(files) == 0 {
		ts.Fatalf("usage: record FILE...")
	}
	ctx := context.Background()
	server, err := couchlite.Open(filepath.Join(ts.Getenv("DISDEL_HOME"), "history.db"), couchlite.Config{})
	ts.Check(err)
	defer server.Close()
	ts.Check(server.Start())
	store, err := history.Open(ctx, history.Config{URL: server.URL()})
	ts.Check(err)
	defer store.Close()
	for _, name := range files {
		var r disdel.Record
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(name)), &r))
		ts.Check(store.Save(ctx, &r))
	}
}

// damageCheckpoint is the scripts' command `damage newest`: it flips a bit of the newest checkpoint below the home
// folder.
func damageCheckpoint(ts *testscript.TestScript, neg bool, args []string) {
	list, err := filepath.Glob(filepath.Join(ts.Getenv("DISDEL_HOME"), "models", "checkpoints", "*", "*",
		"reference.safetensors"))
	ts.Check(err)
	if neg || len(args) != 1 || len(list) == 0 {
		ts.Fatalf("usage: damage newest; there are %d checkpoints", len(list))
	}
	name := list[len(list)-1]
	data, err := os.ReadFile(name)
	ts.Check(err)
	data[len(data)-1] ^= 1
	ts.Check(os.WriteFile(name, data, 0o600))
}
