// Package plot draws every chart of disdel. Chart is a picture of its own, as SVG or PNG: lines through points that
// have an interval in both directions, one colour and one shape of mark a line, so that they can be told apart in print
// without colour. Lines and Gantt are elements of a page, whose style sheet has their colours.
//
// It holds the canvases of gonum's plot and knows nothing of jobs. A chart is the same bytes for the same values.
// Labels that would lie on another label or on a mark are moved around their point, and left out where there is no
// room.
package plot
