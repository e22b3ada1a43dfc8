package custom

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/gorgonia"
)

var linear = gorgonia.Network{
	Name: "linear", Sample: []int{3}, Classes: 2,
	Build: func(o *gorgonia.Ops) (*gorgonia.Program, error) {
		g := G.NewGraph()
		x := G.NewMatrix(g, tensor.Float32, G.WithName("x"), G.WithShape(o.Rows(), 3))
		y := G.NewMatrix(g, tensor.Float32, G.WithName("y"), G.WithShape(o.Rows(), 2))
		w := G.NewMatrix(g, tensor.Float32, G.WithName("w"), G.WithShape(3, 2))
		out := G.Must(G.Mul(x, w))
		return &gorgonia.Program{
			Graph: g, Input: x, Target: y, Output: out,
			Loss: G.Must(G.Mean(G.Must(G.Square(G.Must(G.Sub(out, y)))))), Params: G.Nodes{w},
		}, nil
	},
}

func TestDescribePrintsTheNetwork(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"describe"}, &out, linear); err != nil {
		t.Fatal(err)
	}
	var d disdel.CustomNetwork
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	if d.Name != "linear" || d.Classes != 2 || len(d.Params) != 1 || d.Params[0].Name != "w" || d.Params[0].Fill != nil {
		t.Errorf("got %+v", d)
	}
}

func TestOtherArgumentsAreRefusedWithTheWayToUseIt(t *testing.T) {
	for _, args := range [][]string{nil, {"help"}, {"describe", "more"}, {"runtime", "--port", "1"}, {"runtime", "now"}} {
		err := run(t.Context(), args, &bytes.Buffer{}, linear)
		if !errors.Is(err, disdel.Invalid) {
			t.Errorf("%q: got %v, want Invalid", args, err)
		}
	}
	if hint := disdel.AsError(run(t.Context(), nil, nil, linear)).Hint; !strings.Contains(hint, "--action") ||
		!strings.Contains(hint, "custom: linear") {
		t.Errorf("hint %q", hint)
	}
}

// As the platform starts it, the program serves OpenWhisk's protocol, and a signal's context ends it.
func TestRuntimeServesInit(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx, []string{"runtime", "--listen", "unix:" + socket}, nil, linear) }()
	client := http.Client{Transport: &http.Transport{DialContext: dialUnix(socket)}}
	body := `{"value": {"name": "train", "main": "train", "code": "disdel", "binary": false}}`
	var status int
	for end := time.Now().Add(time.Minute); status == 0 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if res, err := client.Post("http://action/init", "application/json", strings.NewReader(body)); err == nil {
			status = res.StatusCode
			res.Body.Close()
		}
	}
	client.CloseIdleConnections()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if status != http.StatusOK {
		t.Errorf("/init answers %d", status)
	}
}
