package controller

import "github.com/disdel/disdel"

// decide asks Decide what is to be done about a failed activation.
func (m *Manager) decide(a disdel.Activation) Remedy {
	return Remedy{}
}
