package jobfile

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v4"
)

// policyPath is the field that may be an object too, which stands for three fields: policy: {name: coach, max: 8}.
const policyPath = "distribution.policy"

// policyKeys is what keys of that object stand for beside it.
var policyKeys = map[string]string{"name": "policy", "min": "minWorkers", "max": "maxWorkers"}

// spreadPolicy puts what an object at the key policy says into the object around it. One with other keys stays, to be
// refused as what it is.
func spreadPolicy(n *yaml.Node) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Value != policyKeys["name"] || value.Kind != yaml.MappingNode {
			continue
		}
		said := slices.Clone(value.Content)
		for k := 0; k+1 < len(said); k += 2 {
			means, known := policyKeys[said[k].Value]
			if !known {
				return n
			}
			renamed := *said[k]
			renamed.Value = means
			said[k] = &renamed
		}
		out := *n
		out.Content = slices.Concat(n.Content[:i], said, n.Content[i+2:])
		return &out
	}
	return n
}

// policySchema describes a name, or an object with it and with bounds.
func (f *field) policySchema() schemaNode {
	members := schemaNode{}
	for _, key := range slices.Sorted(maps.Keys(policyKeys)) {
		members[key] = child("distribution", policyKeys[key]).amountSchema()
	}
	members["name"] = f.textSchema()
	return schemaNode{"anyOf": []schemaNode{f.textSchema(), {
		"type": "object", "properties": members, "required": []string{"name"}, "additionalProperties": false,
	}}}
}
