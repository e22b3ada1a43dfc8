package platform

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/disdel/disdel"
)

func (p *Platform) info(*request) (int, any, error) {
	l := p.cfg.Limits
	return httpDone, map[string]any{
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

// runtimes lists the kinds by family; each family has one default.
func (p *Platform) runtimes() map[string][]map[string]any {
	out := map[string][]map[string]any{}
	for _, kind := range p.kindNames() {
		f := family(kind)
		out[f] = append(out[f], map[string]any{
			"kind": kind, "image": cmp.Or(p.cfg.Kinds[kind].Description, "embedded"), "deprecated": false,
			"default":  p.resolveKind(f+":default") == kind,
			"attached": true, "requireMain": false,
		})
	}
	return out
}

func (p *Platform) apiInfo(*request) (int, any, error) {
	return httpDone, map[string]any{
		"description": "OpenWhisk API", "api_version": "1.0.0", "api_version_path": "v1", "build": "embedded",
		"buildno":       "disdel",
		"swagger_paths": map[string]string{"ui": "/docs", "api-docs": "/api-docs"},
	}, nil
}

// inPath matches a placeholder in a route's path.
var inPath = regexp.MustCompile(`\{([a-z]+)\}`)

// apiDocs describes the API in Swagger 2.0: paths, methods and parameters. It is generated from the routes. Apache's
// own description has more about bodies.
func (p *Platform) apiDocs(*request) (int, any, error) {
	paths := map[string]any{}
	for _, rt := range p.routes() {
		path, ok := strings.CutPrefix(strings.TrimSuffix(rt.path, "{$}"), "/api/v1/")
		if !ok || rt.open {
			continue
		}
		operations := map[string]any{}
		for method := range rt.methods {
			operations[strings.ToLower(method)] = operation(path)
		}
		paths["/"+path] = operations
	}
	return httpDone, map[string]any{
		"swagger": "2.0", "basePath": "/api/v1", "produces": []string{"application/json"},
		"info": map[string]any{"title": "OpenWhisk REST API", "version": "0.1.0"},
		"tags": []any{
			map[string]any{"name": "Actions"},
			map[string]any{"name": "Packages"},
			map[string]any{"name": "Triggers"},
			map[string]any{"name": "Rules"},
			map[string]any{"name": "Activations"},
			map[string]any{"name": "Namespaces"},
		},
		"paths":               paths,
		"securityDefinitions": map[string]any{"basicAuth": map[string]any{"type": "basic"}},
		"security":            []any{map[string]any{"basicAuth": []string{}}},
		"responses": map[string]any{
			"Error": map[string]any{
				"description": "The error.", "schema": map[string]any{"$ref": "#/definitions/ErrorMessage"},
			},
		},
		"definitions": map[string]any{
			"ErrorMessage": map[string]any{
				"type": "object", "required": []string{"error"},
				"properties": map[string]any{
					"error": map[string]any{"type": "string"}, "code": map[string]any{"type": "string"},
				},
			},
		},
	}, nil
}

// operation describes one method of a path.
func operation(path string) map[string]any {
	params := []any{}
	for _, name := range inPath.FindAllStringSubmatch(path, -1) {
		params = append(params, map[string]any{"name": name[1], "in": "path", "required": true, "type": "string"})
	}
	return map[string]any{
		"parameters": params,
		"responses": map[string]any{
			"200":     map[string]any{"description": "As OpenWhisk answers."},
			"default": map[string]any{"$ref": "#/responses/Error"},
		},
	}
}
