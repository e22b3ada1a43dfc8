package platform

import (
	"regexp"
	"strings"
)

// inPath is a placeholder of a route.
var inPath = regexp.MustCompile(`\{([a-z]+)\}`)

// apiDocs describes the API in Swagger 2.0: which paths and methods there are, and what they ask for. It is made of the
// routes; Apache's own description, which says more of the bodies, is not carried along.
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
	return 200, map[string]any{
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
				"description": "What is wrong.", "schema": map[string]any{"$ref": "#/definitions/ErrorMessage"},
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
