package custom

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/actions/serve"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/runtime/engine/gorgonia"
)

// Main is the main function of an action with a network of its own. It does what the program's arguments say, until a
// signal or the platform ends it, and returns the exit code.
func Main(n gorgonia.Network) int {
	aggregator.SilenceRedis()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, n); err != nil {
		serve.Tell(os.Stderr, err)
		return 1
	}
	return 0
}

func run(ctx context.Context, args []string, out io.Writer, n gorgonia.Network) error {
	switch {
	case len(args) == 1 && args[0] == "describe":
		d, err := gorgonia.Describe(n)
		if err != nil {
			return err
		}
		return json.NewEncoder(out).Encode(d)
	case len(args) > 0 && args[0] == "runtime":
		address, err := serve.ReadAddress(args[1:])
		if err != nil {
			return err
		}
		return serve.Serve(ctx, address, serve.NewHost(backends.Standard(&n)))
	default:
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "start action " + n.Name,
			Msg: "this program is an action: it takes the argument describe or runtime",
			Hint: fmt.Sprintf("disdel submit job.yaml --action %s, where the job file says model: {custom: %s}", os.Args[0],
				n.Name),
		}
	}
}
