package api

import (
	"net/http"

	"github.com/disdel/disdel/internal/apitypes"
	"github.com/disdel/disdel/service/tenant"
)

// mostNamed bounds the tenants that one request names.
const mostNamed = 1000

// listShares lists what the tenant shares.
func listShares(c *call) (int, any, error) {
	list, err := c.Service.Shares(c.Context())
	return http.StatusOK, apitypes.ShareList{Shares: append([]tenant.Share{}, list...)}, err
}

// showShare says who can read an item of the tenant.
func showShare(c *call) (int, any, error) {
	kind, name := c.item()
	share, err := c.Service.ShareOf(c.Context(), kind, name)
	return http.StatusOK, share, err
}

// addShare lets other tenants read an item of the tenant.
func addShare(c *call) (int, any, error) {
	var in apitypes.ShareRequest
	if err := c.read(&in); err != nil {
		return 0, nil, err
	}
	if len(in.With) == 0 && !in.All || len(in.With) > mostNamed {
		return 0, nil, invalid("with names 1 to 1000 tenants, or all is true", nil)
	}
	kind, name := c.item()
	share, err := c.Service.Share(c.Context(), kind, name, in.With, in.All)
	return http.StatusOK, share, err
}

// removeShare takes the right to read an item of the tenant back.
func removeShare(c *call) (int, any, error) {
	kind, name := c.item()
	q := c.URL.Query()
	share, err := c.Service.Unshare(c.Context(), kind, name, q["with"], q.Get("all") == "true")
	return http.StatusOK, share, err
}

// item is the kind and the name of the item in the path.
func (c *call) item() (tenant.ItemKind, string) {
	return tenant.ItemKind(c.PathValue("kind")), c.PathValue("name")
}
