// Command disdel trains deep-learning models as serverless actions on Apache OpenWhisk. Package internal/cli has its
// commands.
package main

import "github.com/disdel/disdel/internal/cli"

func main() { cli.Main() }
