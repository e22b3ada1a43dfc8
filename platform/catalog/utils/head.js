// Returns the first lines, one unless num says otherwise.
function main ({ lines = [], num }) {
  return { lines: lines.slice(0, num || 1), num: num || 1 }
}
