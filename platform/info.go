package platform

import (
	"cmp"

	"github.com/disdel/disdel"
)

func (p *Platform) info(*request) (int, any, error) {
	l := p.cfg.Limits
	return 200, map[string]any{
		"description": "OpenWhisk", "api_paths": []string{"/api/v1"},
		"support": map[string]string{
			"github": "https://github.com/apache/openwhisk/issues",
			"slack":  "http://slack.openwhisk.org",
		},
		"limits": map[string]any{
			"actions_per_minute": l.InvocationsPerMinute, "triggers_per_minute": l.FiresPerMinute,
			"concurrent_actions": l.ConcurrentInvocations, "sequence_length": l.SequenceLength,
			"min_action_duration": l.Timeout.Min.Milliseconds(), "max_action_duration": l.Timeout.Max.Milliseconds(),
			"min_action_memory": l.Memory.Min, "max_action_memory": l.Memory.Max,
			"min_action_logs": disdel.Bytes(l.LogsMB.Min) * disdel.MB, "max_action_logs": disdel.Bytes(l.LogsMB.Max) * disdel.MB,
			"default_min_action_duration": l.Timeout.Min.Milliseconds(),
			"default_max_action_duration": l.Timeout.Max.Milliseconds(),
			"default_min_action_memory":   l.Memory.Min, "default_max_action_memory": l.Memory.Max,
			"default_min_action_logs": disdel.Bytes(l.LogsMB.Min) * disdel.MB,
			"default_max_action_logs": disdel.Bytes(l.LogsMB.Max) * disdel.MB,
		},
		"runtimes": p.runtimes(),
	}, nil
}

// runtimes lists the kinds by family, each family with one default.
func (p *Platform) runtimes() map[string][]map[string]any {
	out := map[string][]map[string]any{}
	for _, kind := range p.kindNames() {
		f := family(kind)
		out[f] = append(out[f], map[string]any{
			"kind": kind, "image": cmp.Or(p.cfg.Kinds[kind].Says, "embedded"), "deprecated": false,
			"default":  p.resolveKind(f+":default") == kind,
			"attached": true, "requireMain": false,
		})
	}
	return out
}

func (p *Platform) apiInfo(*request) (int, any, error) {
	return 200, map[string]any{
		"description": "OpenWhisk API", "api_version": "1.0.0", "api_version_path": "v1", "build": "embedded",
		"buildno":       "disdel",
		"swagger_paths": map[string]string{"ui": "/docs", "api-docs": "/api-docs"},
	}, nil
}
