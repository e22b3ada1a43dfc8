// Package deploy installs the package of disdel's actions on an OpenWhisk. It reads deploy/manifest.yaml, which
// wskdeploy can deploy too, compares it with the platform and applies the difference.
//
// It changes nothing that is equal, and leaves actions alone that the manifest does not name. The installed actions are
// for people and programs that invoke them directly; jobs create their own actions with computed limits. Invariant:
// after Up a Preview has no changes.
package deploy
