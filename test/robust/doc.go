// Package robust runs disdel as its users do, disturbs it, and looks at what is left: the tests of reliability and
// security that docs/reference/robustness.md lists, each by its id. Tests of single packages that hold one are run by
// their names, so that nothing is claimed that no test shows.
//
// Nothing runs without a seed: make robust SEED=1. A test that fails prints how to repeat it. The package itself is
// empty.
package robust
