package main

import _ "embed"

//go:embed quickstart.yaml
var quickstartJob []byte
