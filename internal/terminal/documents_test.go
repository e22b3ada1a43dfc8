package terminal

import (
	"flag"
	"testing"

	"github.com/disdel/disdel/internal/test/jsonshape"
)

var update = flag.Bool("update", false, "write testdata/json.golden anew")

// The error that programs read on standard error: go test ./internal/terminal -run TestErrorsKeepTheirShape -update
func TestErrorsKeepTheirShape(t *testing.T) {
	jsonshape.Golden(t, "testdata/json.golden", *update, map[string][]any{"error": {failDocument{}}})
}
