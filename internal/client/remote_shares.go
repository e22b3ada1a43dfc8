package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/disdel/disdel/internal/apitypes"
	"github.com/disdel/disdel/service/tenant"
)

type remoteShares struct{ *remote }

func (r remoteShares) Share(ctx context.Context, kind tenant.ItemKind, name string, with []string, all bool) (
	out tenant.Share, err error,
) {
	return out, r.ask(ctx, request{
		method: http.MethodPut, path: []string{"shares", string(kind), name}, body: apitypes.ShareRequest{With: with, All: all},
	}, &out)
}

func (r remoteShares) Unshare(ctx context.Context, kind tenant.ItemKind, name string, from []string, all bool) (
	out tenant.Share, err error,
) {
	return out, r.ask(ctx, request{
		method: http.MethodDelete, path: []string{"shares", string(kind), name},
		query: url.Values{"with": from, "all": {strconv.FormatBool(all)}},
	}, &out)
}

func (r remoteShares) ShareOf(ctx context.Context, kind tenant.ItemKind, name string) (out tenant.Share, err error) {
	return out, r.ask(ctx, request{method: http.MethodGet, path: []string{"shares", string(kind), name}}, &out)
}
