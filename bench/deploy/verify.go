package main

import (
	"context"
	"encoding/json"
	"errors"
)

// verified runs `disdel verify` on a platform in a process of its own, and tells how long that took.
func verified(ctx context.Context, program string) (err error) {
	p, err := start(ctx, program, "--concurrent", "30", "--pool-memory", "1GB")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.end()) }()
	out, err := p.run(ctx, "verify", "--apihost", p.host, "-o", "json")
	if err != nil {
		return err
	}
	var report struct {
		TookMs float64 `json:"tookMs"`
		Passed int     `json:"passed"`
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		return err
	}
	figure("verify_s", report.TookMs/1e3, "s")
	figure("verify_passed", float64(report.Passed), "cases")
	return nil
}
