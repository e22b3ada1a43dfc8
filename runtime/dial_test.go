package runtime

import (
	"context"
	"net"
	"strings"
)

func dialer(address string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", strings.TrimPrefix(address, "unix:"))
	}
}
