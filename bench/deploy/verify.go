package main

import (
	"encoding/json"
	"errors"

	"github.com/disdel/disdel/bench/rig"
)

// verified runs `disdel verify` on a platform in a process of its own, and tells how long that took.
func verified(program string) (err error) {
	p, err := rig.StartPlatform(program, "--concurrent", "30", "--pool-memory", "1GB")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	out, err := p.Run(nil, "verify", "--apihost", p.Host, "-o", "json")
	if err != nil {
		return err
	}
	var report struct {
		TookMs float64 `json:"tookMs"`
		Passed int     `json:"passed"`
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return err
	}
	rig.Figure("verify_s", report.TookMs/1e3, "s")
	rig.Figure("verify_passed", float64(report.Passed), "cases")
	return nil
}
