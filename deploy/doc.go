// Package deploy brings the package of disdel's actions to an OpenWhisk: it reads deploy/manifest.yaml, the file that
// wskdeploy deploys too, says what differs from what is there, and makes it so.
//
// It asks nothing of a platform that differs in nothing, and leaves actions alone that the manifest does not name. What
// it deploys is for people and programs that invoke actions themselves; jobs bring actions of their own, with limits
// worked out for each. Invariant: after Up a Preview has no change.
package deploy
