package main

import "time"

// bill is a list of parts in CycloneDX 1.6.
type bill struct {
	Format   string      `json:"bomFormat"`
	Spec     string      `json:"specVersion"`
	Version  int         `json:"version"`
	Metadata metadata    `json:"metadata"`
	Parts    []component `json:"components"`
}

type metadata struct {
	Time      string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type       string          `json:"type"`
	Name       string          `json:"name"`
	Version    string          `json:"version"`
	URL        string          `json:"purl"` // a package URL, by which scanners look modules up
	Licences   []licenceChoice `json:"licenses,omitempty"`
	Properties []property      `json:"properties,omitempty"`
}

type licenceChoice struct {
	Licence struct {
		ID string `json:"id"`
	} `json:"license"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// bill lists the parts of the release's programs.
func (r *release) bill(parts []part) bill {
	const module = "github.com/disdel/disdel"
	b := bill{Format: "CycloneDX", Spec: "1.6", Version: 1, Metadata: metadata{
		Time: r.time.Format(time.RFC3339),
		Component: component{
			Type: "application", Name: module, Version: r.version, URL: "pkg:golang/" + module + "@" + r.version,
			Properties: []property{{"git:commit", r.revision}},
		},
	}}
	for _, p := range parts {
		c := component{Type: "library", Name: p.path, Version: p.version, URL: "pkg:golang/" + p.path + "@" + p.version}
		if p.licence != "" {
			var choice licenceChoice
			choice.Licence.ID = p.licence
			c.Licences = []licenceChoice{choice}
		}
		if p.sum != "" {
			c.Properties = []property{{"go:sum", p.sum}}
		}
		b.Parts = append(b.Parts, c)
	}
	return b
}
