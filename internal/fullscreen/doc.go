// Package fullscreen shows jobs on a whole terminal while they run: a list, and one job with its curves, its actions
// and its log. What is on the screen and what keys do is pure; Watch alone has to do with time, terminals and services.
package fullscreen
