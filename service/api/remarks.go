package api

import (
	"net/http"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/apitypes"
)

// remarks is what people have said of the tenant's jobs.
func remarks(c *call) (int, any, error) {
	h, err := c.Service.History(c.Context())
	if err != nil {
		return 0, nil, err
	}
	all, err := h.Remarks(c.Context())
	if all == nil {
		all = map[disdel.JobID]history.Remark{}
	}
	return http.StatusOK, apitypes.RemarkList{Remarks: all}, err
}

// remark says anew what there is to say of a job.
func remark(c *call) (int, any, error) {
	var r history.Remark
	if err := c.read(&r); err != nil {
		return 0, nil, err
	}
	h, err := c.Service.History(c.Context())
	if err != nil {
		return 0, nil, err
	}
	id, err := h.Resolve(c.Context(), c.PathValue("job"))
	if err == nil {
		err = h.SetRemark(c.Context(), id, r)
	}
	return http.StatusOK, r, err
}

// forget deletes the record of a job that has ended.
func forget(c *call) (int, any, error) {
	_, err := c.Service.Forget(c.Context(), c.PathValue("job"))
	return http.StatusOK, apitypes.State{Status: "deleted"}, err
}
